"""Kafka Streams' published semantics, case by case, on the test driver.

pytest tests/conformance --cases DIR
"""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime
from typing import Any

import pytest

from everstate.errors import EverstateError
from everstate.testing import Driver
from tests.conformance.expectations import changes_after, final_table, rows_after, states, tables_after, waits
from tests.conformance.reading import missing
from tests.conformance.services import OUTPUT, sent, service_of


def _table(driver: Driver) -> dict[Any, Any]:
    table = driver.table(OUTPUT)
    return {_key(key): value["value"] if isinstance(value, dict) else value for key, value in table.items()}


def _key(key: Any) -> Any:
    """A key as a case writes it: times in milliseconds."""
    if not isinstance(key, tuple):
        return key
    return tuple(round(part.timestamp() * 1000) if isinstance(part, datetime) else part for part in key)


def _send(driver: Driver, case: dict[str, Any], record: dict[str, Any]) -> None:
    driver.send(record["topic"], *sent(case, record), ts=record["ts"])
    if case["operator"] != "stream_table_join":  # rows that wait go by the time of their own stream alone
        driver.advance()


def test_case_record_by_record_gives_expected_tables_and_writes_nothing_without_a_change(case: dict[str, Any]) -> None:
    if missing(case) is not None:
        pytest.skip(f"cannot be played: {missing(case)}")
    if case.get("expect_error"):
        _play_error(case)
    elif case["result_kind"] == "stream":
        _play_stream(case)
    else:
        _play_table(case)


def _play_error(case: dict[str, Any]) -> None:
    """The case stops with an error that has a name: when it is built, or with one of its inputs."""
    with pytest.raises(EverstateError):
        _play(case)


def _play(case: dict[str, Any]) -> None:
    driver = Driver(service_of(case))
    for record in case["inputs"]:
        _send(driver, case, record)


def _play_table(case: dict[str, Any]) -> None:
    driver = Driver(service_of(case))
    expected, stated, changes = tables_after(case), states(case), changes_after(case)
    for number, record in enumerate(case["inputs"]):
        before, written = _table(driver), len(driver.records(OUTPUT))
        _send(driver, case, record)
        after, where = _table(driver), f"after input {number}: {record}"
        if expected is not None:
            assert after == expected[number], where
        if number + 1 in stated:
            assert after == stated[number + 1], where
        named = changes.get(number + 1, {})
        assert {key: after.get(key) for key in named} == named, where
        changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
        assert {_key(r.key) for r in driver.records(OUTPUT)[written:]} == changed, where
    if waits(case):
        driver.advance(max(record["ts"] for record in case["inputs"]) + waits(case))
    final = final_table(case)
    if final is not None:
        assert _table(driver) == final
    if "late_inputs" in case:
        assert driver.counts(OUTPUT).get("dropped.late", 0) == len(case.get("late_inputs") or ())


def _play_stream(case: dict[str, Any]) -> None:
    """The inputs give the rows that the case says; one that is late need not give any."""
    driver, late = Driver(service_of(case)), case.get("late_inputs") or ()
    expected, since, written = rows_after(case), 0, 0
    for number, record in enumerate(case["inputs"]):
        _send(driver, case, record)
        if number + 1 not in expected:
            continue
        rows = driver.records(OUTPUT)
        found = Counter((row.key, row.value) for row in rows[written:])
        wanted = Counter((output["key"], output["value"]) for output in expected[number + 1])
        excused = any(since <= place <= number for place in late) and not found - wanted
        assert found == wanted or excused, f"after input {number}: {record}"
        since, written = number + 1, len(rows)


@pytest.mark.slow
def test_case_cut_anyhow_gives_expected_final_table(built_case: dict[str, Any]) -> None:
    final = final_table(built_case)
    streams, fails = built_case["result_kind"] == "stream", built_case.get("expect_error")
    if built_case["batching"] != "any" or streams or fails or final is None:
        return
    for cut in range(5):
        chance = random.Random(cut)
        driver = Driver(service_of(built_case), shards=1 + cut % 3)
        rest = list(built_case["inputs"])
        while rest:
            size = len(rest) if cut == 0 else chance.randint(1, len(rest))
            with driver.batch():
                for record in rest[:size]:
                    driver.send(record["topic"], *sent(built_case, record), ts=record["ts"])
            rest = rest[size:]
        assert _table(driver) == final
