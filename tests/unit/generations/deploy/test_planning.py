from __future__ import annotations

import itertools
import json

import polars as pl
import pytest

import everstate as es
from everstate.engine.spark_run import SparkRun
from everstate.errors import (
    HistoryTruncatedError,
    LogError,
    StateError,
    TopicNotFoundError,
    TopicRecreatedError,
)
from everstate.generations.deploy.outputs import create_topics
from everstate.generations.deploy.planning import require_possible, resumable_unit
from everstate.generations.registry import Registry
from everstate.generations.state.archiving import Archivist
from everstate.generations.state.topic_marks import adopted
from everstate.log.descriptions import Commit, TopicConfig
from everstate.log.embedded import EmbeddedLog
from everstate.log.embedded.store import wall_clock
from everstate.log.opening import open_log
from everstate.plan.differences import Category
from everstate.plan.steps import Withdraw


@pytest.fixture
def log(tmp_path):
    log = open_log(tmp_path / "log")
    log.create_topic("in", TopicConfig(retention_ms=1000))
    yield log
    log.close()


def service(factor=1):
    app = es.Service("svc", shards=1)
    rows = app.stream("in", schema={"n": int})
    rows.group_by("n").agg(hits=es.count() * factor).to("hits")
    return app


def planned(app, log, **given):
    with SparkRun(app, log=log.url, **given) as run:
        return run.plan()


def deploy(app, log):
    from everstate.generations.deploy import transitions

    with SparkRun(app, log=log.url) as run:
        site = run.site
        create_topics(app.units(), log, app.on_error)
        site.leases.take_publishing()
        site.leases.take_building()
        transitions.begin(run.plan(), "hits", site)


def send_and_forget(log):
    """A record that retention has removed an hour later."""
    log.append("in", pl.DataFrame({"key": [b"k"], "value": [b'{"n": 1}'], "ts": [0]}))
    EmbeddedLog(log.url, clock=lambda: wall_clock() + 3_600_000).compact("in")


def test_missing_source_is_refused_at_the_line_that_names_it(log):
    log.delete_topic("in")
    with pytest.raises(TopicNotFoundError, match="topic 'in' does not exist") as refused:
        require_possible(planned(service(), log))
    assert str(refused.value.location).endswith(f"test_planning.py:{service.__code__.co_firstlineno + 2}")


def test_missing_sources_are_all_named_with_the_commands_that_create_them(log):
    app = es.Service("svc")
    people = app.table("people", key="id", schema={"id": str, "n": int})
    people.to("copy").filter(es.col("n") > 0).to("some")
    app.stream("clicks", schema={"n": int}).to("seen")
    with pytest.raises(TopicNotFoundError, match="topic 'people' does not exist") as refused:
        create_topics(app.units(), log, "fail")
    assert refused.value.hint == (
        "2 topics are missing: everstate topic create people --compact; everstate topic create clicks"
    )
    assert log.topics() == ["in"]


def test_source_that_cannot_be_read_is_refused_as_such(log, tmp_path):
    log.append("in", pl.DataFrame({"key": [b"k"], "value": [b'{"n": 1}'], "ts": [0]}))
    for path in (tmp_path / "log").rglob("*"):
        if path.is_file() and path.parent != tmp_path / "log":
            path.write_bytes(b"damaged")
    with pytest.raises(LogError, match="topic in cannot be read") as refused:
        require_possible(planned(service(), log))
    assert refused.type is LogError
    assert "Restore this file from a backup" in str(refused.value)


def test_archived_source_that_is_created_again_is_refused_with_what_to_do(log):
    app = es.Service("svc", shards=1)
    app.stream("in", schema={"n": int}, keep_history=True).group_by("n").agg(hits=es.count()).to("hits")
    log.append("in", pl.DataFrame({"key": [b"k"], "value": [b'{"n": 1}'], "ts": [wall_clock()]}))
    deploy(app, log)
    with SparkRun(app, log=log.url) as run:
        Archivist(log, log.acquire("svc", take_over=True), run.site.home).archive("in")
        archive = run.site.home / "@history" / "in"
    assert archive.is_dir()
    log.delete_topic("in")
    log.create_topic("in")
    with pytest.raises(LogError, match="topic 'in' is not the one that was archived: it was created again") as refused:
        require_possible(planned(app, log))
    assert f"give up the archived records: delete {archive}" in str(refused.value)


def test_lost_history_is_refused_unless_it_is_accepted_by_name(log):
    deploy(service(), log)
    log.append("hits", pl.DataFrame({"key": [b"1"], "value": [b'{"hits": 1}'], "ts": [0]}))
    send_and_forget(log)
    require_possible(planned(service(), log))
    with pytest.raises(HistoryTruncatedError, match="output 'hits'"):
        require_possible(planned(service(factor=2), log))
    require_possible(planned(service(factor=2), log, accept_truncated=["in"]))


def test_generation_that_has_not_read_what_is_gone_cannot_be_gone_on_with(log):
    deploy(service(), log)
    generation = Registry(log, "svc").read("hits").active
    with SparkRun(service(), log=log.url) as run:
        site = run.site
        assert resumable_unit("hits", generation, site).topics == ("in",)
        send_and_forget(log)
        with pytest.raises(StateError, match="has not read all of topic 'in'"):
            resumable_unit("hits", generation, site)


def action(app, log):
    return planned(app, log).plan.action("hits")


def again(log, topic, **config):
    log.delete_topic(topic)
    log.create_topic(topic, TopicConfig(**config))


def test_source_that_is_created_again_is_a_difference_and_its_state_is_of_no_use(log):
    deploy(service(), log)
    assert action(service(), log).kind == "nothing"
    generation = Registry(log, "svc").read("hits").active
    again(log, "in")
    found = action(service(), log)
    assert (found.kind, [str(d.category) for d in found.differences]) == ("recalculate", ["recreated source topic"])
    with (
        SparkRun(service(), log=log.url) as run,
        pytest.raises(TopicRecreatedError, match="topic 'in' was deleted and created again"),
    ):
        resumable_unit("hits", generation, run.site)


def test_output_topic_that_is_deleted_or_created_again_or_emptied_is_a_difference(log):
    deploy(service(), log)
    log.append("hits", pl.DataFrame({"key": [b"1"], "value": [b'{"hits": 1}'], "ts": [0]}))
    again(log, "hits", compact=True, retention_ms=1000)
    assert "was deleted and created again" in action(service(), log).differences[0].cause
    log.delete_topic("hits")
    found = action(service(), log)
    assert (found.kind, found.differences[0].category) == ("migrate", Category.OUTPUT_TOPIC)
    log.create_topic("hits", TopicConfig(retention_ms=1000, compact=True))
    forget_topics(log)
    assert action(service(), log).kind == "nothing"


def test_generation_that_did_not_note_its_topics_takes_those_that_are_there(log):
    deploy(service(), log)
    forget_topics(log)
    again(log, "in")
    again(log, "hits", compact=True)
    assert action(service(), log).kind == "nothing"
    generation = Registry(log, "svc").read("hits").active
    known = adopted(generation, service().units()[0], log)
    assert known.topics == log.topic_ids(["in", "hits", "hits.dlq"])
    assert known.begins == {0: 0}
    assert adopted(known, service().units()[0], log) is known


def test_output_topic_that_has_lost_records_to_retention_is_a_difference(log):
    log.create_topic("hits", TopicConfig(compact=True, retention_ms=1000))
    deploy(service(), log)
    log.append("hits", pl.DataFrame({"key": [b"1"], "value": [b'{"hits": 1}'], "ts": [0]}))
    assert action(service(), log).kind == "nothing"
    EmbeddedLog(log.url, clock=lambda: wall_clock() + 3_600_000).compact("hits")
    assert "has lost 1 record from its beginning" in action(service(), log).differences[0].cause


def forget_topics(log):
    """A registry as an earlier version of Everstate has left it."""
    text = log.get_meta("svc", "generations/hits")
    known = json.loads(text)
    for generation in known["generations"]:
        for name in ("topics", "begins", "missed"):
            del generation[name]
    log.set_meta("svc", "generations/hits", json.dumps(known))


def test_order_of_a_topic_that_was_created_again_begins_with_it(log):
    clock = itertools.count(wall_clock(), 1000).__next__
    timed = EmbeddedLog(log.url, clock=clock)
    lease = timed.acquire("svc")
    record = pl.DataFrame({"key": [b"k"], "value": [b'{"n": 1}'], "ts": [0]})
    timed.create_topic("other")
    timed.append("other", record)
    start = {"in": {0: 0}, "other": {0: 0}}
    for batch in range(2):
        timed.append("in", record)
        end = timed.end_offsets(["in", "other"])
        facts = {"generation": "1", "query_id": "q", "digest": "d", "token": lease.token}
        timed.commit(Commit(service="svc", output="hits", batch_id=batch, start=start, end=end, **facts), [])
        start = end
    assert [vector["in"] for vector in timed.order("svc", "hits", ["in", "other"])] == [{0: 1}, {0: 2}]
    timed.delete_topic("in")
    timed.create_topic("in")
    timed.append("in", pl.concat([record] * 5))
    assert timed.order("svc", "hits", ["in", "other"]) == [{"in": {0: 0}, "other": {0: 1}}] * 2


def test_output_that_is_no_longer_declared_is_retired_although_its_topic_was_deleted_with_it(log):
    from everstate.generations.deploy import transitions

    deploy(service(), log)
    log.delete_topic("hits")
    app = es.Service("svc", shards=1)
    app.stream("in", schema={"n": int}).to("other")
    with SparkRun(app, log=log.url) as run:
        site = run.site
        site.leases.take_publishing()
        site.leases.take_building()
        assert run.plan().plan.action("hits").steps == (Withdraw("hits", 1),)
        transitions.retire("hits", site, keep_topic=False)
    assert Registry(log, "svc").read("hits").active is None
