from __future__ import annotations

import polars as pl
import pytest

import everstate as es
from everstate import col
from everstate.engine.commands.preview import plan_service, preview_service
from everstate.engine.spark_run import SparkRun
from everstate.errors import LeaseHeldError
from everstate.generations.deploy.outputs import create_topics
from everstate.generations.generation import build_lease
from everstate.generations.registry import Registry
from everstate.log.descriptions import TopicConfig
from everstate.log.opening import open_log
from everstate.plan.preview import Counts, FieldChange, Sample

LESS = Sample("y", '{"total":7}', '{"total":2}', (FieldChange("total", "7", "2"),))


@pytest.fixture
def log(tmp_path):
    log = open_log(tmp_path / "log")
    log.create_topic("in", TopicConfig(partitions=3))
    yield log
    log.close()


def service(*outputs, least=0):
    app = es.Service("svc", shards=1)
    rows = app.stream("in", key="id", schema={"id": str, "n": int}).filter(col("n") >= least)
    for topic in outputs:
        rows.group_by("id").agg(total=col("n").sum()).to(topic)
    return app


def deploy(app, log):
    from everstate.generations.deploy import transitions

    with SparkRun(app, log=log.url) as run:
        site = run.site
        create_topics(app.units(), log, app.on_error)
        site.leases.take_publishing()
        site.leases.take_building()
        planned = run.plan()
        for output in planned.units:
            transitions.begin(planned, output, site)


def test_preview_of_a_removed_output_counts_its_tombstones_without_starting_spark(log):
    deploy(service("a", "b"), log)
    values = [b"1", b"2", "é".encode() * 150 + b"\xff"]
    log.append("b", pl.DataFrame({"key": [b"x", b"y", b"z"], "value": values, "ts": [1, 2, 3]}))
    before = log.metas("svc")
    plan = preview_service(service("a"), log=log.url)
    (preview,) = plan.previews
    assert (preview.output, preview.counts) == ("b", Counts(stale=3))
    assert Sample("x", "1") in preview.stale
    assert preview.stale[2].old == "é" * 150 + "\\xff"
    assert preview_service(service("a"), log=log.url, keep_topic=True).previews[0].counts == Counts()
    assert log.metas("svc") == before
    assert log.latest("b").height == 3


def test_preview_of_a_short_past_counts_exactly_without_spark_and_leaves_nothing(log):
    deploy(service("a"), log)
    values = [b'{"n": 1}', b'{"n": 2}', b'{"n": 3}', b"?"]
    log.append("in", pl.DataFrame({"key": [b"x", b"y", b"z", b"bad"], "value": values, "ts": [1, 2, 3, 4]}))
    published = [b'{"total":1}', b'{"total":7}']
    log.append("a", pl.DataFrame({"key": [b"x", b"y"], "value": published, "ts": [1, 2]}))
    before = log.topics(), log.latest("a").height
    plan = preview_service(service("a", least=2), log=log.url, show=False)
    (preview,) = plan.previews
    assert preview.counts == Counts(new=1, changed=1, stale=1, newly_dead=1)
    assert (preview.changed, preview.kept) == ((LESS,), False)
    assert (plan.actions[0].kind, plan.actions[0].resumes) == ("recalculate", None)
    assert (log.topics(), log.latest("a").height) == before
    history = Registry(log, "svc").read("a")
    assert ([g.number for g in history.generations], history.building) == ([1], None)
    assert not log.holder(build_lease("svc"))


def test_preview_of_a_first_deployment_has_nothing_to_compare_and_creates_no_topic(log):
    plan = preview_service(service("a"), log=log.url)
    assert (plan.actions[0].kind, plan.previews) == ("begin", ())
    assert log.topics() == ["in"]
    assert Registry(log, "svc").generations() == {}


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
