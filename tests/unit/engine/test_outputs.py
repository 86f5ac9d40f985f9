from __future__ import annotations

import polars as pl
import pytest

import everstate as es
from everstate import col
from everstate.engine.clearing import clear_state
from everstate.engine.folder import OutputFolder, service_folder
from everstate.engine.outputs import levels, prepare_outputs, require_every_deletion
from everstate.engine.settings import Settings
from everstate.log.opening import open_log
from everstate.log.protocol import Commit, TopicConfig
from everstate.topology.errors import (
    CheckpointDamagedError,
    CheckpointMissingError,
    DefinitionError,
    ServiceChangedError,
    TombstonesMissedError,
    TopicNotFoundError,
)

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


def prepare(log, app, **settings):
    home = service_folder(app.state_dir, log, app.name)
    return prepare_outputs(app.units(), log, home, Settings(**settings), policy=app.on_error)


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
    assert [(level, unit.output.topic) for level, unit in levels(units)] == [(0, "middle"), (1, "end")]


def test_prepare_creates_topics_and_begins_state(log):
    middle, end = prepare(log, service(log), shards=4)
    assert (middle.record.shards, middle.record.initial) == (4, {"in": {0: 0, 1: 0, 2: 0}})
    assert log.describe("middle").config.partitions == 3
    assert not log.describe("middle").config.compact
    assert (log.describe("end").config.partitions, log.describe("end").config.compact) == (5, True)
    assert log.describe("end.dlq").config.compact
    assert end.level == 1


def test_prepare_without_dead_letters_creates_no_topic_for_them(log):
    prepare(log, service(log, on_error="skip"))
    assert "end.dlq" not in log.topics()


def test_prepare_again_keeps_the_shards_of_the_first_start(log):
    prepare(log, service(log), shards=4)
    assert prepare(log, service(log), shards=2)[0].record.shards == 4


def test_prepare_missing_source_is_named_with_the_users_line(log):
    app = es.Service("other", log=log.url)
    app.stream("nowhere", schema=SCHEMA).to("out")
    with pytest.raises(TopicNotFoundError, match=r"nowhere.*test_outputs\.py"):
        prepare(log, app)


def test_prepare_service_without_output_is_refused(log):
    with pytest.raises(DefinitionError, match="no output"):
        prepare(log, es.Service("empty", log=log.url))


def test_prepare_changed_service_names_the_output(log):
    prepare(log, service(log))
    with pytest.raises(ServiceChangedError, match="'middle'"):
        prepare(log, service(log, limit=5))


def test_prepare_changed_policy_is_a_change(log):
    prepare(log, service(log))
    with pytest.raises(ServiceChangedError):
        prepare(log, service(log, on_error="skip"))


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
    with pytest.raises(TombstonesMissedError, match=r"'copy'.*'rows'[\s\S]*everstate clear"):
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


def test_clear_remembers_how_far_each_output_had_published(log):
    app = service(log)
    prepare(log, app)
    published(log, "middle", {"in": {0: 7, 1: 0, 2: 2}})
    assert clear_state(app) == ["end", "middle"]
    assert log.last_commit("svc", "middle") is None
    middle, end = prepare(log, app)
    assert middle.record.boundary == {"in": {0: 7, 1: 0, 2: 2}}
    assert end.record.boundary == {}


def test_clear_of_a_changed_service_keeps_streams_closed_and_writes_tables_again(log):
    prepare(log, service(log))
    published(log, "middle", {"in": {0: 7, 1: 0, 2: 2}})
    published(log, "end", {"middle": {0: 1, 1: 1, 2: 1}})
    changed = service(log, limit=9)
    clear_state(changed)
    middle, end = prepare(log, changed)
    assert middle.record.boundary
    assert end.record.boundary  # its own steps are the same: only its source has changed


def test_clear_twice_before_the_rebuild_has_come_that_far_keeps_the_furthest(log):
    app = service(log)
    prepare(log, app)
    published(log, "middle", {"in": {0: 7, 1: 0, 2: 2}})
    clear_state(app)
    prepare(log, app)
    published(log, "middle", {"in": {0: 3, 1: 0, 2: 2}})
    clear_state(app)
    assert prepare(log, app)[0].record.boundary == {"in": {0: 7, 1: 0, 2: 2}}


def test_clear_leaves_topics_and_other_services_alone(log, tmp_path):
    app = service(log)
    prepare(log, app)
    other = OutputFolder(tmp_path / "log" / "state" / "other" / "x")
    other.path.mkdir(parents=True)
    clear_state(app)
    assert other.path.exists()
    assert {"in", "middle", "end"} <= set(log.topics())
