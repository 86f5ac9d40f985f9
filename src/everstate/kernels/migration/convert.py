"""State of an earlier version becomes state of this one, on one shard and before its first micro-batch.

The user's functions convert what is the user's own: the state of stateful functions, and custom aggregates. Rows that
have got columns without a default need no conversion: stores give null for what a page lacks; a table's rows get the
defaults of the others. A table is then derived from the last step that keeps state. Whether all that is right is
seen on a sample of keys that was recalculated from history.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from everstate.errors import MigrationError
from everstate.kernels.changes import equal_rows
from everstate.kernels.migration.tables import table_of
from everstate.kernels.operations.kernels import state_kernel
from everstate.kernels.pages.hashing import murmur2
from everstate.kernels.parcel import from_block, to_block
from everstate.kernels.rows import KEY
from everstate.topology.names import noun

if TYPE_CHECKING:
    from everstate.kernels.shard import Shard
    from everstate.schema.schema import Schema
    from everstate.topology.nodes import Node
    from everstate.topology.unit import Unit

#: One more than the highest place of a key; every key is below it.
EVERY: Final = 1 << 32
_THERE: Final = "$there"
_SCATTER: Final = np.uint64(0x9E3779B1)


@dataclass(frozen=True)
class Sample:
    """What some keys must have after the conversion.

    Attributes:
        limit: The keys whose place is below it are in the sample.
        blocks: By node of the last stage, what a recalculation gives for them.
        unknown: Keys of which history does not tell what they had: they are not compared.
    """

    limit: int
    blocks: dict[int, bytes]
    unknown: frozenset[bytes] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Migration:
    """What is done to the state of the version before.

    Attributes:
        mark: Which migration; a shard notes it, so that a repeated start does not convert twice.
        converts: By node whose `migrate` function is called, the columns that it had before.
        derives_from: The node from whose state the table is derived; None for a stream.
        sample: Proves the conversion; None where state stays as it is.
    """

    mark: str
    converts: dict[int, Schema] = field(default_factory=dict)
    derives_from: int | None = None
    sample: Sample | None = None


def migrate(unit: Unit, stage: int, shard: Shard, migration: Migration) -> None:
    """Convert the state of a stage, and compare what came out with the sample.

    Args:
        unit: The unit.
        stage: The stage.
        shard: The shard's state; each store is read whole.
        migration: What to do.

    Raises:
        MigrationError: If a function raises or gives what cannot be stored, or a key of the sample has something else
            than its recalculation.
    """
    for number, node in unit.members(stage):
        kernel, store = state_kernel(node), unit.stores[number]
        if kernel is not None and kernel.fill is not None:
            kernel.fill(node, store, shard)
        if kernel is not None and kernel.convert is not None and number in migration.converts:
            kernel.convert(node, store, migration.converts[number], shard)
    if migration.sample is not None and stage == unit.depth:
        _compare(unit, shard, migration.sample)


def portrait(unit: Unit, number: int, shard: Shard, limit: int) -> pl.DataFrame:
    """What a step has for the keys of a sample: its table, or the state of its function."""
    node = unit.nodes[number]
    kernel = state_kernel(node)
    if kernel is not None and kernel.contents is not None:
        found = kernel.contents(node, unit.stores[number], shard)
    else:
        found = table_of(unit, number, shard).select(KEY, *node.values.names)
    return found.filter(pl.Series(place(found[KEY]) < limit)).sort(KEY)


def place(keys: pl.Series) -> np.ndarray:
    """Where keys are among all possible ones: what decides which are in a sample, independent of shards and pages."""
    return (murmur2(keys).astype(np.uint64) * _SCATTER) & np.uint64(EVERY - 1)


def sampled_nodes(unit: Unit) -> list[int]:
    """The steps that a sample looks at: those of the last stage that keep state."""
    return [number for number, node in unit.members(unit.depth) if node.traits.keeps_state]


def sample_of(unit: Unit, shard: Shard, limit: int) -> Sample:
    """The sample that a recalculation gives."""
    return Sample(limit, {n: to_block(portrait(unit, n, shard, limit)) for n in sampled_nodes(unit)})


def _compare(unit: Unit, shard: Shard, sample: Sample) -> None:
    for number, block in sample.blocks.items():
        node = unit.nodes[number]
        unknown = pl.DataFrame({KEY: list(sample.unknown)}, schema={KEY: pl.Binary})
        found, wanted = (
            frame.join(unknown, on=KEY, how="anti", maintain_order="left")
            for frame in (portrait(unit, number, shard, sample.limit), from_block(block))
        )
        wanted = wanted.filter(pl.Series(shard.holds(wanted[KEY])))
        both = found.select(KEY).join(wanted.select(KEY), on=KEY, how="full", coalesce=True).sort(KEY)
        converted, expected = (
            both.join(side.with_columns(pl.lit(value=True).alias(_THERE)), on=KEY, how="left", maintain_order="left")
            for side in (found, wanted)
        )
        same = equal_rows(converted, expected, [name for name in converted.columns if name != KEY])
        if not same.all():
            at = int((~same).arg_true()[0])
            raise _mismatch(node, both[KEY][at], converted.row(at, named=True), expected.row(at, named=True))


def _mismatch(node: Node, key: bytes, found: dict[str, Any], wanted: dict[str, Any]) -> MigrationError:
    return MigrationError(
        f"for key {key.decode(errors='replace')!r} the {noun(node.operation, node.traits)} has {_shown(node, found)} "
        f"after the conversion, but {_shown(node, wanted)} if it is recalculated",
        location=node.converter.location if node.converter is not None else node.location,
    )


def _shown(node: Node, row: dict[str, Any]) -> str:
    if not row[_THERE]:
        return "nothing"
    kernel = state_kernel(node)
    if kernel is not None and kernel.shown is not None:
        return kernel.shown(row)
    return repr({name: row[name] for name in node.values.names})
