from __future__ import annotations

import polars as pl
import pytest

import everstate as es
from everstate import col
from everstate.kernels.expressions import select_rows

VALUES = list(range(1, 42))
WHOLE = select_rows(pl.DataFrame({"a": VALUES}), [col("a") / 7])["a"].to_list()


def parts(size):
    return [pl.DataFrame({"a": VALUES[place : place + size]}) for place in range(0, len(VALUES), size)]


@pytest.mark.parametrize("size", [1, 2, 5, 40])
def test_select_rows_gives_the_same_digits_however_the_rows_are_cut(size):
    found = [value for part in parts(size) for value in select_rows(part, [col("a") / 7])["a"]]
    assert found == WHOLE


def test_select_rows_gives_the_same_digits_for_many_small_chunks():
    assert select_rows(pl.concat(parts(1)), [col("a") / 7])["a"].to_list() == WHOLE


def test_select_rows_gives_the_same_digits_for_a_repeated_value():
    repeated = pl.DataFrame({"b": [1, 2]}).with_columns(a=pl.lit(VALUES[4]))
    assert select_rows(repeated, [col("a") / 7])["a"].to_list() == [WHOLE[4]] * 2


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 2, 5, 40, 41])
def test_expressions_of_a_service_do_not_depend_on_micro_batches(size):
    app = es.Service("cuts")
    rows = app.table("in", key="id", schema={"id": str, "a": int}).with_columns(x=col("a") / 7)
    rows.group_by("id").agg(third=col("x").sum() / 3).to("out")
    driver = es.testing.Driver(app)
    for place in range(0, len(VALUES), size):
        with driver.batch():
            for value in VALUES[place : place + size]:
                driver.send("in", f"k{value}", {"a": value})
    thirds = select_rows(pl.DataFrame({"x": WHOLE}), [col("x") / 3])["x"].to_list()
    assert driver.table("out") == {f"k{value}": {"third": third} for value, third in zip(VALUES, thirds, strict=True)}
