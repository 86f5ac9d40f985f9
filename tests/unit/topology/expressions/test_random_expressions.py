"""Random nested expressions of what is accepted: the same digits whatever rows they are evaluated with."""

from __future__ import annotations

import polars as pl
import pytest

from everstate.fingerprints.expressions import expression as fingerprint
from everstate.fingerprints.tree import digest
from everstate.kernels.expressions import select_rows
from everstate.topology.expressions.rows import check
from tests.unit.topology.expressions.catalogue import SCHEMA, rows_frame
from tests.unit.topology.expressions.grammar import Grammar
from tests.unit.topology.expressions.oracle import differs

pytestmark = pytest.mark.slow


def tried(seeds: range) -> tuple[int, list[str]]:
    """How many expressions could be evaluated, and what was wrong with any of them."""
    evaluated, wrong = 0, []
    for seed in seeds:
        expression = Grammar(seed, depth=2 + seed % 3).expression()
        frame, strangers = rows_frame(16, seed % 7), rows_frame(4, 90 + seed % 5)
        try:
            frame.select(expression)
        except pl.exceptions.PolarsError:
            continue
        evaluated += 1
        check(expression, SCHEMA, None)
        digest(fingerprint(expression))
        found = differs(expression, frame, strangers, select_rows)
        if found is not None:
            wrong.append(f"{seed}: {expression}: {found}")
    return evaluated, wrong


@pytest.mark.parametrize("part", range(4))
def test_random_expressions_give_the_same_in_every_cut(part) -> None:
    evaluated, wrong = tried(range(part * 60, part * 60 + 60))
    assert wrong == []
    assert evaluated > 40


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
def test_thousands_of_random_expressions_give_the_same_in_every_cut(part) -> None:
    evaluated, wrong = tried(range(1000 + part * 400, 1400 + part * 400))
    assert wrong == []
    assert evaluated > 250
