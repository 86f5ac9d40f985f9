"""What groups give: the user's expressions over the leaves, and the changes between two states of the same groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from everstate.errors import RecordError
from everstate.kernels.changes import equal_rows
from everstate.kernels.expressions import select_rows
from everstate.kernels.operations.aggregate.groups import last_order
from everstate.kernels.rows import COUNT, KEY, OP, ORDER, STREAM_TIME, SYSTEM, TS
from everstate.topology.expressions.trial import POLARS_ERRORS, reason_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everstate.kernels.operations.aggregate.accumulators import AggregatePlan
    from everstate.topology.nodes import Aggregate


@dataclass(frozen=True, eq=False)
class Results:
    """The results of some groups.

    Attributes:
        present: For all groups in question, whether they have a result.
        rows: The results of those that have one, in the same order: `$key`, position and the user's columns.
    """

    present: pl.Series
    rows: pl.DataFrame


def results(
    node: Aggregate, plan: AggregatePlan, groups: pl.DataFrame, keys: pl.DataFrame, whole: pl.DataFrame | None
) -> Results:
    """Evaluate the user's expressions.

    Args:
        node: The node.
        plan: How the leaves are kept.
        groups: Group rows; a group that does not exist has no count.
        keys: The same groups' key columns.
        whole: Results of the leaves that need all contributions, by group.
    """
    if COUNT not in groups.columns:
        nothing = pl.repeat(False, groups.height, dtype=pl.Boolean, eager=True)
        return Results(
            nothing, pl.DataFrame(schema={KEY: SYSTEM[KEY], **{n: SYSTEM[n] for n in ORDER}, **node.schema.polars})
        )
    present = groups[COUNT] > 0
    if present.null_count():
        present = present.fill_null(value=False)
    groups, keys = _kept(groups, present), _kept(keys, present)
    places = zip(last_order() if plan.placed else ORDER, ORDER, strict=True)
    position = [groups[stored].alias(name) for stored, name in places]
    leaves = pl.DataFrame([groups[KEY], *position, *(a.result(groups) for a in plan.merging)])
    if whole is not None:
        leaves = leaves.join(whole, on=KEY, how="left", maintain_order="left")
    try:
        evaluated = [expression.cast(node.schema.polars[name]).alias(name) for name, expression in node.results]
        values = select_rows(leaves, [pl.col(KEY), *(pl.col(name) for name in ORDER), *evaluated])
    except POLARS_ERRORS:
        raise _failure(node, leaves) from None
    return Results(present, values.hstack(keys[list(node.key.names)]))


def changes(
    old: Results, new: Results, causes: pl.DataFrame, columns: Sequence[str], *, moves: bool = False
) -> pl.DataFrame:
    """A rows frame of what changed; retractions first.

    Args:
        old: The results before.
        new: The results of the same groups now.
        causes: The groups' highest positions now, which a retraction carries too.
        columns: The user's columns.
        moves: Groups of which only time or position changed are changes too.
    """
    both = old.present & new.present
    compared = [*columns, *(ORDER if moves else ())]
    equal = equal_rows(_kept(old.rows, both.filter(old.present)), _kept(new.rows, both.filter(new.present)), compared)
    changed = ~equal if both.all() else (~both).scatter(both.arg_true(), ~equal)
    minus = _kept(old.rows, changed.filter(old.present))
    caused = _kept(causes, changed & old.present)
    plus = _kept(new.rows, changed.filter(new.present))
    return pl.concat([_signed(minus.with_columns(caused.get_columns()), -1, columns), _signed(plus, 1, columns)])


def _kept(frame: pl.DataFrame, mask: pl.Series) -> pl.DataFrame:
    return frame if mask.all() else frame.filter(mask)


def _signed(rows: pl.DataFrame, op: int, columns: Sequence[str]) -> pl.DataFrame:
    # A group has no stream time of its own; nothing that follows a table goes by it.
    system = {OP: pl.lit(op, pl.Int8).alias(OP), STREAM_TIME: pl.col(TS).alias(STREAM_TIME)}
    return rows.select(*(system.get(name, pl.col(name)) for name in SYSTEM), *columns)


def _failure(node: Aggregate, leaves: pl.DataFrame) -> RecordError:
    """Which group the user's expressions raise for, and why."""
    for number in range(leaves.height):
        try:
            leaves[number].select(expression for _, expression in node.results)
        except POLARS_ERRORS as error:
            key = leaves[KEY][number].decode(errors="replace")
            return RecordError(
                f"the result of the group {key!r} cannot be calculated: {reason_of(error)}",
                location=node.location,
                hint="Write agg() so that it gives null instead, such as cast(..., strict=False).",
            )
    return RecordError("the results of a batch of groups cannot be calculated", location=node.location)
