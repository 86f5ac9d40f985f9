from __future__ import annotations

import polars as pl
import pytest

import everstate as es
from everstate.kernels.order import Order
from everstate.kernels.parcel import Parcel, by_shard
from everstate.kernels.steps import cut
from everstate.log.planning import Planner, Timing
from everstate.log.stops import Stops


def service(*, waits: bool = False):
    app = es.Service("s")
    clicks = app.stream("clicks", key="id", schema={"user": str})
    if waits:
        clicks = clicks.join(clicks.select(other="user"), within="1s", how="left")
    named = clicks.join(app.table("users", key="user", schema={"name": str}), on="user")
    named.to("out")
    return app.units()[0]


#: Ends of micro-batches: clicks, users.
ENDS = [(0, 2), (1, 2), (3, 2), (3, 4), (3, 5), (4, 5), (5, 6)]


def order() -> Order:
    return Order([{"clicks": {0: clicks}, "users": {0: users}} for clicks, users in ENDS], ["clicks", "users"])


def steps_of(unit, topic: str, count: int) -> list[list[int]]:
    records = pl.DataFrame({"offset": range(count)}, schema={"offset": pl.Int64})
    return [part["offset"].to_list() for _, part in cut(unit, topic, 0, records, order())]


def test_recorded_micro_batches_are_apart_where_the_table_has_changed_after_a_row():
    assert steps_of(service(), "clicks", 7) == [[0, 1, 2], [3], [4], [5, 6]]
    assert steps_of(service(), "users", 6) == [[0, 1], [2, 3, 4], [5]]


def test_recorded_micro_batches_are_apart_wherever_the_table_changes_if_rows_come_by_time():
    assert steps_of(service(waits=True), "users", 6) == [[0, 1], [2, 3], [4], [5]]


def test_live_micro_batch_is_one_step():
    records = pl.DataFrame({"offset": [0, 1]}, schema={"offset": pl.Int64})
    assert [(step, part.height) for step, part in cut(service(), "clicks", 0, records, None)] == [(None, 2)]


def test_output_without_lookups_is_not_cut():
    app = es.Service("s")
    clicks = app.stream("clicks", key="id", schema={"user": str})
    clicks.group_by("user").agg(n=es.count()).to("out")
    records = pl.DataFrame({"offset": range(7)}, schema={"offset": pl.Int64})
    assert [part.height for _, part in cut(app.units()[0], "clicks", 0, records, order())] == [7]


def test_parcel_for_everybody_goes_to_every_shard_whole():
    frame = pl.DataFrame({"$key": [b"a", b"b", None]}, schema={"$key": pl.Binary})
    assert [part.height for part in by_shard(Parcel(1, 0, 1, frame, everywhere=True), 3).values()] == [3, 3, 3]
    assert sum(part.height for part in by_shard(Parcel(1, 0, 1, frame), 3).values()) == 3


@pytest.mark.parametrize("everywhere", [False, True])
def test_table_is_read_to_its_end_before_the_first_row_of_a_stream(everywhere):
    app = es.Service("s")
    clicks = app.stream("clicks", key="id", schema={"user": str})
    read = app.global_table if everywhere else app.table
    clicks.join(read("users", key="user", schema={"name": str}), on="user", how="left").to("out")
    people = [(f"u{number}", {"name": f"n{number}"}) for number in range(30)]
    there = [(f"c{number}", {"user": f"u{number}"}) for number in range(30)]
    driver = es.testing.Driver(app, partitions=2, shards=2, topics={"clicks": there, "users": people})
    assert {record.value["name"] for record in driver.records("out")} == {value["name"] for _, value in people}
    driver.send("clicks", "late", {"user": "u99"})
    driver.send("users", "u99", {"name": "n99"})
    assert driver.records("out")[-1].value == {"user": "u99", "name": None}


def test_small_micro_batches_read_the_table_to_its_end_at_the_start_and_then_what_comes():
    planner = Planner(Timing(first=("users",)), Stops.of([]), initial={"clicks": {0: 3}})
    ends, reached = {"clicks": {0: 9}, "users": {0: 5}}, []
    position = {"clicks": {0: 3}, "users": {0: 0}}
    for more in range(5):
        position = planner.end(position, {"clicks": {0: 9}, "users": {0: ends["users"][0] + more}}, 4, 0)
        reached.append((position["clicks"][0], position["users"][0]))
    assert reached == [(3, 4), (3, 6), (6, 7), (9, 8), (9, 9)]
