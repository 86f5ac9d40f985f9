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


LATEST = 253402300799


@pytest.mark.parametrize(
    "expression",
    [
        pl.from_epoch("a"),
        pl.from_epoch("a").dt.replace_time_zone("UTC"),
        pl.from_epoch("a").dt.date(),
        pl.concat_list(pl.from_epoch("a"), pl.lit(None)),
        pl.concat_arr(pl.from_epoch("a")).arr.to_list(),
        pl.struct(b=pl.struct(c=pl.from_epoch("a"))),
    ],
    ids=str,
)
def test_expression_with_a_time_that_cannot_be_written_is_a_dead_letter(expression):
    app = es.Service("years")
    rows = app.table("in", key="id", schema={"id": str, "a": int})
    rows.select(x=expression).to("out")
    driver = es.testing.Driver(app)
    day = 86_400
    with driver.batch():
        for value in (0, LATEST - day, LATEST + day, -10 * LATEST, 10**15):
            driver.send("in", str(value), {"a": value})
    assert sorted(driver.table("out")) == ["0", str(LATEST - day)]
    letters = driver.records("out.dlq")
    assert {record.value["reason"] for record in letters} == {"the result 'x' is outside the years 1 to 9999"}
    assert len(letters) == 3
