"""Group rows: combining rows into one per group, merging such rows, and bringing stored ones up to date.

A group row has `$key`, the number of contributions, the highest position involved, and the accumulators' columns. The
same shape is sent between shards (what a batch adds) and stored (what there is).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import polars as pl

from everstate.kernels.operations.aggregate import exact
from everstate.kernels.positions import Positions, precedes
from everstate.kernels.rows import CONTRIBUTION, COUNT, KEY, OP, ORDER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from everstate.kernels.operations.aggregate.accumulators import AggregatePlan

#: Column prefix of stored rows beside new ones.
_OLD: Final = "$old:"
_AT: Final = "$at"


def combined(
    plan: AggregatePlan,
    rows: pl.DataFrame,
    keys: Sequence[str],
    *,
    apart: Sequence[str] = (),
    highest: Sequence[str] = (),
) -> pl.DataFrame:
    """One row per group out of the rows of a batch.

    Args:
        plan: How the leaves are kept.
        rows: `$key`, `$op`, `$ck`, position, the leaves' inputs and the key columns.
        keys: The key columns, which are passed on.
        apart: Further columns; rows that differ in them are not of one group.
        highest: Further columns, of which a group has the highest value.

    Returns:
        Group rows. Where rows can be retracted, extremes and ends are those of the additions, and `.r` has the extreme
        of the retractions.
    """
    positions = Positions(rows)
    sign = rows[OP] if plan.retracts else None
    addends = [
        column
        for a in plan.merging
        if a.leaf.input is not None
        for column in a.addends(rows[a.leaf.input_column], sign)
    ]
    values = [a.leaf.input_column for a in plan.of_kind("min", "max", "first", "last")]
    signs = [OP, CONTRIBUTION] if plan.retracts else []
    work = rows.select(KEY, *keys, *apart, *highest, *signs, *values).with_columns(
        positions.packed.alias(_AT), *addends
    )
    if plan.of_kind("first", "last"):
        work = work.sort(_AT, *signs[1:], maintain_order=True)
    total = pl.col(OP).cast(pl.Int64).sum() if plan.retracts else pl.len().cast(pl.Int64)
    groups = work.group_by(KEY, *apart).agg(
        total.alias(COUNT),
        pl.col(_AT).max(),
        *(pl.col(name).max() for name in highest),
        *(pl.col(name).first() for name in keys),
        *(pl.col(column.name).sum() for column in addends),
        *_extremes(plan),
        *_ends(plan),
    )
    packed = {_AT: ORDER, **{f"{end}{_AT}": _order(end) for end in _ends_used(plan)}}
    unpacked = [column for name, names in packed.items() for column in positions.unpacked(groups[name], names)]
    groups = groups[[name for name in groups.columns if name not in packed]].hstack(unpacked)
    return exact.normalise(groups, *plan.exact_prefixes)


def merged(plan: AggregatePlan, partials: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """One row per group out of several tasks' group rows; not for extremes and ends that may be retracted."""
    # Keys of different hashes are different, and hashes are quickly compared; two that are equal are grouped below.
    if partials[KEY].hash().n_unique() == partials.height:
        return partials
    positions = Positions(partials)
    groups = (
        partials.with_columns(positions.packed.alias(_AT))
        .group_by(KEY)
        .agg(
            pl.col(COUNT).sum(),
            pl.col(_AT).max(),
            *(pl.col(name).first() for name in keys),
            *(pl.col(name).sum() for name in sum_columns(partials)),
            *(pl.col(a.value).min() for a in plan.of_kind("min")),
            *(pl.col(a.value).max() for a in plan.of_kind("max")),
        )
    )
    groups = groups.with_columns(positions.unpacked(groups[_AT])).drop(_AT)
    for end in _ends_used(plan):
        ends = partials.select(KEY, *_order(end), *(a.value for a in plan.of_kind(end[1:])))
        groups = groups.join(_outermost(plan, end, ends), on=KEY, how="left")
    return exact.normalise(groups, *plan.exact_prefixes)


def advanced(plan: AggregatePlan, before: pl.DataFrame, delta: pl.DataFrame) -> pl.DataFrame:
    """The stored rows with what a batch adds; both frames have the same groups in the same order."""
    wide = pl.concat([delta, before.drop(KEY).rename(lambda name: _OLD + name)], how="horizontal")
    old = set(before.columns)
    columns: list[pl.Expr | pl.Series] = [pl.col(KEY)]
    for name in (COUNT, *dict.fromkeys(sum_columns(delta) + sum_columns(before))):
        parts = [pl.col(_OLD + name)] if name in old else []
        parts += [pl.col(name)] if name in delta.columns else []
        columns.append(sum((part.fill_null(0) for part in parts[1:]), parts[0].fill_null(0)).alias(name))
    for a in plan.of_kind("min", "max"):
        pair = [a.value, _OLD + a.value] if a.value in old else [a.value]
        horizontal = pl.min_horizontal if a.leaf.kind == "min" else pl.max_horizontal
        columns.append(horizontal(pair).alias(a.value))
    for order, latest, values in _ordered(plan):
        columns += _later(order, old, values, latest=latest)
    for end in _ends_used(plan) if plan.shared else ():
        columns += _either(plan, end, before, delta)
    return exact.normalise(wide.select(columns), *plan.exact_prefixes)


def sum_columns(groups: pl.DataFrame) -> list[str]:
    """The columns of accumulators that are added up."""
    return [name for name in groups.columns if name.startswith("$a") and not name.endswith((".v", ".r"))]


def end_columns(plan: AggregatePlan, end: str) -> list[str]:
    """Where the first or last contribution stands: its position and, where it can be retracted, its key."""
    return [*_order(end), *([f"{end}{CONTRIBUTION}"] if plan.retracts else [])]


def last_order() -> list[str]:
    """Where a group's last contribution stands."""
    return _order("$last")


def _order(end: str) -> list[str]:
    return [end + name for name in ORDER]


def _ends_used(plan: AggregatePlan) -> list[str]:
    return [f"${kind}" for kind in ("first", "last") if plan.of_kind(kind)]


def _ordered(plan: AggregatePlan) -> Iterator[tuple[list[str], bool, list[str]]]:
    """The orders by which columns are chosen: the columns of the order, whether the later wins, what goes with it."""
    yield list(ORDER), True, []
    for end in () if plan.shared else _ends_used(plan):
        yield end_columns(plan, end), end == "$last", [a.value for a in plan.of_kind(end[1:])]


def _later(order: list[str], old: set[str], values: list[str], *, latest: bool) -> list[pl.Expr]:
    """The order's columns and the values of whichever of the old and the new row is the later (or the earlier)."""
    if order[0] not in old:
        return [pl.col(name) for name in order + values]
    new_first = precedes([pl.col(name) for name in order], [pl.col(_OLD + name) for name in order])
    wins = ~new_first if latest else new_first
    takes = pl.col(_OLD + order[0]).is_null() | (pl.col(order[0]).is_not_null() & wins)
    return [pl.when(takes).then(pl.col(name)).otherwise(pl.col(_OLD + name)).alias(name) for name in order + values]


def _outermost(plan: AggregatePlan, end: str, ends: pl.DataFrame) -> pl.DataFrame:
    """The first or last contribution of each group out of several."""
    values = [a.value for a in plan.of_kind(end[1:])] if plan.shared else []
    keep: Literal["first", "last"] = "first" if end == "$first" else "last"
    return ends.sort(*_order(end), *values, maintain_order=True).unique(KEY, keep=keep, maintain_order=True)


def _either(plan: AggregatePlan, end: str, before: pl.DataFrame, delta: pl.DataFrame) -> list[pl.Series]:
    """What is first or last of the stored and the new, by group; values decide between rows of one position."""
    names = [KEY, *_order(end), *(a.value for a in plan.of_kind(end[1:]))]
    ends = [delta.select(names)]
    if names[1] in before.columns:
        ends.append(before.select(names).filter(pl.col(names[1]).is_not_null()))
    found = delta.select(KEY).join(_outermost(plan, end, pl.concat(ends)), on=KEY, how="left", maintain_order="left")
    return found.drop(KEY).get_columns()


def _extremes(plan: AggregatePlan) -> Iterator[pl.Expr]:
    for a in plan.of_kind("min", "max"):
        column = pl.col(a.leaf.input_column)
        if not plan.retracts:
            yield getattr(column, a.leaf.kind)().alias(a.value)
            continue
        for side, name in ((pl.col(OP) > 0, a.value), (pl.col(OP) < 0, f"{a.leaf.column}.r")):
            yield getattr(column.filter(side), a.leaf.kind)().alias(name)


def _ends(plan: AggregatePlan) -> Iterator[pl.Expr]:
    """The first and last addition of a frame in order."""
    for end in _ends_used(plan):
        tied = plan.tied(end[1:])
        taken = [(a.leaf.input_column, a.value) for a in plan.of_kind(end[1:])]
        taken += [(_AT, f"{end}{_AT}")]
        taken += [(CONTRIBUTION, f"{end}{CONTRIBUTION}")] if plan.retracts else []
        for source, name in taken:
            column = pl.col(source).filter(pl.col(OP) > 0) if plan.retracts else pl.col(source)
            column = column.sort_by(_AT, *tied, maintain_order=True) if tied else column
            yield (column.first() if end == "$first" else column.last()).alias(name)
