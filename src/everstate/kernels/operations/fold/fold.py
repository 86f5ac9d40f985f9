"""`group_by().reduce()` and `group_by().aggregate()`: the user's own add and, optionally, remove.

A stream's rows are added in the order of (stream time, topic, partition, offset). A table's retractions are removed
before its additions are added; without `remove` the contributions are kept and folded again (`refolding.py`).

A function that returns None deletes the group's aggregate, as in Kafka Streams; the next row starts a new one. A group
that has lost its last contribution is deleted.

A row for which `add` raises, or gives what does not fit the schema, is a dead letter and does not count; its key is
remembered, so that its later retraction is passed over. Where `remove` raises, the aggregate stays as it was and the
record that caused the retraction is a dead letter.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.kernels.changes import differences, shaped
from everstate.kernels.functions import row_values
from everstate.kernels.keying import rekeyed, with_key
from everstate.kernels.operations.fold import refolding
from everstate.kernels.operations.fold.folding import Folding, Group, RefusedError
from everstate.kernels.order import by_arrival
from everstate.kernels.records.python_rows import to_frame
from everstate.kernels.rows import CONTRIBUTION, COUNT, KEY, OP, ORDER, SYSTEM, empty
from everstate.schema.schema import SCALAR_COLUMN
from everstate.topology.nodes import Kind

if TYPE_CHECKING:
    from everstate.kernels.ledger import Ledger
    from everstate.kernels.pages.grouped_store import GroupedStore
    from everstate.kernels.shard import Shard
    from everstate.topology.nodes import Fold

#: The stores: a row per group; the contributions that were refused, or all of them where there is no `remove`.
GROUPS: Final = 0
CONTRIBUTIONS: Final = 1

LIVE: Final = "$live"
#: What is stored of a group beside its aggregate: how many contributions count, whether there is an aggregate, and the
#: highest position.
STORED: Final[dict[str, pl.DataType]] = {
    KEY: pl.Binary(),
    COUNT: pl.Int64(),
    LIVE: pl.Boolean(),
    **{name: SYSTEM[name] for name in ORDER},
}


def prepare(node: Fold, port: int, rows: pl.DataFrame, ledger: Ledger, *, emit_moves: bool = False) -> pl.DataFrame:
    """Give rows their group; the columns that the functions see travel under names of their own.

    Args:
        node: The node.
        port: Its one input.
        rows: Rows as the feeder gives them.
        ledger: Takes rows for which the group cannot be made, and counts those without one.
        emit_moves: Makes no difference here.
    """
    del port, emit_moves
    return sendable(node, rekeyed(node.keying, with_inputs(node, rows), ledger, node))


def with_inputs(node: Fold, rows: pl.DataFrame) -> pl.DataFrame:
    """Rows with what the functions see of them, under names of its own."""
    return rows.with_columns(pl.col(name).alias(refolding.INPUT + name) for name in node.inputs[0].schema.names)


def sendable(node: Fold, rows: pl.DataFrame) -> pl.DataFrame:
    """What the functions need of each row."""
    names = (refolding.INPUT + name for name in node.inputs[0].schema.names)
    return rows.select(*SYSTEM, CONTRIBUTION, *node.key.names, *names)


def update(
    node: Fold, number: int, inputs: list[pl.DataFrame], shard: Shard, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Bring the groups up to date with a micro-batch.

    Args:
        node: The node.
        number: Under which it keeps its state.
        inputs: What `prepare` gave, from all tasks.
        shard: Holds aggregates and contributions.
        emit_moves: An operation that follows orders groups: also yield those of which only time or position changed.
            A table's groups then have the position of their last contribution that is still there, since the highest
            one ever depends on which changes came in one batch; so contributions are kept even if there is `remove`.
    """
    rows = inputs[0]
    if rows.is_empty():
        return empty(dict(node.schema.polars))
    keys = rows.select(KEY, *node.key.names).unique(KEY, keep="first")
    store, held = shard.keyed(number, GROUPS), shard.multi(number, CONTRIBUTIONS)
    before = shaped(store.lookup(keys), STORED | node.values.polars)
    if node.inputs[0].kind is Kind.TABLE and (node.remove is None or emit_moves):
        groups, places = refolding.folded(node, rows, keys, held, shard.ledger)
        if not emit_moves:
            places = _latest(before, rows)
    else:
        groups, counted = _applied(node, _ordered(node, rows, shard), keys, before, held, shard.ledger)
        places = _latest(before, counted)
    after = _frame(node, groups).join(places, on=KEY, how="left").select(before.columns)
    store.apply(after, before.join(after, on=KEY, how="anti")[KEY])
    old, new = (
        frame.filter(pl.col(LIVE)).join(keys, on=KEY, how="left", maintain_order="left") for frame in (before, after)
    )
    return differences(old, new, list(node.schema.names), causes=_latest(before, rows), moves=emit_moves)


def table(node: Fold, number: int, shard: Shard, *, emit_moves: bool = False) -> pl.DataFrame:
    """The groups that have an aggregate."""
    del emit_moves
    groups = shaped(shard.keyed(number, GROUPS).scan(), STORED | node.values.polars)
    return with_key(groups.filter(pl.col(LIVE)), node.key)


def _ordered(node: Fold, rows: pl.DataFrame, shard: Shard) -> pl.DataFrame:
    if node.inputs[0].kind is Kind.TABLE:
        return rows.sort([OP, *ORDER, CONTRIBUTION], maintain_order=True)
    return by_arrival(rows, shard.order)


def _applied(
    node: Fold, rows: pl.DataFrame, keys: pl.DataFrame, before: pl.DataFrame, refused: GroupedStore, ledger: Ledger
) -> tuple[dict[bytes, Group], pl.DataFrame]:
    """The groups after the rows, one after the other in their order, and the rows that counted."""
    table = node.inputs[0].kind is Kind.TABLE
    known = _known(rows, refused) if table else set()
    calls = Folding(node)
    groups = _groups(node, before)
    key_columns = {row.pop(KEY): row for row in keys.iter_rows(named=True)}
    doomed = _doomed(rows, groups, known) if table else set()
    failures: dict[int, str] = {}
    counted = []
    values = refolding.row_inputs(node, rows)
    for place, (key, contribution, op) in enumerate(rows.select(KEY, CONTRIBUTION, OP).iter_rows()):
        if op < 0 and (key, contribution) in known:
            continue
        group = groups.setdefault(key, Group(None, 0))
        try:
            if op > 0:
                group.value = calls.added(group.value, values[place], key_columns[key])
                group.count += 1
            else:
                group.count -= 1
                group.value = (
                    group.value if key in doomed else calls.removed(group.value, values[place], key_columns[key])
                )
            counted.append(place)
        except RefusedError as error:
            failures[place] = str(error)
    refolding.report(node, rows[sorted(failures)], [failures[place] for place in sorted(failures)], ledger)
    if table:
        again = pl.DataFrame(list(known), schema={KEY: pl.Binary, CONTRIBUTION: pl.Binary}, orient="row")
        refused.apply(rows[sorted(failures)].filter(pl.col(OP) > 0).select(KEY, CONTRIBUTION), again)
        alive = {key: group for key, group in groups.items() if group.count > 0}
    else:
        alive = {key: group for key, group in groups.items() if group.value is not None}
    return alive, rows[counted]


def _known(rows: pl.DataFrame, refused: GroupedStore) -> set[tuple[bytes, bytes]]:
    """The retractions of rows that were refused when they came."""
    gone = rows.filter(pl.col(OP) < 0).select(KEY, CONTRIBUTION)
    if not refused.rows or gone.is_empty():
        return set()
    return set(refused.lookup_rows(gone).select(KEY, CONTRIBUTION).iter_rows())


def _doomed(rows: pl.DataFrame, groups: dict[bytes, Group], known: set[tuple[bytes, bytes]]) -> set[bytes]:
    """The groups that this batch leaves without contributions: nothing need be removed from their aggregate."""
    left = Counter({key: group.count for key, group in groups.items()})
    pairs = list(rows.select(KEY, CONTRIBUTION, OP).iter_rows())
    left.subtract(Counter(key for key, contribution, op in pairs if op < 0 and (key, contribution) not in known))
    return {key for key, count in left.items() if count <= 0} - {key for key, _, op in pairs if op > 0}


def _groups(node: Fold, before: pl.DataFrame) -> dict[bytes, Group]:
    values = row_values(before, node.values)
    groups = {}
    for key, count, live, value in zip(before[KEY], before[COUNT], before[LIVE], values, strict=True):
        row = {SCALAR_COLUMN: value} if node.values.scalar else value
        groups[key] = Group(row if live else None, count)
    return groups


def _frame(node: Fold, groups: dict[bytes, Group]) -> pl.DataFrame:
    """Groups as they are stored, without their position."""
    live = {key: group.value for key, group in groups.items() if group.value is not None}
    state = pl.DataFrame(
        {
            KEY: pl.Series(list(groups), dtype=pl.Binary),
            COUNT: pl.Series([group.count for group in groups.values()], dtype=pl.Int64),
            LIVE: pl.Series([group.value is not None for group in groups.values()], dtype=pl.Boolean),
        }
    )
    values = to_frame(list(live.values()), node.values).with_columns(pl.Series(KEY, list(live), dtype=pl.Binary))
    return state.join(values, on=KEY, how="left")


def _latest(before: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """The highest position of each group, of what is stored and of rows."""
    both = pl.concat([before.select(KEY, *ORDER), rows.select(KEY, *ORDER)])
    return both.sort(*ORDER).unique(KEY, keep="last", maintain_order=True)
