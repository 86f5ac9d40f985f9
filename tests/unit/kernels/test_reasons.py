"""Reasons of dead letters are the same in every process."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys

import pytest

import everstate as es
from everstate.kernels.reasons import stable

PROGRAM = """
import everstate as es

class Rate:
    pass

class Table:
    def __init__(self, names):
        self.names = names
    def __repr__(self):
        return f"Table({self.names})"

@es.declare(version="1", random=True)
def priced(row: dict) -> dict:
    if row["n"] == 1:
        raise ValueError(f"no {Rate()} among {set(row['names'])}, {Rate}, {Rate.__init__}")
    if row["n"] == 2:
        raise KeyError(Table(frozenset(row["names"])), {len, print})
    raise LookupError({"b": {1: {"x", "y", "zebra"}}}, lambda: 0, iter(()), "at 5 {not, a: set}")

def version():
    app = es.Service("docs")
    rows = app.stream("in", key="k", schema={"n": int, "names": list[str]})
    rows.map(priced, schema={"euro": float}).to("out")
    return app

driver = es.testing.Driver(version())
for n in (1, 2, 3):
    driver.send("in", "a", {"n": n, "names": ["usd", "eur", "chf", "gbp", "yen"]})
"""


def letters(seed):
    program = PROGRAM + "\nprint([record.value['reason'] for record in driver.records('out.dlq')])"
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout


@pytest.mark.slow
def test_reasons_of_two_processes_are_the_same():
    first, second = letters("1"), letters("2")
    assert first == second
    assert first.count("0x...") >= 3


def test_recalculation_of_unchanged_code_writes_no_dead_letter_again(tmp_path):
    (tmp_path / "priced.py").write_text(PROGRAM)
    scope = runpy.run_path(str(tmp_path / "priced.py"))
    driver, held = scope["driver"], [object() for _ in range(1000)]  # so that memory is not handed out again
    upgrade = driver.upgrade(scope["version"](), recalculate=["out"])
    assert upgrade.plan.action("out").kind == "recalculate"
    assert (upgrade.dead_letters, len(held)) == ([], 1000)
    assert len(driver.records("out.dlq")) == 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain text, with a comma", "plain text, with a comma"),
        ("{'b', 'a'}", "{'a', 'b'}"),
        ("frozenset({3, 1, 2})", "frozenset({1, 2, 3})"),
        ("{frozenset({2, 1}), frozenset({1})}", "{frozenset({1, 2}), frozenset({1})}"),
        ("{<Color.RED: 1>, <Color.BLUE: 2>}", "{<Color.BLUE: 2>, <Color.RED: 1>}"),
        ("{'b': 1, 'a': {2, 1}}", "{'b': 1, 'a': {1, 2}}"),
        ("{'b, c', 'a}'}", "{'a}', 'b, c'}"),
        ("it's a ( that {b, a} nobody closes", "it's a ( that {a, b} nobody closes"),
        ("<f at 0x7F12> and 0xdeadbeef", "<f at 0x...> and 0xdeadbeef"),
        ("{b, a", "{b, a"),
        ("}{)(", "}{)("),
        ("", ""),
    ],
)
def test_stable_reason_has_sets_in_order_and_no_addresses(text, expected):
    assert stable(text) == expected


@pytest.mark.slow
@pytest.mark.parametrize("operation", ["map", "filter", "process"])
def test_message_with_half_of_a_surrogate_pair_is_a_dead_letter_all_the_same(operation):
    def fails(row, *context):
        raise ValueError("\ud83d broken")

    app = es.Service("s")
    rows = app.stream("in", schema={"n": int})
    options = {} if operation == "filter" else {"schema": {"n": int}}
    getattr(rows, operation)(fails, **options).to("out")
    driver = es.testing.Driver(app)
    driver.send("in", "a", {"n": 1})
    (letter,) = driver.records("out.dlq")
    assert letter.value["reason"].startswith("ValueError: \\ud83d broken")


def test_stable_reason_of_a_long_text_takes_no_longer_than_reading_it():
    assert stable("{(" * 200_000) == "{(" * 200_000


def test_reasons_are_stable_whatever_reports_them():
    app = es.Service("docs")
    rows = app.table("in", key="k", schema={"k": str, "g": str, "n": int})

    def add(total, row):
        raise ValueError(object())

    rows.group_by("g").aggregate(lambda: {"n": 0}, add, schema={"n": int}).to("out")
    driver = es.testing.Driver(app)
    driver.send("in", "a", {"g": "x", "n": 1})
    assert "0x..." in driver.records("out.dlq")[0].value["reason"]
