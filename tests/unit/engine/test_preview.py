from __future__ import annotations

import polars as pl
import pytest

import everstate as es
from everstate import col
from everstate.engine.operation import Operation
from everstate.engine.outputs import create_topics
from everstate.engine.preview import plan_service, preview_service
from everstate.generations.generation import build_lease
from everstate.generations.registry import Registry
from everstate.log.opening import open_log
from everstate.log.protocol import TopicConfig
from everstate.plan.preview import Counts, Sample
from everstate.topology.errors import LeaseHeldError


@pytest.fixture
def log(tmp_path):
    log = open_log(tmp_path / "log")
    log.create_topic("in", TopicConfig(partitions=3))
    yield log
    log.close()


def service(*outputs):
    app = es.Service("svc", shards=1)
    rows = app.stream("in", key="id", schema={"id": str, "n": int})
    for topic in outputs:
        rows.group_by("id").agg(total=col("n").sum()).to(topic)
    return app


def deploy(app, log):
    from everstate.engine import steps

    operation = Operation(app, log=log.url)
    with operation.site() as site:
        create_topics(app.units(), log, app.on_error)
        site.leases.take_publishing()
        planned = operation.plan(site)
        for output in planned.units:
            steps.begin(planned, output, operation.context(site))


def test_preview_of_a_removed_output_counts_its_tombstones_without_starting_spark(log):
    deploy(service("a", "b"), log)
    values = [b"1", b"2", "é".encode() * 150 + b"\xff"]
    log.append("b", pl.DataFrame({"key": [b"x", b"y", b"z"], "value": values, "ts": [1, 2, 3]}))
    before = log.metas("svc")
    plan = preview_service(service("a"), log=log.url)
    (preview,) = plan.previews
    assert (preview.output, preview.counts) == ("b", Counts(stale=3))
    assert preview.stale[0] == Sample("x", "1")
    assert preview.stale[2].old == "é" * 150 + "\\xff"
    assert preview_service(service("a"), log=log.url, keep_topic=True).previews[0].counts == Counts()
    assert log.metas("svc") == before
    assert log.latest("b").height == 3


def test_preview_of_a_first_deployment_has_nothing_to_compare_and_creates_no_topic(log):
    plan = preview_service(service("a"), log=log.url)
    assert (plan.actions[0].kind, plan.previews) == ("begin", ())
    assert log.topics() == ["in"]
    assert Registry(log, "svc").histories() == {}


def test_preview_of_a_plan_that_is_refused_gives_the_refusal(log):
    log.delete_topic("in")
    plan = preview_service(service("a"), log=log.url)
    assert [refused.missing for refused in plan.refusals] == ["in"]


def test_preview_beside_a_process_that_builds_is_refused_and_a_plan_is_not(log):
    lease = log.acquire(build_lease("svc"))
    with pytest.raises(LeaseHeldError):
        preview_service(service("a"), log=log.url)
    assert plan_service(service("a"), log=log.url).changes
    log.release(lease)
