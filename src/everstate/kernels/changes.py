"""Changes of a table as rows: at most one retraction and one addition per key, none where nothing changed.

Two rows are equal if all columns are: null equals null and NaN equals NaN, also inside lists and structs. The two zeros
of a float differ, since a function that sees the row can tell them apart.

A retraction carries the time and position of the record that caused it, not those of the row it takes back: where only
the retraction remains it becomes a tombstone, and that is as new as its cause.

A row whose columns stayed equal while its time or position moved is a *move*. Moves matter only to operations that
order rows, so they are made on request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.kernels.rows import KEY, OP, ORDER, STREAM_TIME, SYSTEM, TS, all_distinct

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

#: When and where a row was caused.
CAUSE: Final = (*ORDER, STREAM_TIME)

_OTHER = "$other:"
_CAUSED = "$cause:"


def shaped(frame: pl.DataFrame, columns: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """The frame with exactly these columns; those that a store never held are null."""
    present = frame.collect_schema()
    return frame.select(
        pl.col(name).cast(dtype) if name in present else pl.lit(None, dtype).alias(name)
        for name, dtype in columns.items()
    )


def differences(
    old: pl.DataFrame,
    new: pl.DataFrame,
    columns: Sequence[str],
    *,
    causes: pl.DataFrame | None = None,
    moves: bool = False,
) -> pl.DataFrame:
    """What turns the old rows into the new ones.

    Args:
        old: One row per key: `$key`, time, position and the columns. `$st` is optional in both frames.
        new: The same, as it shall be.
        columns: The user's columns that are compared and kept.
        causes: `$key`, time and position of what caused each key's retraction; else the new row did.
        moves: Rows of which only time or position changed are changes too.

    Returns:
        A rows frame: `$op` -1 with the old columns, +1 with the new ones; retractions first.
    """
    if old.is_empty():
        return _timed(new, columns).select(*_system(1), *columns)
    other = _timed(new, columns, _OTHER)
    both = _timed(old, columns).join(other, on=KEY, how="full", coalesce=True, maintain_order="left_right")
    same = _all_equal([*columns, *(ORDER if moves else ())], both.collect_schema())
    was, now = pl.col(TS).is_not_null(), pl.col(_OTHER + TS).is_not_null()
    changed = both.filter(~(was & now & same))
    minus, reasons = changed.filter(was), [_OTHER, ""]
    if causes is not None and minus.height:
        minus = minus.join(_timed(causes, (), _CAUSED), on=KEY, how="left", maintain_order="left")
        reasons = [_CAUSED, *reasons]
    plus = changed.filter(now)
    return pl.concat(
        [
            minus.select(*_system(-1, *reasons), *columns),
            plus.select(*_system(1, _OTHER), *(pl.col(_OTHER + name).alias(name) for name in columns)),
        ]
    )


def equal_rows(old: pl.DataFrame, new: pl.DataFrame, columns: Sequence[str]) -> pl.Series:
    """Whether the rows at each place of two frames are equal in these columns."""
    if not columns:
        return pl.repeat(True, old.height, eager=True)
    both = old[list(columns)].hstack([new[name].alias(_OTHER + name) for name in columns])
    return both.select(_all_equal(columns, old.collect_schema()).alias("equal")).to_series()


def consolidate(rows: pl.DataFrame, columns: Sequence[str], *, moves: bool = False) -> pl.DataFrame:
    """The rows as at most one retraction and one addition per key; equal ones cancel out.

    Rows of one key may come from several shards. If several values of one key remain on a side after equal rows have
    cancelled out, the addition with the highest position stays: an operation that lets keys collide has to choose
    before.

    Args:
        rows: A rows frame; its order does not matter.
        columns: The user's columns that are compared and kept.
        moves: A retraction and an addition of equal columns stay, since they may differ in time or position.
    """
    return pl.concat(sides(rows, columns, moves=moves))


def sides(rows: pl.DataFrame, columns: Sequence[str], *, moves: bool = False) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The retractions and the additions of `consolidate`."""
    rows = rows[[*SYSTEM, *columns]]
    if not all_distinct(rows[[KEY, OP]]):
        rows = _net(rows, columns)
    minus, plus = rows.filter(pl.col(OP) < 0), rows.filter(pl.col(OP) > 0)
    if moves or minus.is_empty() or plus.is_empty():
        return minus, plus
    both = minus[[KEY, *columns]].join(
        plus.select(KEY, *(pl.col(name).alias(_OTHER + name) for name in columns)), on=KEY, how="inner"
    )
    unchanged = both.filter(_all_equal(columns, rows.collect_schema()))
    if unchanged.is_empty():
        return minus, plus
    return (
        minus.join(unchanged, on=KEY, how="anti", maintain_order="left"),
        plus.join(unchanged, on=KEY, how="anti", maintain_order="left"),
    )


def then_removed(rows: pl.DataFrame, removed: pl.DataFrame) -> pl.DataFrame:
    """Changes of a table, and the end of some of the rows that they leave, as changes.

    An addition and its removal in one micro-batch are nothing: since retractions are applied before additions, what
    took back a row that is not there yet would leave it there forever.

    Args:
        rows: At most one addition per key.
        removed: Rows as they are after these changes.
    """
    fleeting = rows.filter(pl.col(OP) > 0).join(removed, on=KEY, how="semi").select(KEY)
    if fleeting.height:
        rows = rows.filter(pl.col(OP) < 0).vstack(
            rows.filter(pl.col(OP) > 0).join(fleeting, on=KEY, how="anti", maintain_order="left")
        )
        removed = removed.join(fleeting, on=KEY, how="anti", maintain_order="left")
    return pl.concat([rows, removed.with_columns(pl.lit(-1, pl.Int8).alias(OP)).select(rows.columns)])


def _net(rows: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Adds up equal rows of a key, then keeps one row per key and side."""
    ranked = rows.sort(*ORDER)
    net = ranked.group_by(KEY, *columns, maintain_order=True).agg(
        pl.col(OP).sum().sign().cast(pl.Int8), *(pl.col(name).last() for name in CAUSE)
    )
    return (
        net.filter(pl.col(OP) != 0)
        .sort(*ORDER)
        .unique([KEY, OP], keep="last", maintain_order=True)
        .select(rows.columns)
    )


def _timed(frame: pl.DataFrame, columns: Sequence[str], prefix: str = "") -> pl.DataFrame:
    """The columns in question, all but the key with a prefix.

    Stored rows have no stream time of their own, their timestamp stands in for it.
    """
    if STREAM_TIME in frame.columns and not prefix:
        return frame[[KEY, *CAUSE, *columns]]
    time = STREAM_TIME if STREAM_TIME in frame.columns else TS
    return frame.select(
        KEY,
        *(pl.col(name).alias(prefix + name) for name in (*ORDER, *columns)),
        pl.col(time).alias(prefix + STREAM_TIME),
    )


def _system(op: int, *prefixes: str) -> list[pl.Expr]:
    """The system columns in their order; time and position from the first of these sides of a join that has them."""
    known: dict[str, pl.Expr] = {KEY: pl.col(KEY), OP: pl.lit(op, pl.Int8).alias(OP)}
    for name in CAUSE:
        found = [pl.col(prefix + name) for prefix in prefixes or ("",)]
        known[name] = (pl.coalesce(found) if len(found) > 1 else found[0]).alias(name)
    return [known[name] for name in SYSTEM]


def _all_equal(columns: Iterable[str], schema: Mapping[str, pl.DataType]) -> pl.Expr:
    pairs = [_equal(pl.col(name), pl.col(_OTHER + name), schema[name]) for name in columns]
    return pl.all_horizontal(pairs) if pairs else pl.lit(True)


def _equal(left: pl.Expr, right: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    alike = left.eq_missing(right)
    if not _has_floats(dtype):
        return alike
    return alike & _signs(left, dtype).eq_missing(_signs(right, dtype))


def _has_floats(dtype: pl.DataType) -> bool:
    if isinstance(dtype, pl.List):
        return _has_floats(_instance(dtype.inner))
    if isinstance(dtype, pl.Struct):
        return any(_has_floats(_instance(field.dtype)) for field in dtype.fields)
    return dtype.is_float()


def _signs(values: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Whether floats are below zero, with the negative zero counted among them; nested as the values are."""
    if dtype.is_float():
        return 1.0 / values < 0
    if isinstance(dtype, pl.List):
        return values.list.eval(_signs(pl.element(), _instance(dtype.inner)))
    if isinstance(dtype, pl.Struct):
        return pl.struct(
            _signs(values.struct.field(field.name), _instance(field.dtype)).alias(field.name) for field in dtype.fields
        )
    return values.is_null()


def _instance(dtype: pl.DataType | pl.datatypes.DataTypeClass) -> pl.DataType:
    return dtype() if isinstance(dtype, type) else dtype
