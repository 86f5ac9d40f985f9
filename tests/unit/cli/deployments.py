"""A service that was deployed without Spark: generations, archived code and topics are there, records are not."""

from __future__ import annotations

from pathlib import Path

from everstate.cli.service_loading import load_service
from everstate.engine.spark_run import SparkRun
from everstate.generations.deploy import transitions
from everstate.generations.deploy.outputs import create_own_topics, create_topics
from everstate.generations.generation import Status
from everstate.plan.actions import Begin, Keep
from everstate.plan.steps import Discard, Preparation

SERVICE = """
import everstate as es
from everstate import col

app = es.Service("shop", shards=2)
orders = app.table("orders", key="id", schema={"id": str, "customer": str, "amount": int})
kept = orders.filter(col("amount") > app.config("least", 0))
kept.group_by("customer").agg(total=col("amount").sum()).to("totals")
"""


def write(path: Path, content: str = SERVICE) -> Path:
    path.write_text(content, encoding="utf-8")
    return path


def prepare(file: Path, url: str, **config: object) -> None:
    """Leave a generation of a changed version ready, as a preview does."""
    _deploy(file, url, config, publish=False)


def deploy(file: Path, url: str, **config: object) -> None:
    """Make a version the active one, as a run does."""
    _deploy(file, url, config, publish=True)


def _deploy(file: Path, url: str, config: dict[str, object], *, publish: bool) -> None:
    with SparkRun(load_service(file, config=config), log=url) as run:
        site = run.site
        create_topics(run.service.units(), site.log, run.service.on_error)
        site.leases.take_publishing()
        site.leases.take_building()
        planned = run.plan()
        for action in planned.plan.actions:
            if isinstance(action, Begin):
                transitions.begin(planned, action.output, site)
            elif not isinstance(action, Keep):
                for step in action.steps:
                    if isinstance(step, Discard):
                        transitions.discard(action.output, step.generation, site)
                (step,) = (step for step in action.steps if isinstance(step, Preparation))
                generation = transitions.plan_generation(planned, action, step, site)
                create_own_topics(planned.units[action.output], generation, site.log)
                history = site.registry.read(action.output)
                transitions.write(site, history, history.numbered(generation.number), Status.READY)
                if publish:
                    history = site.registry.read(action.output)
                    transitions.write(site, history, history.numbered(generation.number), Status.PUBLISHING)
                    transitions.publish(planned, action, generation.number, site)
