"""No row reaches what is final: looked at in every micro-batch of every run, and here with books that are wrong."""

from __future__ import annotations

import json

import polars as pl
import pytest

import everstate as es
from everstate import col
from everstate.errors import FinalityError
from everstate.kernels.pages.page_store import MemoryPages
from everstate.kernels.pipeline import ShardStages, ingested, run_stages

SCHEMA = {"k": str, "n": int}


def windows(kind):
    app = es.Service("s")
    app.stream("in", key="id", schema=SCHEMA).group_by("k").window(kind).agg(n=col("n").sum()).to("out")
    return app


def join():
    app = es.Service("s")
    left = app.stream("in", key="k", schema=SCHEMA)
    left.join(app.stream("other", key="k", schema={"k": str, "m": int}), within="10ms").to("out")
    return app


def records(topic, offset, ts):
    value = b'{"k": "a", "n": 1}' if topic == "in" else b'{"k": "a", "m": 1}'
    frame = {"key": [b"a"], "value": [value], "ts": [ts], "offset": [offset]}
    return (topic, 0, pl.DataFrame(frame, schema_overrides={"key": pl.Binary, "value": pl.Binary}))


@pytest.mark.parametrize(
    "service",
    [windows(es.tumbling("10ms")), windows(es.hopping("10ms", "5ms")), windows(es.sliding("10ms")), join()],
    ids=["tumbling", "hopping", "sliding", "join"],
)
def test_row_that_gets_to_what_is_final_stops_the_output_by_name(service):
    (unit,) = service.units()
    pages = MemoryPages()

    def run(books, offset, ts):
        stages = ShardStages(unit, pages, books, policy="fail")
        run_stages([stages], [1], ingested(unit, [records(topic, offset, ts) for topic in unit.topics], "fail"))
        return stages.books

    books = json.loads(run({}, 0, 5_000)[1])
    stale = {**books, "stream_times": dict.fromkeys(books["stream_times"], 3)}
    with pytest.raises(FinalityError, match="all partitions had reached 5000") as caught:
        run({1: json.dumps(stale).encode()}, 1, 4)
    assert caught.value.location is not None
    assert "--recalculate" in caught.value.hint


def test_session_that_is_final_gets_no_row_either():
    (unit,) = windows(es.session("10ms")).units()
    stages = ShardStages(unit, MemoryPages(), {}, policy="fail")
    books = {1: b'{"stream_times": {"0/0": 3}, "sliced": {"%d": {"reached": 900, "slices": {}}}}' % unit.stores[1]}
    stages.books = books
    with pytest.raises(FinalityError):
        run_stages([stages], [1], ingested(unit, [records("in", 1, 4)], "fail"))
