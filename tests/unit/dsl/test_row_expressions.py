"""Expressions that would depend on the micro-batch are refused wherever rows are seen one by one."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
import pytest
from polars import col

import everstate as es
from everstate.errors import DefinitionError, SchemaError, UnsupportedError

SCHEMA = {"id": str, "x": int, "y": float, "s": str, "at": datetime, "l": list[float], "st": {"a": int}}
OTHER_ROWS = {
    "mean()": lambda: col("x") > col("x").mean(),
    "shift()": lambda: col("x") - col("x").shift(1) > 0,
    "cum_sum()": lambda: (col("x").cum_sum() + 0) > 3,
    "over()": lambda: pl.when(col("x").sum().over("s") > 1).then(col("y") > 0).otherwise(pl.lit(value=True)),
    "len()": lambda: pl.len() > col("x"),
    "is_in()": lambda: col("x").is_in(col("x") + 1),
    "implode()": lambda: pl.any_horizontal(col("x").is_in([1]), col("y").is_in(col("y").implode())),
    "max()": lambda: ~(pl.max_horizontal("x", col("x").max()) > 2),
    "first()": lambda: col("s").str.starts_with(col("s").first()),
    "list.sample()": lambda: col("l").list.sample(1).list.len() > 0,
    "sum()": lambda: col("st").struct.with_fields(pl.field("a").sum()).struct.field("a") > 1,
    "rank()": lambda: col("l").list.len() + col("x").rank() > 2,
    "sample()": lambda: col("l").list.eval(pl.element().sample(1)).list.len() > 0,
    'fill_null(strategy="forward")': lambda: col("x").forward_fill().fill_null(0) > 1,
    "str.strptime()": lambda: col("s").str.to_datetime(strict=False).is_null(),
}
POSITIONS = {
    "filter": lambda rows, e: rows.filter(e),
    "select": lambda rows, e: rows.select(z=e),
    "with_columns": lambda rows, e: rows.with_columns(z=e),
    "branch": lambda rows, e: rows.branch(col("x") > 1, e),
    "group_by": lambda rows, e: rows.group_by(z=e.cast(int)),
    "rekey": lambda rows, e: rows.rekey(z=e.cast(int)),
    "agg": lambda rows, e: rows.group_by("s").agg(z=e.cast(int).sum()),
    "top_k": lambda rows, e: rows.group_by("s").agg(z=es.top_k("x", 2, by=e.cast(int))),
    "condition in agg": lambda rows, e: rows.group_by("s").agg(z=pl.when(e).then(col("x")).max() + 1),
}


def rows(kind: str = "table"):
    return getattr(es.Service("s"), kind)("in", key="id", schema=SCHEMA)


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("part", OTHER_ROWS)
def test_expression_over_other_rows_is_refused_with_its_part_and_line(position, part) -> None:
    with pytest.raises(UnsupportedError) as caught:
        POSITIONS[position](rows(), OTHER_ROWS[part]())
    assert part in str(caught.value)
    assert "test_row_expressions.py" in str(caught.value.location)
    assert caught.value.hint


def test_join_over_other_rows_is_refused() -> None:
    app = es.Service("s")
    left = app.table("in", key="id", schema=SCHEMA)
    right = app.table("other", key="k", schema={"k": int, "v": str})
    with pytest.raises(UnsupportedError, match=r"shift\(\)"):
        left.join(right, on=col("x").shift(1))


@pytest.mark.parametrize(
    ("aggregate", "words"),
    [
        (lambda: col("x").sum().shift(1), "shift"),
        (lambda: col("x").sum().over("s"), "over"),
        (lambda: col("x").sum() - col("x").sum().mean(), "sum"),
        (lambda: col("x").filter(col("y") > 0).sum(), "filter"),
        (lambda: col("x").sum() + col("y"), "'y' is not in an aggregate"),
        (lambda: col("x").sum().cum_sum(), "cum_sum"),
        (lambda: (col("x") - col("x").mean()).sum() + 1, "mean"),
        (lambda: col("x").sort().first(), "sort"),
        (lambda: pl.col("x", "y").sum(), "several"),
        (lambda: pl.len().shuffle(), "shuffle"),
    ],
)
def test_aggregate_that_cannot_be_kept_up_to_date_is_refused(aggregate, words) -> None:
    with pytest.raises(DefinitionError, match=words) as caught:
        rows().group_by("s").agg(aggregate())
    assert caught.value.hint


LISTS = {
    "eval": (lambda: col("l").list.eval(pl.element() / 7), [1.0, 2.5], [1.0 * (1 / 7), 2.5 * (1 / 7)]),
    "order": (lambda: col("l").list.eval(pl.element().sort(descending=True)), [1.0, 2.5], [2.5, 1.0]),
    "agg": (lambda: col("l").list.agg(pl.element().max() - pl.element().min()), [1.0, 2.5], 1.5),
    "filter": (lambda: col("l").list.filter(pl.element() > 2), [1.0, 2.5], [2.5]),
    "mean": (lambda: col("l").list.filter(pl.element() >= pl.element().mean()), [1.0, 2.5], [2.5]),
}


@pytest.mark.parametrize("size", [1, 2, 3, 6])
@pytest.mark.parametrize("name", LISTS)
def test_expression_within_a_list_gives_the_same_for_every_cut(name, size) -> None:
    expression, given, expected = LISTS[name]
    app = es.Service("s")
    app.table("in", key="id", schema={"id": str, "l": list[float]}).select(z=expression()).to("out")
    driver = es.testing.Driver(app)
    records = [("a", given), ("b", []), ("c", None), ("d", [0.3]), ("e", [-1.0, 4.0]), ("f", [2.0])]
    for start in range(0, len(records), size):
        with driver.batch():
            for key, value in records[start : start + size]:
                driver.send("in", key, {"l": value})
    assert driver.table("out")["a"]["z"] == pytest.approx(expected)
    found = {key: repr(value["z"]) for key, value in driver.table("out").items()}
    alone = es.testing.Driver(app)
    for key, value in records:
        alone.send("in", key, {"l": value})
    assert found == {key: repr(value["z"]) for key, value in alone.table("out").items()}


def test_expression_within_a_struct_is_accepted() -> None:
    app = es.Service("s")
    table = app.table("in", key="id", schema={"id": str, "st": {"a": int}, "x": int})
    table.select(st=col("st").struct.with_fields(b=pl.field("a") * 2 + col("x"))).to("out")
    driver = es.testing.Driver(app)
    driver.send("in", "k", {"st": {"a": 3}, "x": 1})
    assert driver.table("out") == {"k": {"st": {"a": 3, "b": 7}}}


@pytest.mark.parametrize(
    "expression",
    [
        lambda: col("x") > "a",
        lambda: col("at") > datetime(2024, 1, 1),  # noqa: DTZ001 - without a zone on purpose
        lambda: col("s").str.contains("("),
        lambda: col("l").list.eval(pl.element().cast(str).str.contains("(")).list.len() > 0,
        lambda: col("at").dt.truncate("1x").is_null(),
        lambda: col("at").dt.strftime("%Q") == "",
        lambda: col("s").str.to_datetime("%Q").is_null(),
        lambda: col("s").str.to_datetime("%Q", strict=False).is_null(),
        lambda: col("s").str.to_integer(base=99) > 1,
        lambda: col("l").cast(pl.Int64) > 1,
        lambda: col("s").str.json_path_match("$[").is_null(),
        lambda: col("x").str.len_chars() > 1,
        lambda: col("s").dt.year() > 1,
        lambda: pl.when("x").then(pl.lit(value=True)).otherwise(pl.lit(value=False)),
        lambda: pl.date(2024, 13, 1) > col("at").dt.date(),
        lambda: col("x").repeat_by(-1).list.len() > 0,
    ],
)
def test_expression_that_would_fail_for_every_record_is_refused_at_build(expression) -> None:
    with pytest.raises(SchemaError, match="expression does not fit") as caught:
        rows().filter(expression())
    assert "test_row_expressions.py" in str(caught.value.location)
    assert "x: Int64" in str(caught.value.hint)


@pytest.mark.parametrize(
    "expression",
    [
        lambda: col("s").cast(int) > 1,
        lambda: col("s").str.to_datetime("%d.%m.%Y %H:%M").is_null(),
        lambda: col("s").str.json_decode(pl.Struct({"a": pl.Int64})).struct.field("a") > 1,
        lambda: col("l").list.get(40) > 1,
        lambda: col("l").list.to_array(9).is_null(),
        lambda: col("x").replace_strict({77: 1}) > 1,
        lambda: col("s").str.decode("hex") == b"",
        lambda: col("x").cast(pl.Int8) > 1,
        lambda: pl.lit(datetime(2024, 1, 1, tzinfo=UTC)).dt.offset_by(col("s")).is_null(),
    ],
)
def test_expression_that_fails_for_some_records_makes_dead_letters_of_them(expression) -> None:
    app = es.Service("s")
    optional = {name: kind | None for name, kind in SCHEMA.items() if name not in ("id", "st")}
    app.table("in", key="id", schema={"id": str, **optional}).filter(expression().fill_null(value=True)).to("out")
    driver = es.testing.Driver(app)
    with driver.batch():
        driver.send("in", "a", {"s": "\u2603", "x": 4000, "l": [1.0]})
        driver.send("in", "b", {"s": None, "x": None, "l": None})
    assert set(driver.table("out")) == {"b"}
    (letter,) = driver.records("out.dlq")
    assert (letter.value["key"], letter.value["topic"], letter.value["offset"]) == ("a", "in", 0)
    assert "test_row_expressions.py" in letter.value["step"]


def test_filter_on_several_columns_is_refused_by_name() -> None:
    with pytest.raises(SchemaError, match="one column is needed"):
        rows().filter(pl.col("x", "y") > 1)


def test_group_by_several_calculated_columns_groups_by_what_was_calculated() -> None:
    app = es.Service("s")
    table = app.table("in", key="id", schema={"id": str, "a": int, "b": int})
    table.group_by(pl.col("a", "b") // 10).agg(n=es.count()).to("out")
    driver = es.testing.Driver(app)
    driver.send("in", "1", {"a": 11, "b": 25})
    driver.send("in", "2", {"a": 17, "b": 21})
    assert [value["n"] for value in driver.table("out").values()] == [2]
