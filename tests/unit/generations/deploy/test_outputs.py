from __future__ import annotations

import polars as pl
import pytest

import everstate as es
from everstate import col
from everstate.engine.commands.clearing import clear_state
from everstate.errors import (
    CheckpointDamagedError,
    CheckpointMissingError,
    DefinitionError,
    TombstonesMissedError,
    TopicNotFoundError,
)
from everstate.generations.deploy import transitions
from everstate.generations.deploy.outputs import create_topics, levels, prepared, require_every_deletion
from everstate.generations.deploy.planning import make_plan
from everstate.generations.registry import Registry
from everstate.generations.state.folder import OutputFolder
from everstate.log.descriptions import Commit, TopicConfig
from everstate.log.opening import open_log
from everstate.plan.facts import Options
from tests.sites import site_of

SCHEMA = {"id": str, "amount": int}


@pytest.fixture
def log(tmp_path):
    log = open_log(tmp_path / "log")
    log.create_topic("in", TopicConfig(partitions=3))
    yield log
    log.close()


def service(log, limit=0, **options):
    app = es.Service("svc", log=log.url, **options)
    rows = app.stream("in", key="id", schema=SCHEMA).filter(col("amount") > limit).to("middle")
    rows.group_by("id").agg(total=col("amount").sum()).to("end", partitions=5)
    return app


def plan(log, app):
    with site_of(app, log) as site:
        return make_plan(app, site, Options())


def prepare(log, app, **settings):
    """Begin the outputs that have no generation yet, and check the state of all."""
    create_topics(app.units(), log, app.on_error)
    with site_of(app, log, **settings) as site:
        site.leases.take_publishing()
        site.leases.take_building()
        planned = make_plan(app, site, Options())
        for name in planned.units:
            if site.registry.read(name).active is None:
                transitions.begin(planned, name, site)
        return [prepared(unit, site.registry.read(name).active, site) for name, unit in planned.units.items()]


def published(log, output, end):
    lease = log.acquire("svc")
    log.commit(
        Commit(
            service="svc",
            output=output,
            generation="1",
            query_id="q",
            batch_id=0,
            start={topic: dict.fromkeys(parts, 0) for topic, parts in end.items()},
            end=end,
            digest="",
            token=lease.token,
        ),
        [],
    )
    log.release(lease)


def test_levels_an_output_that_feeds_another_comes_first(log):
    units = list(reversed(service(log).units()))
    assert list(levels(units).items()) == [("middle", 0), ("end", 1)]


def test_begin_creates_topics_and_a_generation(log):
    middle, end = prepare(log, service(log), shards=4)
    assert (middle.generation.shards, middle.generation.initial) == (4, {"in": {0: 0, 1: 0, 2: 0}})
    assert log.describe("middle").config.partitions == 3
    assert not log.describe("middle").config.compact
    assert (log.describe("end").config.partitions, log.describe("end").config.compact) == (5, True)
    assert log.describe("end.dlq").config.compact
    assert end.generation.initial == {"middle": {0: 0, 1: 0, 2: 0}}


def test_create_topics_without_dead_letters_creates_none_for_them(log):
    prepare(log, service(log, on_error="skip"))
    assert "end.dlq" not in log.topics()


def test_prepare_again_keeps_the_shards_of_the_first_start(log):
    prepare(log, service(log), shards=4)
    assert prepare(log, service(log))[0].generation.shards == 4


def test_create_topics_missing_source_is_named_with_the_users_line(log):
    app = es.Service("other", log=log.url)
    app.stream("nowhere", schema=SCHEMA).to("out")
    with pytest.raises(TopicNotFoundError, match=r"nowhere.*test_outputs\.py"):
        prepare(log, app)


def test_plan_service_without_output_is_refused(log):
    with pytest.raises(DefinitionError, match="no output"):
        plan(log, es.Service("empty", log=log.url))


def test_plan_changed_service_recalculates_what_changed_only(log):
    prepare(log, service(log))
    assert [action.kind for action in plan(log, service(log)).plan.actions] == ["nothing", "nothing"]
    assert [action.kind for action in plan(log, service(log, limit=5)).plan.actions] == ["recalculate", "nothing"]


def test_plan_changed_policy_is_a_change(log):
    prepare(log, service(log))
    assert {action.kind for action in plan(log, service(log, on_error="skip")).plan.actions} == {"recalculate"}


def test_prepare_published_output_without_state_is_named(log):
    prepare(log, service(log))
    published(log, "middle", {"in": {0: 1, 1: 0, 2: 0}})
    with pytest.raises(CheckpointMissingError, match="'middle'"):
        prepare(log, service(log))


def test_prepare_damaged_record_is_named(log):
    (middle, _) = prepare(log, service(log))
    middle.folder.record_file.write_text("{}")
    with pytest.raises(CheckpointDamagedError, match=r"output\.json"):
        prepare(log, service(log))


def table_service(log):
    app = es.Service("svc", log=log.url)
    app.table("rows", key="id", schema=SCHEMA).to("copy")
    return app


def sent(log, *records):
    """Append to the table's topic, on partition 0."""
    keys, values = (
        [None if text is None else text.encode() for text in column] for column in zip(*records, strict=True)
    )
    schema = {"key": pl.Binary, "value": pl.Binary}
    log.append("rows", pl.DataFrame({"key": keys, "value": values}, schema=schema))


def test_require_every_deletion_tombstones_that_were_compacted_away_unread_are_named(log):
    log.create_topic("rows", TopicConfig(compact=True, delete_retention_ms=0))
    (unit,) = table_service(log).units()
    log.create_topic("copy", TopicConfig(compact=True))
    sent(log, ("a", '{"amount": 1}'), ("b", '{"amount": 1}'))
    published(log, "copy", {"rows": {0: 2}})
    sent(log, ("a", None))
    require_every_deletion(unit, log.last_commit("svc", "copy"), log)
    log.compact("rows")
    with pytest.raises(TombstonesMissedError, match=r"'copy'.*'rows'[\s\S]*--recalculate copy"):
        require_every_deletion(unit, log.last_commit("svc", "copy"), log)


def test_require_every_deletion_tombstones_that_were_read_before_they_went_are_not_missed(log):
    log.create_topic("rows", TopicConfig(compact=True, delete_retention_ms=0))
    (unit,) = table_service(log).units()
    log.create_topic("copy", TopicConfig(compact=True))
    sent(log, ("a", '{"amount": 1}'), ("a", None), ("b", '{"amount": 1}'))
    published(log, "copy", {"rows": {0: 3}})
    log.compact("rows")
    require_every_deletion(unit, log.last_commit("svc", "copy"), log)


def test_require_every_deletion_of_a_topic_read_as_a_stream_is_not_asked_for(log):
    log.create_topic("rows", TopicConfig(compact=True, delete_retention_ms=0))
    app = es.Service("svc", log=log.url)
    app.stream("rows", key="id", schema=SCHEMA).to("copy")
    log.create_topic("copy")
    sent(log, ("a", '{"amount": 1}'))
    published(log, "copy", {"rows": {0: 1}})
    sent(log, ("a", None))
    log.compact("rows")
    require_every_deletion(app.units()[0], log.last_commit("svc", "copy"), log)


def test_clear_forgets_generations_and_keeps_what_was_published(log):
    app = service(log)
    prepare(log, app)
    published(log, "middle", {"in": {0: 7, 1: 0, 2: 2}})
    assert clear_state(app) == ["end", "middle"]
    history = Registry(log, "svc").read("middle")
    assert history.generations == ()
    assert history.next_number == 2
    assert [event.what for event in history.audit] == ["active", "cleared"]
    assert log.last_commit("svc", "middle").end == {"in": {0: 7, 1: 0, 2: 2}}
    assert clear_state(app) == []


def test_clear_leaves_topics_and_other_services_alone(log, tmp_path):
    app = service(log)
    prepare(log, app)
    other = OutputFolder(tmp_path / "log" / "state" / "other" / "x")
    other.path.mkdir(parents=True)
    clear_state(app)
    assert other.path.exists()
    assert {"in", "middle", "end"} <= set(log.topics())
