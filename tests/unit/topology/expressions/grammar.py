"""Random row expressions: a grammar of what is accepted, nested a few levels deep."""

from __future__ import annotations

import datetime as dt
import random

import polars as pl
from polars import col


class Grammar:
    """Expressions over the columns of the catalogue.

    Args:
        seed: Of the choices.
        depth: How deep expressions are nested.
    """

    def __init__(self, seed: int, depth: int = 4) -> None:
        self._chance = random.Random(seed)
        self._depth = depth

    def expression(self) -> pl.Expr:
        """One expression, of any type."""
        kind = self._chance.choice([self.number, self.number, self.text, self.truth, self.moment, self.numbers])
        return kind(self._depth).alias("r")

    def _any(self, *options: object) -> object:
        return self._chance.choice(options)

    def number(self, depth: int) -> pl.Expr:
        """A float or an integer."""
        constant = self._any(7, 3, 0.1, 10, 1e-3, -2)
        if depth == 0:
            return self._chance.choice([col("i"), col("j"), col("f"), col("g"), col("n"), pl.lit(constant)])
        one, other = self.number(depth - 1), self.number(depth - 1)
        return self._chance.choice(
            [
                lambda: one + other,
                lambda: one - constant,
                lambda: one * other,
                lambda: one / constant,
                lambda: one / other,
                lambda: constant / one,
                lambda: one % 7,
                lambda: one // 3,
                lambda: one.abs().sqrt(),
                lambda: one.cast(pl.Float64).round(2),
                lambda: one.cast(pl.Float64).fill_nan(constant),
                lambda: one.fill_null(other),
                lambda: pl.when(self.truth(depth - 1)).then(one).otherwise(other),
                lambda: pl.when(self.truth(depth - 1)).then(constant).otherwise(other) / one,
                lambda: one / pl.when(self.truth(depth - 1)).then(7.0).otherwise(3.0),
                lambda: pl.max_horizontal(one, other),
                lambda: pl.mean_horizontal(one, other, "f"),
                lambda: pl.sum_horizontal(one, other),
                lambda: pl.coalesce(one, other) / 3,
                lambda: one.clip(-100, 100) ** 3,
                lambda: one.cast(pl.Float64).tanh(),
                lambda: (one.cast(pl.Float64).abs() + 1).log() / 3,
                lambda: self.numbers(depth - 1).list.sum() / 3,
                lambda: self.numbers(depth - 1).list.mean() / constant,
                lambda: self.numbers(depth - 1).list.get(0, null_on_oob=True) / 7,
                lambda: self.numbers(depth - 1).list.agg(pl.element().std() / 3),
                lambda: self.text(depth - 1).str.len_chars() / 7,
                lambda: self.moment(depth - 1).dt.epoch("s") / 3,
                lambda: pl.struct(a=one, b=other).struct.field("b") / 7,
            ]
        )()

    def numbers(self, depth: int) -> pl.Expr:
        """A list of numbers."""
        if depth == 0:
            return self._chance.choice([col("l"), col("lf"), col("k")]).cast(pl.List(pl.Float64))
        inner = self.numbers(depth - 1)
        return self._chance.choice(
            [
                lambda: inner.list.eval(pl.element() / 7),
                lambda: inner.list.eval(pl.element() % 0.7),
                lambda: inner.list.eval(pl.element() // 0.3),
                lambda: inner.list.eval((pl.element() - pl.element().mean()) / 3),
                lambda: inner.list.eval(pl.element().cum_sum() / 7),
                lambda: inner.list.filter(pl.element() > 0).list.eval(pl.element() / 3),
                lambda: inner.list.sort().list.head(1),
                lambda: inner / 7,
                lambda: inner.list.slice(1, 1),
                lambda: pl.concat_list(self.number(depth - 1).cast(pl.Float64), inner),
                lambda: self.text(depth - 1).str.split(",").list.eval(pl.element().str.len_chars() / 7),
                lambda: pl.int_ranges(0, col("n")).list.eval(pl.element() / 7),
            ]
        )()

    def truth(self, depth: int) -> pl.Expr:
        """A condition."""
        if depth == 0:
            return self._chance.choice([col("b"), col("c"), pl.lit(value=True)])
        return self._chance.choice(
            [
                lambda: self.number(depth - 1) > self.number(depth - 1),
                lambda: self.truth(depth - 1) & ~self.truth(depth - 1),
                lambda: self.truth(depth - 1) | self.truth(depth - 1),
                lambda: self.number(depth - 1).is_null(),
                lambda: self.number(depth - 1).cast(pl.Float64).is_nan(),
                lambda: col("i").is_in([1, 2, 3]),
                lambda: col("i").is_in(col("l")),
                lambda: self.text(depth - 1).str.contains("[ab]"),
                lambda: self.moment(depth - 1) > dt.datetime(2025, 1, 1, tzinfo=dt.UTC),
            ]
        )()

    def text(self, depth: int) -> pl.Expr:
        """A text."""
        if depth == 0:
            return self._chance.choice([col("s"), col("p"), col("num"), pl.lit("x")])
        inner = self.text(depth - 1)
        return self._chance.choice(
            [
                lambda: inner.str.to_uppercase() + "!",
                lambda: inner.str.replace_all("a", "b"),
                lambda: pl.concat_str(inner, self.number(depth - 1).cast(pl.String), separator="-"),
                lambda: pl.when(self.truth(depth - 1)).then(inner).otherwise(pl.lit("y")),
                lambda: inner.str.slice(0, 3),
                lambda: self.number(depth - 1).cast(pl.String),
                lambda: self.moment(depth - 1).dt.strftime("%Y-%m"),
                lambda: inner.str.strip_chars(col("p")),
            ]
        )()

    def moment(self, depth: int) -> pl.Expr:
        """A time."""
        if depth == 0:
            return col("z")
        inner = self.moment(depth - 1)
        return self._chance.choice(
            [
                lambda: inner.dt.truncate("1d"),
                lambda: inner.dt.offset_by("1mo"),
                lambda: inner + dt.timedelta(hours=3),
                lambda: pl.when(self.truth(depth - 1)).then(inner).otherwise(col("z")),
                lambda: inner.dt.replace(hour=3),
            ]
        )()
