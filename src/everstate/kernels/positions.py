"""Positions as single integers, so that the highest of a group is a plain maximum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.kernels.rows import KEY, OFF, ORDER, PART, SYSTEM, TOPIC, all_distinct

if TYPE_CHECKING:
    from collections.abc import Sequence

#: What fits into an Int64 without touching the sign.
_BITS: Final = 62


class Positions:
    """The positions (timestamp, topic, partition, offset) of a frame's rows, as integers of the same order.

    Within a batch the four numbers mostly span few bits, so they are packed by shifts; otherwise by rank.

    Args:
        frame: Has the columns, without nulls.
        columns: The four columns, most significant first.
    """

    def __init__(self, frame: pl.DataFrame, columns: Sequence[str] = ORDER) -> None:
        held = frame[list(columns)]
        self._low = [_number(column.min()) for column in held]
        self._widths = [
            (_number(column.max()) - bottom).bit_length() for column, bottom in zip(held, self._low, strict=True)
        ]
        self._ranked: pl.DataFrame | None = None
        if sum(self._widths) <= _BITS:
            self.packed = held.select(self._shifted(columns).alias("$at")).to_series()
        else:
            ranks = held.select(pl.arg_sort_by(columns, maintain_order=True)).to_series()
            self._ranked = held[ranks]
            self.packed = ranks.arg_sort().cast(pl.Int64).alias("$at")

    def unpacked(self, packed: pl.Series, names: Sequence[str] = ORDER) -> list[pl.Series]:
        """The four columns of packed positions, under these names."""
        if self._ranked is not None:
            found = self._ranked.select(pl.all().gather(packed))
            return [column.alias(name) for column, name in zip(found.get_columns(), names, strict=True)]
        rest, columns = pl.col(packed.name), []
        for place, name in reversed(list(enumerate(names))):
            width = self._widths[place]
            column = (rest & ((1 << width) - 1)) + self._low[place]
            columns.append(column.cast(SYSTEM[ORDER[place]]).alias(name))
            rest = rest // (1 << width)
        return packed.to_frame().select(columns[::-1]).get_columns()

    def _shifted(self, columns: Sequence[str]) -> pl.Expr:
        packed = pl.lit(0, dtype=pl.Int64)
        for name, bottom, width in zip(columns, self._low, self._widths, strict=True):
            packed = packed * (1 << width) + (pl.col(name).cast(pl.Int64) - bottom)
        return packed


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0  # a frame without rows has no extremes


def position_names(rows: pl.DataFrame) -> pl.Series:
    """A name for each row that no other row of its key has: its position, and which of those it is that came of it."""
    place = [pl.col(name).cast(pl.String) for name in (TOPIC, PART, OFF)]
    repeated = pl.lit("0")
    if not all_distinct(rows[[TOPIC, PART, OFF]]):  # a flat_map gives several
        repeated = pl.int_range(pl.len()).over(KEY, TOPIC, PART, OFF).cast(pl.String)
    return rows.select(pl.concat_str([*place, repeated], separator="/").cast(pl.Binary)).to_series()


def precedes(left: Sequence[pl.Expr], right: Sequence[pl.Expr]) -> pl.Expr:
    """Whether the tuple on the left is smaller than that on the right."""
    verdict = pl.lit(False)
    for one, other in reversed(list(zip(left, right, strict=True))):
        verdict = (one < other) | ((one == other) & verdict)
    return verdict
