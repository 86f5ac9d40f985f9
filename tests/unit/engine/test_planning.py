from __future__ import annotations

import polars as pl
import pytest

import everstate as es
from everstate.engine.operation import Operation
from everstate.engine.outputs import create_topics
from everstate.engine.planning import require_possible, resumable_unit
from everstate.generations.registry import Registry
from everstate.log.embedded import EmbeddedLog
from everstate.log.embedded.store import wall_clock
from everstate.log.opening import open_log
from everstate.log.protocol import TopicConfig
from everstate.topology.errors import HistoryTruncatedError, LogError, StateError, TopicNotFoundError


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
    operation = Operation(app, log=log.url, **given)
    with operation.site() as site:
        return operation.plan(site)


def deploy(app, log):
    from everstate.engine import steps

    operation = Operation(app, log=log.url)
    with operation.site() as site:
        create_topics(app.units(), log, app.on_error)
        site.leases.take_publishing()
        steps.begin(operation.plan(site), "hits", operation.context(site))


def send_and_forget(log):
    """A record that retention has removed an hour later."""
    log.append("in", pl.DataFrame({"key": [b"k"], "value": [b'{"n": 1}'], "ts": [0]}))
    EmbeddedLog(log.url, clock=lambda: wall_clock() + 3_600_000).compact("in")


def test_missing_source_is_refused_at_the_line_that_names_it(log):
    log.delete_topic("in")
    with pytest.raises(TopicNotFoundError, match="topic 'in' does not exist") as refused:
        require_possible(planned(service(), log))
    assert str(refused.value.location).endswith(f"test_planning.py:{service.__code__.co_firstlineno + 2}")


def test_source_that_cannot_be_read_is_refused_as_such(log, tmp_path):
    log.append("in", pl.DataFrame({"key": [b"k"], "value": [b'{"n": 1}'], "ts": [0]}))
    for path in (tmp_path / "log").rglob("*"):
        if path.is_file() and path.parent != tmp_path / "log":
            path.write_bytes(b"damaged")
    with pytest.raises(LogError, match="topic in cannot be read") as refused:
        require_possible(planned(service(), log))
    assert refused.type is LogError


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
    operation = Operation(service(), log=log.url)
    with operation.site() as site:
        assert resumable_unit("hits", generation, log, site.home).topics == ("in",)
        send_and_forget(log)
        with pytest.raises(StateError, match="has not read all of topic 'in'"):
            resumable_unit("hits", generation, log, site.home)
