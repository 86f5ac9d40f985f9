"""Kafka Streams' published semantics, case by case, on the test driver.

pytest tests/conformance --cases DIR
"""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime
from typing import Any

import pytest

from everstate.testing import Driver
from tests.conformance.expectations import final_table, states, tables_after, waits
from tests.conformance.services import OUTPUT, missing, service_of


def _table(driver: Driver) -> dict[Any, Any]:
    table = driver.table(OUTPUT)
    return {_key(key): value["value"] if isinstance(value, dict) else value for key, value in table.items()}


def _key(key: Any) -> Any:
    """A key as a case writes it: times in milliseconds."""
    if not isinstance(key, tuple):
        return key
    return tuple(round(part.timestamp() * 1000) if isinstance(part, datetime) else part for part in key)


def _send(driver: Driver, record: dict[str, Any]) -> None:
    driver.send(record["topic"], record["key"], record["value"], ts=record["ts"])
    driver.advance()


def test_case_record_by_record_gives_expected_tables_and_writes_nothing_without_a_change(case: dict[str, Any]) -> None:
    if missing(case) is not None:
        pytest.skip(f"not built yet: {missing(case)}")
    if case["result_kind"] == "stream":
        _play_stream(case)
        return
    driver = Driver(service_of(case))
    expected, stated = tables_after(case), states(case)
    for number, record in enumerate(case["inputs"]):
        before, written = _table(driver), len(driver.records(OUTPUT))
        _send(driver, record)
        after = _table(driver)
        if expected is not None:
            assert after == expected[number], f"after input {number}: {record}"
        if number + 1 in stated:
            assert after == stated[number + 1], f"after input {number}: {record}"
        changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
        assert {_key(r.key) for r in driver.records(OUTPUT)[written:]} == changed, f"after input {number}: {record}"
    if waits(case):
        driver.advance(max(record["ts"] for record in case["inputs"]) + waits(case))
    final = final_table(case)
    if final is not None:
        assert _table(driver) == final
    assert driver.counts(OUTPUT).get("dropped.late", 0) == len(case.get("late_inputs") or ())


def _play_stream(case: dict[str, Any]) -> None:
    """Each input gives the rows that the case says; one that is late need not give any."""
    driver, late = Driver(service_of(case)), case.get("late_inputs") or ()
    if "grace_ms" in case["params"] and case["operator"] == "stream_table_join":
        _play_waiting(driver, case)
        return
    for number, record in enumerate(case["inputs"]):
        written = len(driver.records(OUTPUT))
        _send(driver, record)
        found = Counter((row.key, row.value) for row in driver.records(OUTPUT)[written:])
        wanted = Counter((output["key"], output["value"]) for output in case["expected_per_record"][number])
        assert found == wanted or (number in late and not found - wanted), f"after input {number}: {record}"


def _play_waiting(driver: Driver, case: dict[str, Any]) -> None:
    """Rows that wait come out when time has passed, where Kafka Streams lets the next row of the stream do it."""
    for record in case["inputs"]:
        _send(driver, record)
    found = Counter((row.key, row.value) for row in driver.records(OUTPUT))
    assert found == Counter((output["key"], output["value"]) for output in case["expected_final"])


@pytest.mark.slow
def test_case_cut_anyhow_gives_expected_final_table(built_case: dict[str, Any]) -> None:
    final = final_table(built_case)
    if built_case["batching"] != "any" or built_case["result_kind"] == "stream" or final is None:
        return
    for cut in range(5):
        chance = random.Random(cut)
        driver = Driver(service_of(built_case), shards=1 + cut % 3)
        rest = list(built_case["inputs"])
        while rest:
            size = len(rest) if cut == 0 else chance.randint(1, len(rest))
            with driver.batch():
                for record in rest[:size]:
                    driver.send(record["topic"], record["key"], record["value"], ts=record["ts"])
            rest = rest[size:]
        assert _table(driver) == final
