"""What random histories do not show: times that are none, partitions, pages, and what a plan says of a window."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

import everstate as es
from everstate import col
from everstate.errors import StateError
from everstate.kernels.pages.page_store import MemoryPages
from everstate.kernels.pipeline import ShardStages, ingested, run_stages
from everstate.kernels.stream_time import mark, require_known
from everstate.plan.actions import Recalculate

ORDER = {"id": str, "customer": str, "amount": float}


def service(window=None, time=None, name="per-window", **options):
    app = es.Service("shop")
    orders = app.stream("orders", key="id", schema={**ORDER, "at": datetime | None}, time=time)
    grouped = orders.group_by("customer").window(window or es.tumbling("10s"), **options)
    grouped.agg(total=col("amount").sum()).to(name)
    return app


def order(customer="ada", amount=1.0, at=None):
    return {"customer": customer, "amount": amount, "at": at}


def reasons(driver, output="per-window"):
    return [record.value["reason"] for record in driver.records(f"{output}.dlq")]


@pytest.mark.parametrize("at", [None, "1969-12-31T23:59:59Z"])
def test_row_without_a_time_at_or_after_1970_is_a_dead_letter_and_moves_nothing(at):
    driver = es.testing.Driver(service(time=col("at"), emit="final"))
    driver.send("orders", "o1", order(at="1970-01-01T00:00:01Z"))
    driver.send("orders", "o2", order(at=at), ts=10**12)
    assert reasons(driver) == ["time= gives no time at or after 1970"]
    assert driver.table("per-window") == {}


def test_row_without_a_time_has_that_of_the_record_on_request():
    app = es.Service("shop")
    columns = {**ORDER, "at": datetime | None}
    orders = app.stream("orders", key="id", schema=columns, time="at", on_missing_time="record")
    orders.group_by("customer").window(es.tumbling("10s")).agg(n=es.count()).to("per-window")
    driver = es.testing.Driver(app)
    driver.send("orders", "o1", order(at="1970-01-01T00:00:01Z"), ts=55_000)
    driver.send("orders", "o2", order(at=None), ts=25_000)
    driver.send("orders", "o3", order(at="1969-12-31T23:59:59Z"), ts=26_000)
    starts = {start.second: row["n"] for (_, start, _), row in driver.table("per-window").items()}
    assert (starts, reasons(driver)) == ({0: 1, 20: 2}, [])


def test_record_without_a_timestamp_is_a_dead_letter_of_the_window_alone():
    app = service()
    app.stream("orders", key="id", schema={**ORDER, "at": datetime | None}).to("copy")
    driver = es.testing.Driver(app)
    driver.send("orders", "o1", order(), ts=-1)
    assert reasons(driver) == ["the record has no timestamp"]
    assert len(driver.records("copy")) == 1


@pytest.mark.parametrize("ts", [1_777_000_000_000_000, 9_000_000_000_000_000, 2**63 - 1])
@pytest.mark.parametrize("window", [es.tumbling("10s"), es.hopping("10s", "5s"), es.sliding("10s"), es.session("10s")])
def test_record_with_a_timestamp_in_microseconds_is_a_dead_letter(window, ts):
    driver = es.testing.Driver(service(window))
    driver.send("orders", "o1", order(), ts=0)
    driver.send("orders", "o2", order(), ts=ts)
    assert [reason.partition(":")[0] for reason in reasons(driver)] == ["its time is after the year 8999"]
    assert {row["total"] for row in driver.table("per-window").values()} == {1.0}


@pytest.mark.parametrize("at", [1_777_000_000_000_000, 2**63 - 1])
@pytest.mark.parametrize("kind", ["stream", "table"])
def test_time_in_microseconds_is_a_dead_letter_and_moves_nothing(kind, at):
    app = es.Service("shop")
    given = {"key": "id", "schema": {"shop": str, "at": int}}
    if kind == "stream":
        grouped = app.stream("orders", time="at", **given).group_by("shop").window(es.tumbling("10s"), emit="final")
    else:
        grouped = app.table("orders", **given).group_by("shop").window(es.tumbling("10s"), time="at")
    grouped.agg(n=es.count()).to("per-window")
    driver = es.testing.Driver(app)
    for number, time in enumerate((1000, at, 2000, 20_000)):
        driver.send("orders", f"o{number}", {"shop": "a", "at": time})
    assert [reason.partition(":")[0] for reason in reasons(driver)] == ["its time is after the year 8999"]
    assert [row["n"] for row in driver.table("per-window").values()] == [2] if kind == "stream" else [2, 1]


@pytest.mark.parametrize("ts", [-1, -(2**62)])
def test_record_without_a_timestamp_is_a_dead_letter_of_a_join_of_streams(ts):
    app = es.Service("shop")
    payments = app.stream("payments", key="id", schema={"paid": float})
    app.stream("orders", key="id", schema=ORDER).join(payments, within="1h").to("paid")
    driver = es.testing.Driver(app)
    driver.send("orders", "o1", {"customer": "ada", "amount": 1.0}, ts=ts)
    driver.send("payments", "o1", {"paid": 1.0}, ts=ts)
    driver.send("orders", "o1", {"customer": "ada", "amount": 1.0}, ts=0)
    driver.send("payments", "o1", {"paid": 2.0}, ts=5)
    assert reasons(driver, "paid") == ["the record has no timestamp"] * 2
    assert [record.value["paid"] for record in driver.records("paid")] == [2.0]


@pytest.mark.parametrize("at", [2**62 + 1, 2**63 - 1, 2**64 - 1])
def test_row_with_a_time_that_nothing_can_be_added_to_is_a_dead_letter_and_moves_nothing(at):
    app = es.Service("shop")
    rows = app.stream("rows", key="id", schema={"group": str, "at": str}, time=col("at").cast(pl.UInt64))
    rows.group_by("group").window(es.tumbling("5m")).agg(n=es.count()).to("per-window")
    rows.dedup("group", within="1h").to("firsts")
    table = app.table("table", key="id", schema={"group": str, "at": str})
    by_column = table.group_by("group").window(es.tumbling("5m"), time=col("at").cast(pl.UInt64))
    by_column.agg(n=es.count()).to("of-table")
    driver = es.testing.Driver(app)
    for topic in ("rows", "table"):
        driver.send(topic, "r1", {"group": "a", "at": str(at)})
        driver.send(topic, "r2", {"group": "a", "at": "5"})
    for output in ("per-window", "firsts", "of-table"):
        assert [reason.partition(":")[0] for reason in reasons(driver, output)] == ["its time is after the year 8999"]
    assert list(driver.table("per-window").values()) == list(driver.table("of-table").values()) == [{"n": 1}]
    assert [record.key for record in driver.records("firsts")] == ["r2"]


def test_record_that_cannot_be_decoded_closes_no_window():
    driver = es.testing.Driver(service(emit="final"))
    driver.send("orders", "o1", order(), ts=1)
    driver.send("orders", "o2", b"{", ts=10**12)
    driver.send("orders", "o3", order(), ts=2)
    driver.advance(10_000)
    assert list(driver.table("per-window").values()) == [{"total": 2.0}]


def test_partition_without_records_holds_back_what_would_be_final():
    driver = es.testing.Driver(service(emit="final"), partitions=2)
    driver.send("orders", "o1", order(), ts=1, partition=0)
    driver.send("orders", "o2", order(), ts=90_000, partition=0)
    assert driver.table("per-window") == {}
    driver.send("orders", "o3", order(amount=5.0), ts=2, partition=1)
    driver.send("orders", "o4", order(), ts=90_000, partition=1)
    assert list(driver.table("per-window").values()) == [{"total": 6.0}]


def test_partition_that_is_added_stops_the_output_by_name():
    with pytest.raises(StateError, match="'orders' has a new partition, 1") as caught:
        require_known({"0/0": 5}, mark(0, 1, 0, 0, None), ["orders"])
    assert "--recalculate" in caught.value.hint


def test_key_of_a_window_is_a_json_array_that_any_client_reads():
    driver = es.testing.Driver(service())
    driver.send("orders", "o1", order(), ts=int(datetime(2026, 5, 1, 10, tzinfo=UTC).timestamp() * 1000))
    (record,) = driver._deployment.topics.all("per-window")
    assert record.key == b'["ada","2026-05-01T10:00:00Z","2026-05-01T10:00:10Z"]'


def test_window_that_is_another_one_is_recalculated_and_named():
    driver = es.testing.Driver(service(es.tumbling("10s")))
    driver.send("orders", "o1", order(), ts=1)
    upgrade = driver.upgrade(service(es.tumbling(timedelta(seconds=20), grace="1s")))
    (action,) = upgrade.plan.actions
    assert isinstance(action, Recalculate)
    (difference,) = action.differences
    assert (difference.old, difference.new) == ("grace=0s, size=10s", "grace=1s, size=20s")
    assert [(record.key[2].second, record.value) for record in upgrade.records] == [(10, None), (20, {"total": 1.0})]


def test_window_that_is_written_differently_is_no_change():
    driver = es.testing.Driver(service(es.tumbling("1m", grace="0s")))
    driver.send("orders", "o1", order(), ts=1)
    upgrade = driver.upgrade(service(es.tumbling(timedelta(minutes=1))))
    assert upgrade.records == []
    assert not isinstance(upgrade.plan.actions[0], Recalculate)


def test_time_that_was_moved_by_hand_is_found_by_an_upgrade():
    driver = es.testing.Driver(service(emit="final"))
    driver.send("orders", "o1", order(), ts=1)
    driver.advance(10_000)
    driver.send("orders", "o2", order(), ts=2)
    assert driver.counts("per-window") == {"dropped.late": 1}
    upgrade = driver.upgrade(service(emit="final"), recalculate=["per-window"])
    assert upgrade.records == []
    assert list(driver.table("per-window").values()) == [{"total": 1.0}]


def batch(first, count, start, group):
    """Records of as many groups as there are, all in the window that begins at `start`."""
    numbers = range(first, first + count)
    values = [b'{"customer": "%s", "amount": 1.0, "at": null}' % group(n).encode() for n in numbers]
    frame = {"key": [b"o%d" % n for n in numbers], "value": values, "ts": [start] * count, "offset": list(numbers)}
    return [("orders", 0, pl.DataFrame(frame, schema_overrides={"key": pl.Binary, "value": pl.Binary}))]


def test_pages_of_a_window_that_is_over_are_deleted_and_never_read():
    unit = service(es.tumbling("10s")).units()[0]
    pages, books, sizes = MemoryPages(), {}, []
    for window in range(4):
        stages = ShardStages(unit, pages, books, policy="fail")
        pages.reset_counts()
        records = batch(window * 5000, 5000, window * 10_000, lambda n: f"c{n % 5000}")
        run_stages([stages], [1], ingested(unit, records, "fail"))
        books = stages.books
        sizes.append(len(pages.blocks))
        assert pages.gets == 0  # a new window has no pages yet, and the one before goes unread
        assert (pages.deletes > 0) == (window > 0)
    assert len(set(sizes)) == 1


def test_partition_that_is_added_to_a_table_does_not_matter_to_a_window_beside_it():
    app = es.Service("shop")
    orders = app.stream("orders", key="customer", schema={"customer": str, "amount": float})
    people = app.table("people", key="customer", schema={"customer": str, "name": str})
    first = orders.group_by("customer").window(es.tumbling("10s")).agg(total=col("amount").sum())
    first.join(people, on="customer", how="left").to("named")
    (unit,) = app.units()
    assert {unit.topics[place] for place in unit.watched} == {"orders"}


def test_sliding_row_in_time_for_a_window_that_may_be_open_makes_the_one_after_it():
    app = es.Service("shop")
    orders = app.stream("orders", key="id", schema=ORDER)
    per_window = orders.group_by("customer").window(es.sliding("5ms"), late_to="late")
    per_window.agg(n=es.count()).to("per-window")
    driver = es.testing.Driver(app, partitions=2)
    for number, (ts, partition) in enumerate([(9, 0), (11, 0), (12, 1)]):
        driver.send("orders", f"o{number}", order("ab"[partition]), ts=ts, partition=partition)
    # Its own window ended at 7, and no row has made the one that ends at 12.
    driver.send("orders", "o3", order("a"), ts=7, partition=1)
    after = (datetime.fromtimestamp(0.008, UTC), datetime.fromtimestamp(0.013, UTC))
    assert driver.table("per-window")["a", *after] == {"n": 2}
    assert driver.table("late") == {}
    driver.send("orders", "o4", order("a"), ts=6, partition=1)
    assert [row["key"] for row in driver.table("late").values()] == ["o4"]


def sessions(**options):
    app = es.Service("shop")
    orders = app.stream("orders", key="id", schema=ORDER)
    grouped = orders.group_by("customer").window(es.session("5ms", grace="9ms"), **options)
    told = grouped.aggregate(
        lambda: "",
        lambda a, row: f"{a}{1 / row['amount']:.0f}",
        schema=str,
        merge=lambda a, b: a + b,
    )
    told.to("told")
    return app


def bounds(driver):
    return {(key[1].microsecond // 1000, key[2].microsecond // 1000): v for key, v in driver.table("told").items()}


def test_merged_sessions_begin_with_the_earlier_one_and_end_with_the_row_that_joined_them():
    driver = es.testing.Driver(sessions())
    for number, (ts, amount) in enumerate([(9, 1.0), (2, 0.5), (1, 0.25), (6, 0.2)]):
        driver.send("orders", f"o{number}", order(amount=amount), ts=ts)
    assert bounds(driver) == {(1, 9): "2415"}
    assert len(driver.records("told")) == 7  # each of the first three, then the end of two and what they became


def test_row_that_a_merged_session_refuses_is_a_dead_letter_and_joins_nothing():
    driver = es.testing.Driver(sessions())
    for number, (ts, amount) in enumerate([(0, 1.0), (10, 0.5), (5, 0.0)]):
        driver.send("orders", f"o{number}", order(amount=amount), ts=ts)
    assert bounds(driver) == {(0, 0): "1", (10, 10): "2"}
    (letter,) = driver.records("told.dlq")
    assert letter.value["key"] == "o2"
    assert "ZeroDivisionError" in letter.value["reason"]


def test_merged_sessions_are_published_once_when_they_are_final_and_late_rows_are_put_aside():
    driver = es.testing.Driver(sessions(emit="final", keep="90ms", late_to="late"))
    for number, (ts, amount) in enumerate([(0, 1.0), (4, 0.5), (30, 0.25), (2, 0.5)]):
        driver.send("orders", f"o{number}", order(amount=amount), ts=ts)
    assert bounds(driver) == {(0, 4): "12"}
    driver.advance(94)
    assert [(record.value, record.ts) for record in driver.records("told")] == [("12", 4), ("4", 30), (None, 4)]
    assert [row["key"] for row in driver.table("late").values()] == ["o3"]
