from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars import col

import everstate as es
from everstate.kernels.operations.fold import fold
from tests.effort import examples

SCHEMA = {"id": str, "g": str | None, "x": int}
UNLUCKY = 13


def source(kind: str) -> Any:
    return getattr(es.Service("s"), kind)("in", key="id", schema=SCHEMA)


def add(total: int, row: dict[str, Any]) -> int:
    if row["x"] == UNLUCKY:
        raise ValueError("unlucky")
    return total + row["x"]


def remove(total: int, row: dict[str, Any]) -> int:
    if row["x"] == UNLUCKY:
        raise AssertionError("was never added")
    return total - row["x"]


def append(names: list[str], row: dict[str, Any]) -> list[str]:
    names.append(row["id"])  # in place, as users do
    if row["x"] == UNLUCKY:
        raise ValueError("unlucky")
    return names


values = st.fixed_dictionaries(
    {"g": st.sampled_from(["A", "A", "B", None]), "x": st.sampled_from([1, 2, 3, -4, UNLUCKY])}
)
histories = st.lists(
    st.lists(st.tuples(st.sampled_from("abcde"), values | st.none(), st.integers(0, 5)), min_size=2, max_size=6),
    min_size=3,
    max_size=7,
)
layouts = st.tuples(st.integers(1, 3), st.integers(1, 2))
thorough = settings(max_examples=examples(30), deadline=None, suppress_health_check=list(HealthCheck))


def live_groups(latest: dict[str, dict[str, Any] | None]) -> dict[str, list[tuple[str, int]]]:
    """(key, x) by group, without the unlucky ones."""
    groups: dict[str, list[tuple[str, int]]] = {}
    for key, value in sorted(latest.items()):
        if value is not None and value["g"] is not None and value["x"] != UNLUCKY:
            groups.setdefault(value["g"], []).append((key, value["x"]))
    return groups


@thorough
@given(history=histories, layout=layouts)
def test_aggregate_with_remove_random_table_equals_a_run_from_scratch(flow, history, layout):
    run = flow(fold, source("table").group_by("g").aggregate(lambda: 0, add, remove, schema=int), *layout)
    latest: dict[str, dict[str, Any] | None] = {}
    for batch in history:
        latest |= {key: value for key, value, _ in batch}
        run.send(*batch)
        assert run.values("value") == {group: sum(x for _, x in rows) for group, rows in live_groups(latest).items()}


@thorough
@given(history=histories, layout=layouts)
def test_aggregate_without_remove_random_table_folds_again_in_key_order(flow, history, layout):
    run = flow(fold, source("table").group_by("g").aggregate(list, append, schema=list[str]), *layout)
    latest: dict[str, dict[str, Any] | None] = {}
    for batch in history:
        latest |= {key: value for key, value, _ in batch}
        run.send(*batch)
        assert run.values("value") == {group: [key for key, _ in rows] for group, rows in live_groups(latest).items()}


@thorough
@given(history=histories, layout=layouts)
def test_reduce_with_remove_random_table_equals_a_run_from_scratch(flow, history, layout):
    def plus(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
        return {**right, "x": left["x"] + right["x"]}

    def minus(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
        return {**left, "x": left["x"] - right["x"]}

    run = flow(fold, source("table").group_by("g").reduce(plus, minus), *layout)
    latest: dict[str, dict[str, Any] | None] = {}
    for batch in history:
        latest |= {key: value for key, value, _ in batch}
        run.send(*batch)
        wanted: dict[str, int] = {}
        for value in latest.values():
            if value is not None and value["g"] is not None:
                wanted[value["g"]] = wanted.get(value["g"], 0) + value["x"]
        assert run.values("x") == wanted


@thorough
@given(history=histories, layout=layouts)
def test_aggregate_of_a_random_stream_adds_in_order_of_stream_time(flow, history, layout):
    run = flow(
        fold, source("stream").group_by("g").aggregate(str, lambda text, row: f"{text}{row['x']},", schema=str), *layout
    )
    wanted: dict[str, str] = {}
    offset = 0
    for records in history:
        batch = [record for record in records if record[1] is not None]
        places = []
        for place, (_, value, ts) in enumerate(batch):
            places.append((ts, offset + place, value))
        offset += len(batch)
        for _, _, value in sorted(places, key=lambda place: place[:2]):
            if value["g"] is not None:
                wanted[value["g"]] = wanted.get(value["g"], "") + f"{value['x']},"
        run.send(*batch)
    assert run.values("value") == wanted


def test_add_that_raises_is_a_dead_letter_and_its_retraction_is_passed_over(flow):
    run = flow(fold, source("table").group_by("g").aggregate(lambda: 0, add, remove, schema=int))
    run.send(("a", {"g": "A", "x": 1}, 1), ("b", {"g": "A", "x": UNLUCKY}, 2))
    assert run.values("value") == {"A": 1}
    letters = run.ledger.letters()
    assert letters.select("$key", "$off").rows() == [(b"b", 1)]
    assert letters["reason"][0].startswith("ValueError: unlucky (")
    assert "test_fold.py:" in letters["reason"][0]
    run.send(("b", {"g": "A", "x": 5}, 3))
    assert run.values("value") == {"A": 6}
    run.send(("b", None, 4), ("a", None, 5))
    assert run.table == {}
    assert run.ledger.letters().height == 1


def test_remove_that_raises_leaves_the_aggregate_and_is_a_dead_letter_of_its_cause(flow):
    run = flow(fold, source("table").group_by("g").aggregate(lambda: 0, lambda a, r: a + r["x"], remove, schema=int))
    run.send(("a", {"g": "A", "x": UNLUCKY}, 1), ("b", {"g": "A", "x": 1}, 2))
    run.send(("a", {"g": "A", "x": 2}, 3))
    assert run.values("value") == {"A": UNLUCKY + 1 + 2}
    assert run.ledger.letters()["$off"].to_list() == [2]
    run.send(("a", None, 4), ("b", None, 5))
    assert run.table == {}


def test_result_of_another_type_is_a_dead_letter_of_the_row_that_caused_it(flow):
    def confused(total: int, row: dict[str, Any]) -> Any:
        return "many" if row["x"] > 2 else total + row["x"]

    run = flow(fold, source("stream").group_by("g").aggregate(lambda: 0, confused, schema=int))
    run.send(("a", {"g": "A", "x": 1}, 1), ("b", {"g": "A", "x": 3}, 2), ("c", {"g": "A", "x": 2}, 3))
    assert run.values("value") == {"A": 3}
    assert run.ledger.letters()["$off"].to_list() == [1]
    assert "wrong result" in run.ledger.letters()["reason"][0]


def test_init_that_raises_is_a_dead_letter_of_the_row(flow):
    def broken() -> int:
        raise KeyError("nothing to begin with")

    run = flow(fold, source("stream").group_by("g").aggregate(broken, add, schema=int))
    run.send(("a", {"g": "A", "x": 1}, 1))
    assert run.table == {}
    assert run.ledger.letters()["reason"][0].startswith("KeyError")


@pytest.mark.parametrize("kind", ["table", "stream"])
def test_function_that_returns_none_deletes_the_aggregate_until_the_next_row(flow, kind):
    def clear_on_zero(total: int, row: dict[str, Any]) -> int | None:
        return total + row["x"] if row["x"] else None

    grouped = source(kind).group_by("g")
    run = flow(fold, grouped.aggregate(lambda: 100, clear_on_zero, lambda a, r: a - r["x"], schema=int))
    run.send(("a", {"g": "A", "x": 1}, 1))
    assert run.values("value") == {"A": 101}
    gone = run.send(("b", {"g": "A", "x": 0}, 2))
    assert gone["$op"].to_list() == [-1]
    run.send(("c", {"g": "A", "x": 7}, 3))
    assert run.values("value") == {"A": 107}


def test_refused_contribution_without_remove_is_reported_once(flow):
    run = flow(fold, source("table").group_by("g").aggregate(list, append, schema=list[str]))
    run.send(("a", {"g": "A", "x": 1}, 1), ("b", {"g": "A", "x": UNLUCKY}, 2))
    run.send(("c", {"g": "A", "x": 1}, 3))
    run.send(("d", {"g": "A", "x": 1}, 4))
    assert run.values("value") == {"A": ["a", "c", "d"]}
    assert run.ledger.letters()["$off"].to_list() == [1]


def test_update_in_one_group_removes_the_old_value_then_adds_the_new_one(flow):
    table = es.Service("s").table("in", key="id", schema=str)
    run = flow(
        fold,
        table.group_by("id").aggregate(lambda: "0", lambda a, v: f"{a}+{v}", lambda a, v: f"{a}-{v}", schema=str),
    )
    run.send(("A", {"value": "1"}, 10))
    run.send(("A", {"value": "3"}, 15))
    assert run.values("value") == {"A": "0+1-1+3"}
    assert run.times == {b"A": 15}
    run.send(("A", None, 18))
    run.send(("A", {"value": "4"}, 11))
    assert run.values("value") == {"A": "0+4"}


def test_reduce_of_scalars_begins_with_the_first_value(flow):
    stream = es.Service("s").stream("in", key="id", schema=int)
    run = flow(fold, stream.group_by("id").reduce(max))
    run.send(("A", {"value": 1}, 1), ("A", {"value": 5}, 2), ("A", {"value": 3}, 3))
    assert run.values("value") == {"A": 5}


def test_group_key_of_an_input_column_name_leaves_the_row_as_it_was(flow):
    stream = source("stream").group_by(g=col("g") + "!")
    run = flow(fold, stream.aggregate(str, lambda text, row: text + row["g"], schema=str))
    run.send(("a", {"g": "A", "x": 1}, 1))
    assert run.values("value") == {"A!": "A"}


def test_nested_aggregate_survives_the_store(flow):
    schema = {"names": list[str], "seen": dict[str, int]}

    def note(value: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
        value["names"].append(row["id"])
        value["seen"][row["id"]] = row["x"]
        return value

    run = flow(fold, source("stream").group_by("g").aggregate(lambda: {"names": [], "seen": {}}, note, schema=schema))
    run.send(("b", {"g": "A", "x": 1}, 1))
    run.send(("a", {"g": "A", "x": 2}, 2))
    assert run.values("names") == {"A": ["b", "a"]}
    assert run.values("seen") == {"A": [{"key": "a", "value": 2}, {"key": "b", "value": 1}]}
