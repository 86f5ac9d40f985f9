from __future__ import annotations

import pytest

from everstate.fingerprints.prints import UnitPrint
from everstate.plan.reuse import obstacle
from tests.unit.plan.prints import clicks, filtered, grouped, node, part, seen, source, table, totals, unit


def with_filter(*names: str) -> UnitPrint:
    nodes = [source("orders"), table("orders")]
    for name in names:
        nodes.append(filtered(name, nodes[-1].name, name))
    return unit("out", *nodes)


def mapped(digest: str) -> UnitPrint:
    step = node("clicks/stateful", "clicks", stateful=True, fn=part("function", "count", digest=digest))
    return unit("seen", source("clicks"), step)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (clicks(), clicks(predicate="amount > 5")),
        (with_filter("orders/filter"), with_filter("orders/filter", "orders/filter#2")),
        (with_filter("orders/filter", "orders/filter#2"), with_filter("orders/filter")),
        (mapped("a"), mapped("b")),
        (totals(), totals(policy="skip")),
    ],
    ids=["other predicate", "step added", "step removed", "function on its own state", "policy"],
)
def test_obstacle_what_leaves_stored_state_alone_is_none(old, new) -> None:
    assert obstacle(old, new, converts=False) == ""


@pytest.mark.parametrize("converts", [True, False])
@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (totals(), totals(by="country"), "the aggregate uses a different key"),
        (totals(), totals(kind="stream"), "the output is now a stream"),
        (with_filter(), unit("out", source("people"), table("people")), "it reads different topics"),
        (seen(stateful=False), seen(), "the stateful function has no state yet"),
        (seen(), seen(stateful=False), "a stateful function was removed along with its state"),
        (with_filter(), unit("out", source("orders", key="x"), table("orders")), "the source uses a different key"),
    ],
)
def test_obstacle_what_moves_rows_to_other_keys_always_is(old, new, reason, converts) -> None:
    assert obstacle(old, new, converts=converts) == reason


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        (totals(result="mean(amount)"), "the aggregate now stores something different"),
        (
            unit("totals", source("orders", schema="id: str"), *totals().nodes[1:-1]),
            "the source now stores something different",
        ),
    ],
)
def test_obstacle_other_stored_values_are_one(new, reason) -> None:
    assert obstacle(totals(), new, converts=False) == reason


def test_obstacle_rows_with_other_columns_before_a_join_are_one() -> None:
    def version(columns: str) -> UnitPrint:
        select = node("a/select", "a/table", schema=part("schema", columns))
        join = node("out/join", "a/select", "b/table", stateful=True, schema=part("schema", "fixed by its joiner"))
        return unit("out", source("a"), table("a"), select, source("b"), table("b"), join)

    assert obstacle(version("x"), version("x, y"), converts=False) == "the join now stores something different"


def joined(*topics: str) -> UnitPrint:
    tables = [node for topic in topics for node in (source(topic), table(topic))]
    return unit("out", *tables, node("out/join", *(f"{topic}/table" for topic in topics), stateful=True))


def test_obstacle_sides_of_a_join_that_change_places_are_one() -> None:
    assert obstacle(joined("a", "b"), joined("a", "b"), converts=False) == ""
    assert obstacle(joined("a", "b"), joined("b", "a"), converts=False).startswith("its steps get their rows")


def test_obstacle_stream_that_gets_another_key_on_its_way_is_one() -> None:
    rekeyed = node("clicks/rekey", "clicks", by=part("grouping", "user"))
    again = node("clicks/stateful", "clicks/rekey", stateful=True, fn=part("function", "count"))
    new = unit("seen", source("clicks"), rekeyed, again, kind="stream")
    assert obstacle(seen(), new, converts=False) == "a rekey was added"
    assert obstacle(new, seen(), converts=False) == "a rekey was removed"


def test_obstacle_other_rows_between_a_table_and_its_aggregate_are_one() -> None:
    reason = "a filter was {} upstream of an aggregate that takes back what earlier rows added"
    last = grouped("totals/aggregate", "orders/table", "customer", "sum(amount)")
    without = unit("totals", *totals().nodes[:2], last)
    assert obstacle(totals(), totals(predicate="amount > 5"), converts=False) == reason.format("changed")
    assert obstacle(without, totals(), converts=False) == reason.format("added")
    assert obstacle(totals(), without, converts=False) == reason.format("removed")
