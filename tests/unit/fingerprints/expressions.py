"""Expressions of every kind that services use. Run this file to write the golden file of the Polars at hand."""

from __future__ import annotations

import json
import sys
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

import polars as pl
from polars import col, lit

GOLDEN = Path(__file__).parent / "golden"


def expressions() -> dict[str, pl.Expr]:
    return {**_plain(), **_literals(), **_texts(), **_times(), **_nested(), **_aggregates()}


def _plain() -> dict[str, pl.Expr]:
    return {
        "column": col("a"),
        "comparison": col("a") > 1000,
        "comparison with a float": col("a") > 1.5,
        "comparison with a text": col("s") != "void",
        "arithmetic": (col("a") * 2 - col("b") / 3) // 4 % 5,
        "power": col("a") ** 2,
        "logic": (col("a") > 1) & (col("b") < 2) | ~(col("a") == 3),
        "exclusive or": (col("a") > 1) ^ (col("b") > 1),
        "negative": -col("a"),
        "name": (col("a") + 1).alias("b"),
        "condition": pl.when(col("a") > 1).then(2).when(col("a") > 0).then(col("b")).otherwise(None),
        "null": col("a").is_null() | col("b").is_not_null(),
        "fill": col("a").fill_null(0),
        "first that is there": pl.coalesce(col("a"), col("b"), lit(0)),
        "equal with nulls": col("a").eq_missing(1),
        "one of": col("a").is_in([1, 2, 3]),
        "one of texts": col("s").is_in(["a", "b"]),
        "between": col("a").is_between(1, 2, closed="left"),
        "cast": col("a").cast(pl.Float64),
        "lenient cast": col("a").cast(pl.Int64, strict=False),
        "cast to a decimal": col("a").cast(pl.Decimal(10, 2)),
        "cast to a time": col("a").cast(pl.Datetime("us", "UTC")),
        "rounded": col("a").round(2),
        "floor": col("a").floor(),
        "absolute": col("a").abs(),
        "clipped": col("a").clip(1, 2),
        "root": col("a").sqrt(),
        "logarithm": col("a").log(2),
        "NaN": col("a").is_nan(),
        "replaced": col("a").replace_strict({1: 2, 3: 4}, default=0),
        "largest": pl.max_horizontal("a", "b"),
        "sum of columns": pl.sum_horizontal("a", "b"),
        "all columns": pl.all_horizontal(col("a") > 1, col("b") > 1),
    }


def _literals() -> dict[str, pl.Expr]:
    return {
        "integer": lit(5),
        "large integer": lit(2**63),
        "typed integer": lit(5, dtype=pl.Int8),
        "float": lit(1.0),
        "not a number": lit(float("nan")),
        "infinite": col("a") < float("inf"),
        "minus infinite": col("a") > float("-inf"),
        "text": lit("x"),
        "yes": lit(True),
        "no value": lit(None),
        "bytes": lit(b"ab"),
        "date": lit(date(2024, 1, 1)),
        "datetime": lit(datetime(2024, 1, 1, 3)),  # noqa: DTZ001 - without a zone on purpose
        "datetime in UTC": lit(datetime(2024, 1, 1, 3, tzinfo=UTC)),
        "duration": lit(timedelta(seconds=3)),
        "time of day": lit(time(1, 2)),
        "decimal": lit(Decimal("1.50")),
        "list": lit([1, 2]),
        "series": lit(pl.Series([1, 2])),
    }


def _texts() -> dict[str, pl.Expr]:
    text = col("s").str
    return {
        "upper case": text.to_uppercase(),
        "length": text.len_chars(),
        "contains": text.contains("x+"),
        "contains literally": text.contains("x", literal=True),
        "begins with": text.starts_with("a"),
        "replaced text": text.replace("a", "b"),
        "all replaced": text.replace_all("a", "b"),
        "slice": text.slice(1, 2),
        "split": text.split(","),
        "stripped": text.strip_chars(),
        "extracted": text.extract("(a)", 1),
        "padded": text.zfill(3),
        "parsed time": text.to_datetime("%Y-%m-%d %H:%M"),
        "parsed date": text.to_date(),
        "parsed JSON": text.json_decode(pl.Struct({"a": pl.Int64})),
        "joined": pl.concat_str([col("a"), col("s")], separator="-"),
        "formatted": pl.format("{}-{}", col("a"), col("s")),
    }


def _times() -> dict[str, pl.Expr]:
    moment = col("d").dt
    return {
        "year": moment.year(),
        "truncated": moment.truncate("1h"),
        "later": moment.offset_by("1d"),
        "in a zone": moment.convert_time_zone("Europe/Berlin"),
        "written": moment.strftime("%Y"),
        "epoch": moment.epoch("ms"),
        "milliseconds": moment.total_milliseconds(),
        "made of a date": pl.datetime(2024, 1, 1),
        "made of days": pl.duration(days=1),
    }


def _nested() -> dict[str, pl.Expr]:
    return {
        "struct": pl.struct(x=col("a"), y=col("b")),
        "field": col("x").struct.field("a"),
        "item": col("l").list.get(0),
        "sum of a list": col("l").list.sum(),
        "length of a list": col("l").list.len(),
        "list contains": col("l").list.contains(3),
        "list joined": col("l").list.join(","),
        "list made": pl.concat_list("a", "b"),
        "each of a list": col("l").list.eval(pl.element() * 2),
    }


def _aggregates() -> dict[str, pl.Expr]:
    return {
        "sum": col("a").sum(),
        "mean": col("a").mean(),
        "min": col("a").min(),
        "max": col("a").max(),
        "first": col("a").first(),
        "last": col("a").last(),
        "distinct": col("a").n_unique(),
        "variance": col("a").var(),
        "deviation": col("a").std(ddof=0),
        "median": col("a").median(),
        "quantile": col("a").quantile(0.5, "linear"),
        "count": col("a").count(),
        "rows": pl.len(),
        "collected": col("a").implode(),
        "largest three": col("a").top_k(3),
        "over a group": col("a").sum().over("b"),
    }


def written() -> dict[str, list]:
    """What the Polars at hand writes of each: its JSON and its text."""
    return {name: [json.loads(e.meta.serialize(format="json")), str(e)] for name, e in expressions().items()}


if __name__ == "__main__":
    lines = (f"{json.dumps(name)}: {json.dumps(forms)}" for name, forms in written().items())
    (GOLDEN / f"polars-{pl.__version__}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    sys.stdout.write(f"{pl.__version__}\n")
