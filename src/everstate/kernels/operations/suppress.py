"""Changes of a table that are held back: until a time has passed, or until there are too many of them.

What is held back of a key is its net change since something of it last came out: the row before, and the row now. A
further change replaces the row now and leaves the time as it is, so that a busy key comes out as often as a quiet one.
When a key comes out depends on where micro-batches end, since each brings the net change of its records; which row it
comes out with in the end does not.

A generation that is being built holds nothing back. So a cutover compares and publishes the whole table, and the same
state goes on holding back what comes after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.errors import StateError
from everstate.kernels.changes import CAUSE, differences, shaped, sides
from everstate.kernels.keying import with_key
from everstate.kernels.operations.kernel import StateKernel
from everstate.kernels.pages.due_index import DUE, DueIndex
from everstate.kernels.rows import KEY, STREAM_TIME, SYSTEM, TS
from everstate.topology.nodes.timed import Suppress

if TYPE_CHECKING:
    from everstate.kernels.shard import Shard

#: Whether the key had a row when something of it last came out, and whether it has one now.
HAD: Final = "$had"
HAS: Final = "$has"
#: When the first of the changes that are held back happened.
SINCE: Final = "$since"
_OLD: Final = "$old:"
_NEW: Final = "$new:"
#: Into so many slices the index divides the time for which changes are held back.
_SLICES: Final = 128


def update(
    node: Suppress, number: int, inputs: list[pl.DataFrame], shard: Shard, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Hold the changes of a micro-batch back, and let those out whose time has come.

    Args:
        node: The node.
        number: Under which it keeps its state.
        inputs: Changes of the table.
        shard: Holds what is held back, and knows how far time has come.
        emit_moves: Pass on rows of which only time or position changed.
    """
    slices, store = shard.sliced(number), shard.keyed(number)
    if shard.frontier is not None:
        slices.reached = max(slices.reached, shard.frontier)
    now = slices.reached
    columns = _stored(node)
    gone, added = sides(inputs[0], node.schema.names, moves=emit_moves)
    touched = pl.concat([gone[KEY], added[KEY]]).unique(maintain_order=True).to_frame()
    held = shaped(store.lookup(touched), columns)
    entries = _entries(node, touched, held, gone, added)
    if shard.building:
        waiting = shaped(store.scan(), columns).join(entries, on=KEY, how="anti")
        out = pl.concat([entries, waiting])
        store.apply(entries.clear(), out[KEY])
        return _given(node, out, emit_moves=emit_moves)
    index = None if node.until_ms is None else DueIndex(slices, max(1, node.until_ms // _SLICES))
    if index is not None:
        popped = index.pop(now).alias(KEY).to_frame().join(entries, on=KEY, how="anti")
        entries = pl.concat([entries, shaped(store.lookup(popped), columns)]) if popped.height else entries
        due = pl.col(SINCE) + node.until_ms
        ripe, rest = entries.filter(due <= now), entries.filter(due > now)
        # An entry of the index may be older than what is held back now, and has gone with what was popped.
        index.add(rest.select(KEY, due.alias(DUE)))
        ripe = ripe.with_columns(pl.max_horizontal(STREAM_TIME, due).alias(STREAM_TIME))
    else:
        ripe, rest = entries.clear(), entries
    store.apply(rest, ripe[KEY])
    crowded = _crowded(node, number, shard)
    return _given(node, pl.concat([ripe, crowded]), emit_moves=emit_moves)


def _stored(node: Suppress) -> dict[str, pl.DataType]:
    values = node.values.polars
    return {
        **{name: kind for name, kind in SYSTEM.items() if name in (KEY, *CAUSE)},
        SINCE: pl.Int64(),
        HAD: pl.Boolean(),
        HAS: pl.Boolean(),
        **{_OLD + name: dtype for name, dtype in values.items()},
        **{_NEW + name: dtype for name, dtype in values.items()},
    }


def _entries(
    node: Suppress, touched: pl.DataFrame, held: pl.DataFrame, gone: pl.DataFrame, added: pl.DataFrame
) -> pl.DataFrame:
    """What is held back of the keys that have changed."""
    names = node.values.names
    news = touched.join(_side(added, HAS, _NEW, names), on=KEY, how="left", maintain_order="left")
    causes = pl.concat([added.select(KEY, *CAUSE), gone.join(added, on=KEY, how="anti").select(KEY, *CAUSE)])
    news = news.join(causes, on=KEY, how="left", maintain_order="left")
    was = _side(gone, HAD, _OLD, names).with_columns(pl.lit(None, pl.Int64).alias(SINCE))
    first = was.join(held, on=KEY, how="anti")
    before = pl.concat([held.select(KEY, HAD, SINCE, *(_OLD + name for name in names)), first.select(_order(names))])
    whole = news.join(before, on=KEY, how="left", maintain_order="left")
    known = whole.with_columns(pl.col(HAD, HAS).fill_null(value=False), pl.coalesce(SINCE, TS).alias(SINCE))
    return shaped(known, _stored(node))


def _order(names: tuple[str, ...]) -> list[str]:
    return [KEY, HAD, SINCE, *(_OLD + name for name in names)]


def _side(rows: pl.DataFrame, flag: str, prefix: str, names: tuple[str, ...]) -> pl.DataFrame:
    return rows.select(KEY, pl.lit(value=True).alias(flag), *(pl.col(name).alias(prefix + name) for name in names))


def _crowded(node: Suppress, number: int, shard: Shard) -> pl.DataFrame:
    """The oldest of what is held back, as many as there are too many.

    Raises:
        StateError: If the user wants to stop in that case.
    """
    store, columns = shard.keyed(number), _stored(node)
    most = None if node.max_keys is None else node.max_keys // shard.shards
    if most is None or store.rows <= most:
        return pl.DataFrame(schema=columns)
    if node.when_full == "fail":
        raise StateError(
            f"suppress() holds back {store.rows} keys on a shard, and max_keys={node.max_keys} allows {most} of them",
            location=node.location,
            hint="Allow more keys, hold them back for a shorter time, or let the oldest out with when_full='emit'.",
        )
    waiting = shaped(store.scan(), columns).sort(SINCE, KEY)
    out = waiting.head(store.rows - most)
    store.apply(out.clear(), out[KEY])
    return out


def _given(node: Suppress, out: pl.DataFrame, *, emit_moves: bool) -> pl.DataFrame:
    """The net changes of what comes out."""
    names = node.values.names
    old, new = (
        with_key(out.filter(flag).select(KEY, *CAUSE, *(pl.col(prefix + name).alias(name) for name in names)), node.key)
        for flag, prefix in ((HAD, _OLD), (HAS, _NEW))
    )
    causes = out.select(KEY, *CAUSE)
    return differences(old, new, node.schema.names, causes=causes, moves=emit_moves)


KERNELS: Final = {Suppress: StateKernel(update, settled=True)}
