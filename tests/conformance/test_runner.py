"""The runner takes types and shapes from the case, whatever a case brings."""

from __future__ import annotations

import json
from typing import Any

import pytest

from everstate.testing import Driver
from tests.conformance.conftest import HERE
from tests.conformance.functions import kind_of
from tests.conformance.reading import missing, read
from tests.conformance.services import OUTPUT, service_of


def played(operator: str, params: dict[str, Any], inputs: list[tuple[str, Any, Any]]) -> dict[Any, Any]:
    records = [{"topic": topic, "key": key, "value": value, "ts": n} for n, (topic, key, value) in enumerate(inputs)]
    driver = Driver(service_of({"operator": operator, "params": params, "inputs": records}))
    for record in records:
        driver.send(record["topic"], record["key"], record["value"], ts=record["ts"])
    assert driver.records(f"{OUTPUT}.dlq") == []
    return {key: v["value"] if isinstance(v, dict) else v for key, v in driver.table(OUTPUT).items()}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2], int),
        ([1, 2.5], float),
        (["a", None], str),
        ([None], str),
        ([True], bool),
        ([[1], [2]], list[int]),
        ([[], ["a"]], list[str]),
        ([[1, 2.5]], list[float]),
        ([[[1]]], list[list[int]]),
    ],
)
def test_type_of_a_case_is_that_of_its_values(values, kind) -> None:
    assert kind_of(values) == kind


@pytest.mark.parametrize("values", [(1, 2), ("a", "b"), (0.5, 1.5)])
def test_elements_of_a_set_have_the_type_of_the_case(values) -> None:
    params = {
        "agg": "aggregate",
        "group_by": "identity",
        "initializer": [],
        "adder": {"fn": "set_union"},
        "subtractor": {"fn": "set_difference"},
    }
    one, two = values
    assert played("stream_aggregate", params, [("in", "k", one), ("in", "k", two), ("in", "k", one)]) == {
        "k": [one, two]
    }
    assert played("table_aggregate", params, [("in", "k", one), ("in", "k", two)]) == {"k": [two]}


def test_join_of_lists_keeps_the_type_of_their_elements() -> None:
    params = {"join": "left", "joiner": {"fn": "sum"}}
    inputs = [("left", "k", [1, 2]), ("right", "k", [3])]
    assert played("table_table_join", {**params, "join": "inner"}, inputs) == {"k": [1, 2, 3]}


def test_chain_with_a_foreign_key_join_has_the_left_table_on_the_left() -> None:
    params = {"join": "left", "joiner": {"fn": "paren"}, "fk_extractor": "after_pipe"}
    inputs = [("left", "l1", "a|r1"), ("right", "r1", "x"), ("left", "l2", "b|r9")]
    assert played("fk_join_then_table_join", params, inputs) == {
        "l1": "(a|r1,(a|r1,x))",
        "l2": "(b|r9,(b|r9,null))",
    }


def test_chain_with_an_inner_foreign_key_join_and_a_left_join_keeps_the_left_row() -> None:
    params = {"join": "inner", "then_join": "left", "joiner": {"fn": "paren"}, "fk_extractor": "after_pipe"}
    assert played("fk_join_then_table_join", params, [("left", "l1", "a|r1")]) == {"l1": "(a|r1,null)"}


def case(**parts: Any) -> dict[str, Any]:
    """A case that can be played, but for what is given here."""
    known: dict[str, Any] = {
        "operator": "window_aggregate",
        "params": {"window": "tumbling", "size_ms": 10, "grace_ms": 0, "agg": "count"},
        "inputs": [{"topic": "in", "key": "a", "value": "b", "ts": 1}],
        "expected_final": [],
    }
    return {**known, **parts}


def of_windows(**parts: Any) -> dict[str, Any]:
    """Parameters of an aggregation in windows."""
    return {**case()["params"], **parts}


SUPPRESSED = {"operator": "suppress_changelog", "inputs": [{"topic": "changelog", "key": "a", "value": 1, "ts": 1}]}


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"operator": "cogroup"}, "the operator 'cogroup' is not known"),
        ({"params": of_windows(window="calendar")}, "the window 'calendar' is not known"),
        ({"params": of_windows(agg="reduce", adder={"fn": "xor"})}, "the function 'xor' is not known"),
        ({"params": of_windows(agg="histogram")}, "its params have no 'adder'"),
        ({"params": of_windows(grace_ms=-1)}, "Everstate refuses it: grace='-1ms' is not a duration"),
        ({"inputs": [{"topic": "other", "key": "a", "value": "b", "ts": 1}]}, "window_aggregate does not read other"),
        ({"inputs": [{"topic": "in", "key": "a", "value": "b"}]}, "it does not say: ts of an input"),
        ({"inputs": [{"topic": "in", "key": "a", "value": {"b": 1}, "ts": 1}]}, "values of one topic have one plain"),
        ({"expected_final": None}, "it does not say what is expected"),
        ({**SUPPRESSED, "params": {"suppress": {"type": "until_time_limit", "max_bytes": 9}}}, "suppress by max_bytes"),
        ({**SUPPRESSED, "params": {"suppress": {"type": "until_window_closes", "wait_ms": 0}}}, "has no window"),
    ],
)
def test_case_that_cannot_be_played_says_why(tmp_path, parts, reason) -> None:
    (tmp_path / "others.json").write_text(json.dumps([case(**parts)]))
    (found,) = read(tmp_path).values()
    assert reason in str(missing(found))


@pytest.mark.parametrize(
    ("text", "reason"),
    [("{", "is not JSON"), ('"cases"', "holds no list of cases"), ("[1]", "holds no list of cases"), ("[]", "no conf")],
)
def test_folder_without_cases_is_refused(tmp_path, text, reason) -> None:
    (tmp_path / "others.json").write_text(text)
    with pytest.raises(ValueError, match=reason):
        read(tmp_path)


def test_case_needs_no_name_no_kind_and_no_batching(tmp_path) -> None:
    (tmp_path / "others.json").write_text(json.dumps({"cases": [case(), case()]}))
    assert [missing(found) for found in read(tmp_path).values()] == [None, None]


def test_all_cases_of_this_folder_are_played() -> None:
    reasons = {name: missing(found) for name, found in read(HERE).items()}
    assert {name: reason for name, reason in reasons.items() if reason} == {}
    assert len(reasons) == 158
