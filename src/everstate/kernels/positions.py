"""Positions as single integers, so that the highest of a group is a plain maximum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.kernels.rows import CONTRIBUTION, KEY, OFF, ORDER, PART, SYSTEM, TOPIC, all_distinct

if TYPE_CHECKING:
    from collections.abc import Sequence

#: How many names of a position have been given.
_TAKEN: Final = "$taken"
#: Digits of the number in a name, so that names sort as text.
_DIGITS: Final = 6
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


def position_names(rows: pl.DataFrame, held: pl.DataFrame) -> pl.Series:
    """A name for each row that no other row of its key has: its position, and which of those it is that came of it.

    Args:
        rows: The rows; those of one position are named in their order, and so that the names have that order.
        held: Rows of these keys that have been named before, with the name in `$ck`: the same record may have several
            partners one after the other, and a timer that it set comes later still.
    """
    place = [KEY, TOPIC, PART, OFF]
    repeated = pl.lit("0")
    several = not all_distinct(rows[place[1:]])  # a flat_map gives several
    if held.height:
        taken = _taken(rows.select(place).unique(), held)
        several = several or taken.height > 0
        rows = rows.select(place).join(taken, on=place, how="left", maintain_order="left")
    if several:
        number = pl.int_range(pl.len()).over(place)
        number = number + pl.col(_TAKEN).fill_null(0) if held.height else number
        repeated = number.cast(pl.String).str.zfill(_DIGITS)
    parts = [*(pl.col(name).cast(pl.String) for name in place[1:]), repeated]
    return rows.select(pl.concat_str(parts, separator="/").cast(pl.Binary)).to_series()


def _taken(places: pl.DataFrame, held: pl.DataFrame) -> pl.DataFrame:
    """By key and position, how many numbers have been given to rows that came of it, as far as there is one left."""
    number = pl.col(CONTRIBUTION).cast(pl.String).str.split("/").list.last().cast(pl.Int64)
    found = held.join(places, on=places.columns, how="semi")
    return found.group_by(places.columns).agg((number.max() + 1).alias(_TAKEN))


def precedes(left: Sequence[pl.Expr], right: Sequence[pl.Expr]) -> pl.Expr:
    """Whether the tuple on the left is smaller than that on the right."""
    verdict = pl.lit(False)
    for one, other in reversed(list(zip(left, right, strict=True))):
        verdict = (one < other) | ((one == other) & verdict)
    return verdict
