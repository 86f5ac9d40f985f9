"""Expressions count by their structure, whichever version of Polars wrote them."""

from __future__ import annotations

import json

import polars as pl
import pytest
from polars import col, lit

from everstate.errors import FingerprintError
from everstate.fingerprints.expressions import canonical, expression
from everstate.fingerprints.tree import digest
from tests.unit.fingerprints.expressions import GOLDEN, expressions, written

VERSIONS = sorted(GOLDEN.glob("polars-*.json"))
DIGESTS = json.loads((GOLDEN / "expressions.json").read_text())


def digest_of(given: pl.Expr) -> str:
    return digest(expression(given))


@pytest.mark.parametrize("file", VERSIONS, ids=lambda file: file.stem)
def test_expressions_of_an_earlier_polars_have_the_digests_of_today(file) -> None:
    known = json.loads(file.read_text())
    assert {name: digest(canonical(*forms)) for name, forms in known.items()} == DIGESTS


def test_expressions_of_this_polars_have_the_digests_of_the_golden_file() -> None:
    assert {name: digest_of(given) for name, given in expressions().items()} == DIGESTS


def test_expressions_of_this_polars_are_written_as_its_golden_file_says() -> None:
    file = GOLDEN / f"polars-{pl.__version__}.json"
    assert file in VERSIONS, "run tests/unit/fingerprints/expressions.py with this version of Polars"
    assert json.loads(file.read_text()) == json.loads(json.dumps(written()))


def test_expressions_of_other_meaning_have_other_digests() -> None:
    assert len(set(DIGESTS.values())) == len(DIGESTS)


PAIRS = {
    "value": (col("a") > 1, col("a") > 2),
    "type of a number": (col("a") > 1, col("a") > 1.0),
    "typed literal": (lit(1, dtype=pl.Int8), lit(1, dtype=pl.Int16)),
    "sign of an infinity": (col("a") > float("inf"), col("a") > float("-inf")),
    "NaN and infinity": (lit(float("nan")), lit(float("inf"))),
    "which of two is infinite": (
        pl.when("a").then(float("inf")).otherwise(float("nan")),
        pl.when("a").then(float("nan")).otherwise(float("inf")),
    ),
    "list": (col("a").is_in([1, 2]), col("a").is_in([1, 3])),
    "type of a list": (col("a").is_in([1, 2]), col("a").is_in([1.0, 2.0])),
    "order of operands": (col("a") - col("b"), col("b") - col("a")),
    "flag": (col("s").str.contains("a"), col("s").str.contains("a", literal=True)),
    "option": (col("a").is_between(1, 2), col("a").is_between(1, 2, closed="none")),
    "strictness": (col("a").cast(pl.Int64), col("a").cast(pl.Int64, strict=False)),
    "degrees of freedom": (col("a").std(), col("a").std(ddof=0)),
    "name": (col("a").alias("x"), col("a").alias("y")),
    "texts of a format": (pl.format("{}-{}", "a", "b"), pl.format("{}_{}", "a", "b")),
}


@pytest.mark.parametrize(("one", "other"), PAIRS.values(), ids=PAIRS)
def test_expression_of_another_value_differs(one, other) -> None:
    assert digest_of(one) != digest_of(other)


def test_expression_written_in_another_way_is_the_same() -> None:
    assert digest_of(col("a").eq(1)) == digest_of(col("a") == 1)
    assert digest_of((col("a") * 2).alias("b")) == digest_of(col("a").mul(2).alias("b"))


def test_expression_with_fields_that_are_off_is_the_same_as_without() -> None:
    (known, text) = json.loads(VERSIONS[-1].read_text())["contains"]
    later = json.loads(json.dumps(known).replace('"literal": false', '"literal": false, "added": false, "more": null'))
    assert later != known
    assert digest(canonical(later, text)) == digest(canonical(known, text))


@pytest.mark.parametrize(
    "given",
    [
        col("a").map_elements(lambda value: [value], return_dtype=pl.List(pl.Int64)),
        col("a").map_batches(lambda values: values, return_dtype=pl.Int64),
        col("a").name.map(lambda name: name + "x"),
    ],
)
def test_expression_with_a_python_function_is_refused(given) -> None:
    with pytest.raises(FingerprintError, match="Python function"):
        expression(given)


def test_expression_with_a_pickled_function_is_refused() -> None:
    pickled = {"AnonymousFunction": {"input": [{"Column": "a"}], "function": [80, 76, 80, 89, 70, 78]}}
    with pytest.raises(FingerprintError, match="Python function"):
        canonical(pickled, "a.map()")


def test_expression_of_a_plugin_without_a_package_is_refused() -> None:
    plugin = {"FfiPlugin": {"lib": "/home/me/libmine.so", "symbol": "f", "kwargs": []}}
    with pytest.raises(FingerprintError, match=r"libmine\.so"):
        canonical({"Function": {"input": [{"Column": "a"}], "function": plugin}}, "a.f()")
