from __future__ import annotations

import time

import polars as pl
import pytest

from everstate.errors import OffsetOutOfRangeError, TombstonesMissedError, TopicNotFoundError, TopicRecreatedError
from everstate.errors.carrying import CarriedError, decoded
from everstate.log import vectors
from everstate.log.descriptions import Commit, Split, TopicConfig
from everstate.log.opening import open_log
from everstate.log.planning import Timing
from everstate.log.timing import wall_clock

pyspark = pytest.importorskip("pyspark")

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows  # noqa: E402

from everstate.engine.query.source import LogReader, SourceOptions, grouped  # noqa: E402
from everstate.log.archive.reading import read_split  # noqa: E402
from tests.unit.log.archive.conftest import Shelf  # noqa: E402


@pytest.fixture
def log(tmp_path):
    log = open_log(tmp_path / "log")
    log.create_topic("t", TopicConfig(partitions=2))
    yield log
    log.close()


def send(log, partition, count, topic="t"):
    frame = pl.DataFrame({"value": [b"x"] * count, "ts": [0] * count, "partition": [partition] * count})
    log.append(topic, frame.with_columns(pl.col("partition").cast(pl.Int32)))


def reader(log, **changes):
    options = {
        "url": log.url,
        "topics": ("t",),
        "initial": log.begin_offsets(["t"]),
        "end": None,
        "max_records": 10,
        "tasks": 2,
        "task_records": 1,
        **changes,
    }
    return LogReader(SourceOptions.from_spark(SourceOptions(**options).to_spark()))


def read(source, start, end):
    rows = [row for group in source.partitions(start, end) for row in source.read(group)]
    return [Split(*row) for row in rows]


def test_options_through_spark_are_the_same(log):
    options = SourceOptions(
        url=log.url, topics=("t",), initial={"t": {0: 3}}, end={"t": {0: 9}}, max_records=5, tasks=2
    )
    assert SourceOptions.from_spark(options.to_spark()) == options


def test_latest_offset_shares_the_limit_between_partitions(log):
    send(log, 0, 30)
    send(log, 1, 30)
    assert reader(log).latestOffset({"t": {"0": 0, "1": 0}}, ReadMaxRows(10)) == {"t": {0: 5, 1: 5}}


def test_latest_offset_without_limit_takes_everything(log):
    send(log, 0, 30)
    assert reader(log).latestOffset({"t": {"0": 2, "1": 0}}, ReadAllAvailable()) == {"t": {0: 30, 1: 0}}


def test_available_now_ignores_what_comes_later(log):
    send(log, 0, 3)
    source = reader(log)
    source.prepareForTriggerAvailableNow()
    send(log, 0, 5)
    assert source.latestOffset({"t": {"0": 0, "1": 0}}, ReadMaxRows(100)) == {"t": {0: 3, 1: 0}}


def test_end_vector_is_never_passed(log):
    send(log, 0, 8)
    send(log, 1, 8)
    source = reader(log, end={"t": {0: 4, 1: 2}})
    assert source.latestOffset({"t": {"0": 0, "1": 0}}, ReadMaxRows(100)) == {"t": {0: 4, 1: 2}}


def test_order_log_batches_end_on_its_vectors_and_go_on_freely_after_it(log):
    send(log, 0, 8)
    send(log, 1, 8)
    lease = log.acquire("svc")
    start = {"t": {0: 0, 1: 0}, "gone": {0: 0}}
    for number, end in enumerate([{"t": {0: 1, 1: 0}, "gone": {0: 1}}, {"t": {0: 2, 1: 2}, "gone": {0: 1}}]):
        facts = {"service": "svc", "output": "out", "generation": "1", "query_id": "q", "digest": ""}
        log.commit(Commit(**facts, batch_id=number, start=start, end=end, token=lease.token), [])
        start = end
    source = reader(log, order=("svc", "out"), recorded=2, timing=Timing(ordered=True).to_document())
    begin = {"t": {"0": 0, "1": 0}}
    assert source.latestOffset(begin, ReadMaxRows(100)) == {"t": {0: 2, 1: 2}}
    assert source.latestOffset(begin, ReadMaxRows(2)) == {"t": {0: 1, 1: 0}}
    assert source.latestOffset({"t": {"0": 2, "1": 2}}, ReadMaxRows(100)) == {"t": {0: 8, 1: 8}}


def test_offset_beyond_the_topic_is_named(log):
    send(log, 0, 3)
    with pytest.raises(CarriedError, match="t/0") as caught:
        reader(log).latestOffset({"t": {"0": 9, "1": 0}}, ReadMaxRows(100))
    assert isinstance(decoded(str(caught.value)), OffsetOutOfRangeError)


def test_reader_of_a_topic_that_was_deleted_says_so_through_java(log):
    planner = reader(log)
    log.delete_topic("t")
    for ask in (planner.reportLatestOffset, planner.prepareForTriggerAvailableNow):
        with pytest.raises(CarriedError) as caught:
            ask()
        assert isinstance(decoded(f"org.apache.spark.X: {caught.value}\n\tat y"), TopicNotFoundError)


@pytest.mark.parametrize("known", [False, True])
def test_reader_of_a_topic_that_was_created_again_is_refused_however_large_it_is(log, known):
    send(log, 0, 3)
    planner = reader(log, ids=log.topic_ids(["t"]) if known else None)
    if not known:  # a query that is running has seen which topic it reads
        planner.latestOffset({"t": {"0": 0, "1": 0}}, ReadMaxRows(100))
    log.delete_topic("t")
    log.create_topic("t", TopicConfig(partitions=2))
    send(log, 0, 30)
    start, end = {"t": {"0": 3, "1": 0}}, {"t": {"0": 9, "1": 0}}
    for ask in (lambda: planner.latestOffset(start, ReadMaxRows(100)), lambda: planner.partitions(start, end)):
        with pytest.raises(CarriedError, match="'t' was deleted and created again") as caught:
            ask()
        assert isinstance(decoded(str(caught.value)), TopicRecreatedError)


def test_partitions_cover_the_batch_in_order_over_as_many_tasks_as_asked(log):
    send(log, 0, 20)
    send(log, 1, 7)
    source = reader(log)
    start, end = {"t": {"0": 3, "1": 0}}, {"t": {"0": 20, "1": 7}}
    assert len(source.partitions(start, end)) == 2
    splits = read(source, start, end)
    assert sum(split.end - split.start for split in splits) == vectors.lag({"t": {0: 3}}, {"t": {0: 20, 1: 7}})
    assert splits == sorted(splits, key=lambda split: (split.partition, split.start))


def test_partitions_of_many_small_segments_are_few_tasks(log):
    for _ in range(12):
        send(log, 0, 1)
    source = reader(log, tasks=3, task_records=10_000)
    groups = source.partitions({"t": {"0": 0, "1": 0}}, {"t": {"0": 12, "1": 0}})
    assert len(groups) <= 3


def test_partitions_of_nothing_are_none(log):
    assert reader(log).partitions({"t": {"0": 0}}, {"t": {"0": 0}}) == []


def test_batch_of_empty_topics_names_their_partitions_where_time_counts(log):
    (only,) = reader(log, timing=Timing(waits=(("t",),)).to_document()).partitions(
        {"t": {"0": 0}}, {"t": {"0": 0, "1": 0}}
    )
    assert sorted(only.value) == [("t", 0, 0, 0, ""), ("t", 1, 0, 0, "")]


def test_grouped_largest_share_is_at_most_one_split_above_the_mean():
    splits = [Split("t", 0, start, start + 3, "") for start in range(0, 60, 3)]
    groups = grouped(splits, 4)
    sizes = [sum(end - start for _, _, start, end, _ in group) for group in groups]
    assert len(groups) == 4
    assert max(sizes) <= 60 / 4 + 3


def test_batch_that_begins_before_the_topic_does_is_read_from_the_archive(tmp_path):
    shelf = Shelf(tmp_path)
    shelf.topic("t", partitions=2)
    shelf.send("t", 9)
    shelf.send("t", 4, partition=1)
    shelf.archive("t", most=4)
    shelf.expire("t")
    shelf.send("t", 3)
    source = reader(shelf.log, past=shelf.past().to_document())
    found = read(source, {"t": {"0": 2, "1": 0}}, {"t": {"0": 12, "1": 3}})
    records = pl.concat([read_split(shelf.log, split) for split in found])
    places = records.select("partition", "offset").rows()
    assert places == [*((0, n) for n in range(2, 12)), *((1, n) for n in range(3))]
    with pytest.raises(CarriedError) as caught:
        read(reader(shelf.log), {"t": {"0": 2, "1": 0}}, {"t": {"0": 12, "1": 3}})
    assert isinstance(decoded(str(caught.value)), OffsetOutOfRangeError)
    shelf.log.close()


@pytest.fixture
def table(log):
    """A table of which a and b were deleted, some records later."""
    log.create_topic("rows", TopicConfig(partitions=1, compact=True, delete_retention_ms=1))
    for key, value in ((b"a", b"1"), (b"b", b"1"), (b"c", b"1"), (b"a", None), (b"b", None), (b"c", b"2")):
        log.append(
            "rows", pl.DataFrame({"key": [key], "value": [value]}, schema={"key": pl.Binary, "value": pl.Binary})
        )
    time.sleep(0.01)  # the tombstones are old enough to be dropped
    return "rows"


def of_table(log, **changes):
    return reader(log, topics=("rows",), initial=log.begin_offsets(["rows"]), tables=("rows",), **changes)


def test_partitions_of_a_table_whose_deletions_were_compacted_away_while_it_was_read_are_refused(log, table):
    source = of_table(log)
    assert [split.start for split in read(source, {table: {0: 0}}, {table: {0: 2}})] != []  # a and b are read
    log.compact(table)
    with pytest.raises(CarriedError) as raised:
        read(source, {table: {0: 2}}, {table: {0: 6}})
    found = decoded(str(raised.value))
    assert isinstance(found, TombstonesMissedError)
    assert "--recalculate" in found.hint


def test_partitions_of_a_query_that_goes_on_are_refused_if_deletions_went_after_its_state_was_checked(log, table):
    checked_ms = wall_clock() - 1
    log.compact(table)
    with pytest.raises(CarriedError):
        read(of_table(log, checked_ms=checked_ms), {table: {0: 2}}, {table: {0: 6}})
    time.sleep(0.01)
    assert read(of_table(log, checked_ms=wall_clock()), {table: {0: 2}}, {table: {0: 6}})


@pytest.mark.parametrize("first", [0, 6])
def test_partitions_of_a_table_that_was_compacted_before_or_behind_are_given(log, table, first):
    if not first:
        log.compact(table)  # nothing was read before
    source = of_table(log)
    read(source, {table: {0: 0}}, {table: {0: first or 1}})
    log.compact(table)
    assert read(source, {table: {0: first or 1}}, {table: {0: 6}}) or first
