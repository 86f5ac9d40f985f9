"""The aggregates of an earlier version as those of this one, by the user's `migrate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from everstate.kernels.changes import shaped
from everstate.kernels.functions import row_values
from everstate.kernels.operations.converting import converted, fitting, function_of
from everstate.kernels.operations.fold import fold
from everstate.kernels.operations.fold.fold import GROUPS, LIVE, STORED
from everstate.kernels.operations.kernel import StateKernel
from everstate.kernels.records.keys import decode_keys
from everstate.kernels.records.python_rows import to_frame
from everstate.kernels.rows import KEY
from everstate.topology.nodes import Fold

if TYPE_CHECKING:
    from everstate.kernels.shard import Shard
    from everstate.schema.schema import Schema


def convert(node: Fold, number: int, before: Schema, shard: Shard) -> None:
    """Convert the aggregates of all groups.

    Args:
        node: The node.
        number: Under which it keeps its state.
        before: The columns that its aggregates had.
        shard: Holds them.

    Raises:
        MigrationError: If the function raises, or gives what does not fit.
    """
    function = function_of(node)
    groups = shaped(shard.keyed(number, GROUPS).scan(), STORED | before.polars)
    keys = pl.DataFrame(decode_keys(groups[KEY], node.key)[0])
    # As in the functions of a reduce, a row has its key.
    whole = node.init is None and not node.schema.scalar
    values: list[dict[str, Any] | None] = []
    for key, names, live, value in zip(
        groups[KEY], keys.iter_rows(named=True), groups[LIVE], row_values(groups, before), strict=True
    ):
        if not live:
            values.append(None)
            continue
        result = converted(function, {**names, **value} if whole else value, key)
        if whole and isinstance(result, dict):
            result = {name: part for name, part in result.items() if name not in node.key.names}
        values.append(None if result is None else fitting(function, result, node.values, key))
    kept = groups.select(*STORED).with_columns(
        pl.Series(LIVE, [value is not None for value in values], dtype=pl.Boolean)
    )
    made = to_frame([value for value in values if value is not None], node.values)
    made = made.with_columns(kept[KEY].filter(kept[LIVE]))
    shard.replace(number, GROUPS, kept.join(made, on=KEY, how="left", maintain_order="left"))


KERNELS: Final = {Fold: StateKernel(fold.update, prepare=fold.prepare, table=fold.table, convert=convert)}
