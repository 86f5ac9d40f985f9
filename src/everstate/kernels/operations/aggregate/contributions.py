"""Contributions: the rows of a group, one by one, for aggregates that cannot be undone or need them all.

On a table a contribution is known by the key it had before (`$ck`), and a retraction names it. On a stream it gets a
number, in the order of (timestamp, topic, partition, offset) within a batch. Where rows share a position and come in
different batches, as the pairs of a joined row do, that number says nothing, and values come before it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from everstate.kernels.changes import shaped
from everstate.kernels.operations.aggregate.groups import combined, end_columns
from everstate.kernels.rows import CONTRIBUTION, COUNT, KEY, OP, ORDER, SYSTEM

if TYPE_CHECKING:
    from everstate.kernels.operations.aggregate.accumulators import Accumulator, AggregatePlan
    from everstate.kernels.pages.grouped_store import GroupedStore

#: Digits of a contribution's number on a stream, so that numbers sort as text.
_DIGITS = 12


def columns_of(plan: AggregatePlan) -> dict[str, pl.DataType]:
    """What is kept of a contribution."""
    columns: dict[str, pl.DataType] = {KEY: pl.Binary(), CONTRIBUTION: pl.Binary()}
    columns |= {name: SYSTEM[name] for name in ORDER}
    for a in plan.kept:
        columns[a.leaf.input_column] = a.dtype
        if a.by_dtype is not None:
            columns[a.leaf.by_column] = a.by_dtype
    return columns


def split(plan: AggregatePlan, rows: pl.DataFrame, before: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The contributions that a batch adds, and the (`$key`, `$ck`) that it takes away for good."""
    names = list(columns_of(plan))
    if not plan.retracts:
        return _numbered(rows, before).select(names), rows.clear().select(KEY, CONTRIBUTION)
    added = rows.filter(pl.col(OP) > 0).select(names)
    gone = rows.filter(pl.col(OP) < 0).select(KEY, CONTRIBUTION)
    return added, gone.join(added, on=[KEY, CONTRIBUTION], how="anti")


def lookup(plan: AggregatePlan, keys: pl.DataFrame, store: GroupedStore) -> pl.DataFrame:
    """All contributions of these groups."""
    return shaped(store.lookup(keys.select(KEY)), columns_of(plan))


def changed(held: pl.DataFrame, added: pl.DataFrame, gone: pl.DataFrame) -> pl.DataFrame:
    """The contributions after a batch."""
    pair = [KEY, CONTRIBUTION]
    return pl.concat([held.join(pl.concat([added.select(pair), gone]), on=pair, how="anti"), added])


def whole(plan: AggregatePlan, contributions: pl.DataFrame) -> pl.DataFrame:
    """The results of the leaves that need all contributions, by group."""
    if any(a.leaf.kind in {"collect", "top_k"} for a in plan.holistic):
        contributions = contributions.sort(*ORDER, *plan.tied(), CONTRIBUTION)
    return contributions.group_by(KEY, maintain_order=True).agg(_whole(a).alias(a.leaf.column) for a in plan.holistic)


def superfluous(plan: AggregatePlan, contributions: pl.DataFrame) -> pl.DataFrame | None:
    """The contributions that can never matter again: on a stream, those below the top k. None if all may matter."""
    if plan.retracts or any(a.leaf.kind != "top_k" for a in plan.kept):
        return None
    ordered = contributions.sort(*ORDER, *plan.tied(), CONTRIBUTION)
    tops = [
        ordered.group_by(KEY).agg(_top(a, pl.col(CONTRIBUTION))).explode(CONTRIBUTION, empty_as_null=False)
        for a in plan.kept
    ]
    return contributions.select(KEY, CONTRIBUTION).join(pl.concat(tops), on=[KEY, CONTRIBUTION], how="anti")


def hit(plan: AggregatePlan, rows: pl.DataFrame, before: pl.DataFrame, delta: pl.DataFrame) -> pl.Series:
    """Which groups lost the contribution that their minimum, maximum, first or last came from."""
    lost = pl.repeat(False, delta.height, dtype=pl.Boolean, eager=True)
    if COUNT not in before.columns:
        return lost
    for a in plan.of_kind("min", "max"):
        stored, retracted, added = before[a.value], delta[f"{a.leaf.column}.r"], delta[a.value]
        replaced = added <= stored if a.leaf.kind == "min" else added >= stored
        if a.dtype.is_float():
            replaced &= added.is_not_nan()
        lost |= (retracted == stored).fill_null(value=False) & ~replaced.fill_null(value=False)
    gone = rows.filter(pl.col(OP) < 0).select(KEY, CONTRIBUTION)
    for kind in ("first", "last"):
        if plan.of_kind(kind):
            stored_end = before.select(KEY, pl.col(f"${kind}{CONTRIBUTION}").alias(CONTRIBUTION))
            found = stored_end.join(gone, on=[KEY, CONTRIBUTION], how="semi")
            lost |= delta[KEY].is_in(found[KEY].implode())
    return lost


def refolded(
    plan: AggregatePlan, contributions: pl.DataFrame, lost: pl.Series, before: pl.DataFrame, delta: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Extremes and ends of the groups that lost theirs, out of their contributions after the batch.

    Returns:
        `before` and `delta`, where those groups have nothing in `before` and all of it in `delta`.
    """
    part = replace(plan, accumulators=tuple(plan.of_kind("min", "max", "first", "last")))
    found = combined(part, contributions.with_columns(pl.lit(1, pl.Int8).alias(OP)), ())
    columns = [a.value for a in part.accumulators]
    columns += [name for kind in ("first", "last") if part.of_kind(kind) for name in end_columns(plan, f"${kind}")]
    found = delta.select(KEY).join(found.select(KEY, *columns), on=KEY, how="left", maintain_order="left")
    mask = pl.lit(lost)
    return (
        before.with_columns(pl.when(~mask).then(pl.col(columns))),
        delta.with_columns(pl.when(mask).then(found[name]).otherwise(pl.col(name)).alias(name) for name in columns),
    )


def _whole(a: Accumulator) -> pl.Expr:
    column = pl.col(a.leaf.input_column)
    if a.leaf.kind == "collect":
        return column
    if a.leaf.kind == "top_k":
        return _top(a, column)
    if a.leaf.kind == "n_unique":
        return column.n_unique().cast(pl.Int64)
    numbers = column.cast(pl.Float64)
    return numbers.median() if a.leaf.kind == "median" else numbers.quantile(a.leaf.q, "linear")


def _top(a: Accumulator, column: pl.Expr) -> pl.Expr:
    """The column's values of the k contributions that are highest; ties go to the earliest."""
    by = pl.col(a.leaf.input_column if a.leaf.by is None else a.leaf.by_column)
    return column.sort_by(by, descending=True, nulls_last=True, maintain_order=True).head(a.leaf.k)


def _numbered(rows: pl.DataFrame, before: pl.DataFrame) -> pl.DataFrame:
    """A stream's rows with a key for each, counted on from what the group has had before."""
    rows = rows.sort(*ORDER, maintain_order=True)
    number = pl.int_range(pl.len()).over(KEY)
    if COUNT in before.columns:
        rows = rows.join(before.select(KEY, COUNT), on=KEY, how="left", maintain_order="left")
        number += pl.col(COUNT).fill_null(0)
    return rows.with_columns(number.cast(pl.String).str.zfill(_DIGITS).cast(pl.Binary).alias(CONTRIBUTION))
