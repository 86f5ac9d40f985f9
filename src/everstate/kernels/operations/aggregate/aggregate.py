"""`group_by().agg()`: accumulators by group, and the contributions where accumulators do not suffice.

The sending side evaluates the leaves' inputs and, where every leaf can be merged, combines its rows to one per group.
The receiving side brings the stored groups up to date and yields what changed. A group without contributions is
deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.kernels.expressions import evaluate
from everstate.kernels.keying import rekeyed, with_key
from everstate.kernels.operations.aggregate import contributions
from everstate.kernels.operations.aggregate.accumulators import AggregatePlan
from everstate.kernels.operations.aggregate.groups import advanced, combined, merged
from everstate.kernels.operations.aggregate.results import changes, results
from everstate.kernels.operations.kernel import StateKernel
from everstate.kernels.rows import CONTRIBUTION, COUNT, KEY, OP, ORDER, empty
from everstate.topology.nodes import Aggregate

if TYPE_CHECKING:
    from everstate.kernels.ledger import Ledger
    from everstate.kernels.pages.grouped_store import GroupedStore
    from everstate.kernels.shard import Shard

#: The stores: a row per group, and a row per contribution.
GROUPS: Final = 0
CONTRIBUTIONS: Final = 1


def prepare(
    node: Aggregate, port: int, rows: pl.DataFrame, ledger: Ledger, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Give rows their group and the leaves' inputs; combine them where that is all there is to send.

    Args:
        node: The node.
        port: Its one input.
        rows: Rows as the feeder gives them.
        ledger: Takes rows for which an expression raises, and counts those without a group.
        emit_moves: As for `update`.

    Returns:
        Group rows, or, for leaves that keep contributions, rows with `$ck` and inputs.
    """
    del port
    plan = AggregatePlan.of(node, ordered=emit_moves)
    rows = rekeyed(node.keying, with_inputs(node, plan, rows, ledger), ledger, node)
    return sendable(node, plan, rows) if plan.kept else combined(plan, rows, node.key.names)


def with_inputs(node: Aggregate, plan: AggregatePlan, rows: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """Rows with the inputs of the leaves; those for which one raises are dead letters."""
    inputs = [expression for a in plan.accumulators for expression in a.inputs]
    if not inputs:
        return rows
    rows, values = evaluate(rows, inputs, ledger, node)
    return rows.hstack(values)


def sendable(node: Aggregate, plan: AggregatePlan, rows: pl.DataFrame) -> pl.DataFrame:
    """What leaves that keep contributions need of each row."""
    names = [expression.meta.output_name() for a in plan.accumulators for expression in a.inputs]
    return rows.select(KEY, OP, *ORDER, CONTRIBUTION, *node.key.names, *names)


def update(
    node: Aggregate, number: int, inputs: list[pl.DataFrame], shard: Shard, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Bring the groups up to date with a micro-batch.

    Args:
        node: The node.
        number: Under which it keeps its state.
        inputs: What `prepare` gave, from all tasks.
        shard: Holds groups and contributions.
        emit_moves: An operation that follows orders groups: also yield those of which only time or position changed.

    Raises:
        NumberOverflowError: A sum does not fit.
        RecordError: The user's expression over the aggregates raises.
    """
    rows = inputs[0]
    if rows.is_empty():
        return empty(dict(node.schema.polars))
    plan = AggregatePlan.of(node, ordered=emit_moves)
    delta = combined(plan, rows, node.key.names) if plan.kept else merged(plan, rows, node.key.names)
    store = shard.keyed(number, GROUPS)
    before = store.aligned(delta)
    base = before
    wholes: tuple[pl.DataFrame | None, pl.DataFrame | None] = (None, None)
    if plan.kept:
        base, delta, wholes = _contributed(plan, rows, before, delta, shard.multi(number, CONTRIBUTIONS))
    after = advanced(plan, base, delta)
    gone = after[COUNT] == 0
    store.apply(after.filter(~gone) if gone.any() else after, after[KEY].filter(gone))
    keys = delta[[KEY, *node.key.names]]
    old = results(node, plan, before, keys, wholes[0])
    new = results(node, plan, after, keys, wholes[1])
    return changes(old, new, after[list(ORDER)], node.schema.names, moves=emit_moves)


def table(node: Aggregate, number: int, shard: Shard, *, emit_moves: bool = False) -> pl.DataFrame:
    """The results of all groups."""
    plan = AggregatePlan.of(node, ordered=emit_moves)
    groups = shard.keyed(number, GROUPS).scan()
    whole = None
    if plan.holistic and groups.height:
        held = contributions.lookup(plan, groups, shard.multi(number, CONTRIBUTIONS))
        whole = contributions.whole(plan, held)
    return results(node, plan, groups, with_key(groups.select(KEY), node.key), whole).rows


def _contributed(
    plan: AggregatePlan, rows: pl.DataFrame, before: pl.DataFrame, delta: pl.DataFrame, store: GroupedStore
) -> tuple[pl.DataFrame, pl.DataFrame, tuple[pl.DataFrame | None, pl.DataFrame | None]]:
    """Bring the contributions up to date.

    Only the groups that need it are read whole: all that are touched if a leaf needs all contributions, else those that
    lost an extreme or an end.

    Returns:
        `before` and `delta` for `advanced`, with new extremes where they were lost, and the results of the leaves that
        need all contributions, before and after.
    """
    added, gone = contributions.split(plan, rows, before)
    lost = contributions.hit(plan, rows, before, delta) if plan.retracts else None
    wholes: tuple[pl.DataFrame | None, pl.DataFrame | None] = (None, None)
    if plan.holistic:
        known = before.filter(pl.col(COUNT).is_not_null()) if COUNT in before.columns else before.clear()
        held = contributions.lookup(plan, known, store)
        now = contributions.changed(held, added, gone)
        wholes = contributions.whole(plan, held), contributions.whole(plan, now)
        useless = contributions.superfluous(plan, now)
        if useless is not None:
            pair = [KEY, CONTRIBUTION]
            added, gone = added.join(useless, on=pair, how="anti"), useless.join(held, on=pair, how="semi")
    store.apply(added, gone)
    if lost is None or not lost.any():
        return before, delta, wholes
    again = delta.filter(lost).select(KEY)
    held = now.join(again, on=KEY, how="semi") if plan.holistic else contributions.lookup(plan, again, store)
    base, delta = contributions.refolded(plan, held, lost, before, delta)
    return base, delta, wholes


KERNELS: Final = {Aggregate: StateKernel(update, prepare=prepare, table=table, settled=True)}
