from __future__ import annotations

import random

import polars as pl
import pytest

from everstate.generations.compare.topic_view import TopicView
from everstate.log.descriptions import TopicConfig
from everstate.log.opening import open_log


@pytest.fixture
def log(tmp_path):
    log = open_log(tmp_path / "log")
    yield log
    log.close()


def records(*pairs: tuple[str, str | None], partition: int | None = None, ts: int = 0) -> pl.DataFrame:
    frame = pl.DataFrame(
        {
            "key": [key.encode() for key, _ in pairs],
            "value": [None if value is None else value.encode() for _, value in pairs],
            "ts": [ts] * len(pairs),
        },
        schema={"key": pl.Binary, "value": pl.Binary, "ts": pl.Int64},
    )
    return frame if partition is None else frame.with_columns(pl.lit(partition, pl.Int32).alias("partition"))


def as_table(frame: pl.DataFrame) -> list[tuple[object, ...]]:
    return sorted(frame.select("key", "value", "ts", "partition").iter_rows())


def test_image_of_a_topic_that_is_not_there_is_empty(log) -> None:
    image = TopicView(log, "totals")
    assert image.latest().is_empty()
    log.create_topic("totals", TopicConfig(partitions=2, compact=True))
    log.append("totals", records(("a", "1")))
    assert as_table(image.latest()) == as_table(log.latest("totals"))


def test_image_that_has_not_changed_is_the_same_frame(log) -> None:
    log.create_topic("totals", TopicConfig(partitions=2, compact=True))
    log.append("totals", records(("a", "1"), ("b", "2")))
    image = TopicView(log, "totals")
    assert image.latest() is image.latest()


def test_image_followed_by_its_tail_equals_the_topic_read_anew(log) -> None:
    log.create_topic("totals", TopicConfig(partitions=3, compact=True))
    image, chance = TopicView(log, "totals"), random.Random(5)
    for step in range(60):
        pairs = [(f"k{chance.randrange(12)}", chance.choice([None, "1", "2", "3"])) for _ in range(chance.randrange(6))]
        if pairs:
            log.append("totals", records(*pairs, ts=step))
        if step % 17 == 3:
            log.compact("totals")
        assert as_table(image.latest()) == as_table(log.latest("totals"))


def test_image_of_a_key_that_moves_to_another_partition_follows_the_younger_record(log) -> None:
    log.create_topic("totals", TopicConfig(partitions=2, compact=True))
    image = TopicView(log, "totals")
    for ts, partition in ((5, 0), (7, 1), (6, 0), (9, 0)):
        log.append("totals", records(("a", str(ts)), partition=partition, ts=ts))
        assert as_table(image.latest()) == as_table(log.latest("totals"))
