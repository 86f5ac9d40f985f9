from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import everstate as es
from everstate import col
from everstate.topology.fingerprint import fingerprint


def unit_of(build, schema=int):
    app = es.Service("s")
    build(app.table("in", schema=schema)).to("out")
    return app.units()[0]


def test_fingerprint_of_an_equal_service_is_equal() -> None:
    assert fingerprint(unit_of(lambda t: t.filter(col("value") > 1))) == fingerprint(
        unit_of(lambda t: t.filter(col("value") > 1))
    )


def test_fingerprint_changes_with_a_constant_in_an_expression() -> None:
    assert fingerprint(unit_of(lambda t: t.filter(col("value") > 1))) != fingerprint(
        unit_of(lambda t: t.filter(col("value") > 2))
    )


def test_fingerprint_changes_with_a_constant_in_a_function() -> None:
    assert fingerprint(unit_of(lambda t: t.filter(lambda v: v > 1))) != fingerprint(
        unit_of(lambda t: t.filter(lambda v: v > 2))
    )


def test_fingerprint_changes_with_a_closure_value_and_a_default() -> None:
    def above(limit):
        return lambda v: v > limit

    def default(limit):
        return lambda v, limit=limit: v > limit

    assert fingerprint(unit_of(lambda t: t.filter(above(1)))) != fingerprint(unit_of(lambda t: t.filter(above(2))))
    assert fingerprint(unit_of(lambda t: t.filter(default(1)))) != fingerprint(unit_of(lambda t: t.filter(default(2))))


def test_fingerprint_changes_with_the_schema() -> None:
    assert fingerprint(unit_of(lambda t: t)) != fingerprint(unit_of(lambda t: t, schema=float))


PROGRAM = """
import everstate as es
from everstate.topology.fingerprint import fingerprint

class Limit:
    def __init__(self, limit): self.limit = limit
    def __call__(self, value): return value > self.limit

def helper(limit):
    inner = lambda value: value > limit
    other = Limit(3)
    return lambda value: inner(value) and other(value) and value in {"a", "b"}

app = es.Service("s")
app.table("in", schema=int).filter(helper(2)).filter(Limit(5)).to("out")
print(fingerprint(app.units()[0]))
"""


def test_fingerprint_is_the_same_in_every_process(tmp_path: Path) -> None:
    file = tmp_path / "service.py"
    file.write_text(PROGRAM)
    seen = {
        subprocess.run(
            [sys.executable, str(file)], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1
