"""State of an earlier version becomes state of this one, on one shard and before its first micro-batch.

The user's functions convert what is the user's own: the state of stateful functions, and custom aggregates. Rows that
have got columns without a default need no conversion: stores give null for what a page lacks; a table's rows get the
defaults of the others. A table is then derived anew from the last step that keeps state. Whether all that is right is
seen on a sample of keys that was recalculated from history.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from everstate.kernels import fold, stateful
from everstate.kernels.changes import equal_rows, shaped
from everstate.kernels.functions import reason, row_values
from everstate.kernels.hashing import murmur2
from everstate.kernels.keys import decode_keys
from everstate.kernels.parcel import from_block, to_block
from everstate.kernels.pyrows import default_column, to_frame
from everstate.kernels.rows import KEY
from everstate.kernels.standing import standing
from everstate.kernels.state import checked, decode, encode
from everstate.topology.describe import keeps_state
from everstate.topology.errors import EverstateError, MigrationError
from everstate.topology.nodes import Fold, Latest, Stateful
from everstate.topology.values import check_row

if TYPE_CHECKING:
    from everstate.kernels.shard import Shard
    from everstate.topology.functions import Function
    from everstate.topology.nodes import Node
    from everstate.topology.schema import Schema
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
        converts: By node whose `migrate` function is called, what a custom aggregate looked like before; None for a
            stateful function, whose state describes itself.
        anew: The node from whose state the table is derived; None for a stream.
        sample: Proves the conversion; None where state stays as it is.
    """

    mark: str
    converts: dict[int, Schema | None] = field(default_factory=dict)
    anew: int | None = None
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
        if isinstance(node, Latest):
            _fill(node, unit.stores[number], shard)
    for number, before in migration.converts.items():
        node = unit.nodes[number]
        if unit.stages[number] == stage and isinstance(node, Fold) and before is not None:
            _convert_groups(node, unit.stores[number], before, shard)
        elif unit.stages[number] == stage and isinstance(node, Stateful):
            _convert_states(node, unit.stores[number], shard)
    if migration.sample is not None and stage == unit.depth:
        _compare(unit, shard, migration.sample)


def portrait(unit: Unit, number: int, shard: Shard, limit: int) -> pl.DataFrame:
    """What a step has for the keys of a sample: its table, or the state of its function."""
    node = unit.nodes[number]
    if isinstance(node, Stateful):
        found = shaped(shard.keyed(unit.stores[number]).scan(), stateful.STORED)
    else:
        found = standing(unit, number, shard).select(KEY, *node.values.names)
    return found.filter(pl.Series(place(found[KEY]) < limit)).sort(KEY)


def place(keys: pl.Series) -> np.ndarray:
    """Where keys are among all possible ones: what decides which are in a sample, independent of shards and pages."""
    return (murmur2(keys).astype(np.uint64) * _SCATTER) & np.uint64(EVERY - 1)


def sampled_nodes(unit: Unit) -> list[int]:
    """The steps that a sample looks at: those of the last stage that keep state."""
    return [number for number, node in unit.members(unit.depth) if keeps_state(node)]


def sample_of(unit: Unit, shard: Shard, limit: int) -> Sample:
    """The sample that a recalculation gives."""
    return Sample(limit, {n: to_block(portrait(unit, n, shard, limit)) for n in sampled_nodes(unit)})


def _fill(node: Latest, store: int, shard: Shard) -> None:
    """Give stored rows the defaults of columns that they never had."""
    declared = [field for field in node.values.fields if field.default is not None]
    if not declared:
        return
    rows = shard.keyed(store).scan()
    new = [field for field in declared if field.name not in rows.columns]
    if new and rows.height:
        shard.replace(store, 0, rows.with_columns(default_column(field).alias(field.name) for field in new))


def _convert_groups(node: Fold, store: int, before: Schema, shard: Shard) -> None:
    function = _function(node)
    groups = shaped(shard.keyed(store, fold.GROUPS).scan(), fold.STORED | before.polars)
    keys = pl.DataFrame(decode_keys(groups[KEY], node.key)[0])
    # As in the functions of a reduce, a row has its key.
    whole = node.init is None and not node.schema.scalar
    values: list[dict[str, Any] | None] = []
    for key, names, live, value in zip(
        groups[KEY], keys.iter_rows(named=True), groups[fold.LIVE], row_values(groups, before), strict=True
    ):
        if not live:
            values.append(None)
            continue
        result = _called(function, {**names, **value} if whole else value, key)
        if whole and isinstance(result, dict):
            result = {name: part for name, part in result.items() if name not in node.key.names}
        values.append(None if result is None else _fitting(function, result, node.values, key))
    kept = groups.select(*fold.STORED).with_columns(
        pl.Series(fold.LIVE, [value is not None for value in values], dtype=pl.Boolean)
    )
    made = to_frame([value for value in values if value is not None], node.values)
    made = made.with_columns(kept[KEY].filter(kept[fold.LIVE]))
    shard.replace(store, fold.GROUPS, kept.join(made, on=KEY, how="left", maintain_order="left"))


def _convert_states(node: Stateful, store: int, shard: Shard) -> None:
    function = _function(node)
    rows = []
    for key, blob in shaped(shard.keyed(store).scan(), stateful.STORED).iter_rows():
        result = _called(function, decode(blob), key)
        try:
            converted = encode(checked({} if result is None else result, f"{function.name}()"))
        except EverstateError as error:
            raise _failure(function, key, error.message) from None
        if converted:
            rows.append((key, converted))
    shard.replace(store, 0, pl.DataFrame(rows, schema=stateful.STORED, orient="row"))


def _function(node: Fold | Stateful) -> Function:
    if node.migrate is None:
        raise MigrationError(f"the {node.operation} has no migrate function", location=node.location)
    return node.migrate


def _called(function: Function, value: Any, key: bytes) -> Any:
    try:
        return function.call(value)
    except Exception as error:  # noqa: BLE001 - whatever the user's code raises
        raise _failure(function, key, reason(error, function)) from None


def _fitting(function: Function, result: Any, schema: Schema, key: bytes) -> dict[str, Any]:
    try:
        return check_row(result, schema)
    except EverstateError as error:
        raise _failure(function, key, f"wrong result: {error.message}") from None


def _failure(function: Function, key: bytes, why: str) -> MigrationError:
    return MigrationError(
        f"{function.name} cannot convert what is stored for key {key.decode(errors='replace')!r}: {why}",
        location=function.location,
    )


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
    function = node.migrate if isinstance(node, (Fold, Stateful)) else None
    return MigrationError(
        f"the {_word(node)} has for key {key.decode(errors='replace')!r} {_shown(node, found)} after the conversion, "
        f"and {_shown(node, wanted)} if it is recalculated",
        location=function.location if function is not None else node.location,
    )


def _word(node: Node) -> str:
    return "stateful function" if isinstance(node, Stateful) else node.operation


def _shown(node: Node, row: dict[str, Any]) -> str:
    if not row[_THERE]:
        return "nothing"
    if isinstance(node, Stateful):
        return repr(decode(row[stateful.STATE]))
    return repr({name: row[name] for name in node.values.names})
