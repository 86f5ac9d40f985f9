"""What is accepted as a row expression is what works row by row, for every function that Polars has."""

from __future__ import annotations

import json
import warnings

import polars as pl
import pytest

from everstate.errors import UnsupportedError
from everstate.kernels.expressions import select_rows
from everstate.topology.expressions.rows import check, offence
from tests.unit.topology.expressions.catalogue import (
    GOLDEN,
    SCHEMA,
    built,
    lines,
    mentioned,
    public,
    rows_frame,
    written,
)
from tests.unit.topology.expressions.oracle import differs

pytestmark = pytest.mark.slow

ROWS, REFUSED = lines("rows"), lines("refused")
VERSIONS = sorted(GOLDEN.glob("polars-*.json"))
FRAME, STRANGERS = rows_frame(24, 1), rows_frame(5, 101)

#: Refused, though the rows above give the same in every cut: what they depend on is not in these rows, or not in rows
#: at all (versions of Polars, the process, Python code), or Polars does not promise it.
UNSEEN = (
    "Categorical",
    "ext.",
    "fold(",
    "format",
    "hash(",
    "hist(",
    "bin_intervals(",
    "cut(",
    "inspect(",
    "is_empty(",
    "lower_bound(",
    "map_",
    "name.",
    "over(",
    "pipe_with_dtype(",
    "pl.cum_sum_horizontal(",
    "pl.ones(",
    "pl.repeat(",
    "pl.zeros(",
    "reduce(",
    "rolling_",
    "search_sorted(",
    "bitwise_and()",
    "set_sorted(",
    "shuffle(seed=1)",
    "strptime(",
    "to_date(",
    "to_datetime(",
    "to_time(",
    "upper_bound(",
    "value_counts(",
    "mode(",
)


def known(calls: list[str]) -> list[str]:
    """Those that the Polars at hand has."""
    names = public()
    return [call for call in calls if all(n in names or "." not in n for n in mentioned(call))]


def difference(call: str) -> str | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return differs(built(call), FRAME, STRANGERS, select_rows)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            return str(error)


def test_catalogue_has_every_function_of_this_polars() -> None:
    named = {name for call in ROWS + REFUSED for name in mentioned(call)}
    assert public() - named - {"pl.struct_with_fields", "pl.self_dtype"} == set(), "nobody has looked at these"


@pytest.mark.parametrize("call", known(ROWS))
def test_expression_that_works_row_by_row_is_accepted_and_does(call: str) -> None:
    check(built(call), SCHEMA, None)
    assert difference(call) is None


@pytest.mark.parametrize("call", known(REFUSED))
def test_expression_that_needs_more_than_its_row_is_refused(call: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        check(built(call), SCHEMA, None)
    assert caught.value.hint


@pytest.mark.parametrize("call", [call for call in known(REFUSED) if not any(word in call for word in UNSEEN)])
def test_expression_that_is_refused_depends_on_more_than_its_row(call: str) -> None:
    assert difference(call) is not None


@pytest.mark.parametrize("file", VERSIONS, ids=lambda file: file.stem)
def test_expressions_of_another_polars_get_the_same_verdict(file) -> None:
    trees = json.loads(file.read_text())
    assert len(trees) > 500
    verdicts = {call: offence(tree, _types) is None for call, tree in trees.items()}
    assert {call for call, fine in verdicts.items() if fine} == set(ROWS) & set(trees)


def test_expressions_of_this_polars_are_written_as_its_golden_file_says() -> None:
    file = GOLDEN / f"polars-{pl.__version__}.json"
    assert file in VERSIONS, "run tests/unit/topology/expressions/catalogue.py with this version of Polars"
    assert json.loads(file.read_text()) == json.loads(json.dumps(written()))


@pytest.mark.parametrize(
    "tree",
    [
        {"Function": {"input": [{"Column": "i"}], "function": "Novel"}},
        {"Function": {"input": [{"Column": "i"}], "function": {"StringExpr": "Novel"}}},
        {"Function": {"input": [{"Column": "i"}], "function": {"Abs": {"over": ["b"]}, "more": 1}}},
        {"Novel": {"input": {"Column": "i"}}},
        {"BinaryExpr": [{"Column": "i"}, {"Column": "j"}]},
        {"Eval": {"expr": {"Column": "l"}, "evaluation": "Element", "variant": "Novel"}},
        "Novel",
    ],
)
def test_node_that_nobody_has_looked_at_is_refused(tree) -> None:
    assert offence(tree, _types) is not None


def _types(tree) -> list[pl.DataType] | None:
    """The type of a list column, or of a list that is put together."""
    text = json.dumps(tree)
    lists = '"ListExpr": "Concat"' in text or any(f'{{"Column": "{name}"}}' == text for name in ("l", "ls"))
    return [pl.List(pl.Int64)] if lists else [pl.Int64()]
