"""Folding a table's groups again out of their contributions, where the user gave no `remove` or order matters later.

Contributions are added in the order of the key they had before, so the result depends on what is in the group and on
nothing else. One that `add` refuses is left out and marked; it is a dead letter when it is marked, not each time its
group is folded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from everstate.kernels.changes import shaped
from everstate.kernels.functions import row_values
from everstate.kernels.operations.fold.folding import Folding, Group, RefusedError
from everstate.kernels.rows import CONTRIBUTION, KEY, OP, ORDER, SYSTEM

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everstate.kernels.ledger import Ledger
    from everstate.kernels.pages.grouped_store import GroupedStore
    from everstate.topology.nodes import Fold

#: Starts the names of the columns that the functions see.
INPUT: Final = "$r:"

_REFUSED: Final = "$refused"
_PAIR: Final = [KEY, CONTRIBUTION]


def folded(
    node: Fold, rows: pl.DataFrame, keys: pl.DataFrame, held: GroupedStore, ledger: Ledger
) -> tuple[dict[bytes, Group], pl.DataFrame]:
    """Apply a batch to the contributions and fold the groups that it touches.

    Args:
        node: The node.
        rows: The batch.
        keys: `$key` and key columns of the groups it touches.
        held: The contributions; brought up to date.
        ledger: Takes contributions that are refused.

    Returns:
        The groups that have a contribution that counts, and the position of the last one of each.
    """
    columns: dict[str, pl.DataType] = {KEY: pl.Binary(), CONTRIBUTION: pl.Binary(), _REFUSED: pl.Boolean()}
    columns |= {name: SYSTEM[name] for name in ORDER}
    columns |= {INPUT + name: dtype for name, dtype in node.inputs[0].schema.polars.items()}
    added = shaped(rows.filter(pl.col(OP) > 0), columns)
    gone = rows.filter(pl.col(OP) < 0).select(_PAIR)
    kept = shaped(held.lookup(keys), columns).join(pl.concat([gone, added.select(_PAIR)]), on=_PAIR, how="anti")
    contributions = pl.concat([kept, added]).sort(_PAIR)
    groups, reasons = _folded(node, contributions, keys)
    refused = pl.Series(_REFUSED, [reason is not None for reason in reasons], dtype=pl.Boolean)
    changed = contributions[_REFUSED].ne_missing(refused)
    newly = changed & refused
    report(
        node, contributions.filter(newly), [reason for reason, new in zip(reasons, newly, strict=True) if new], ledger
    )
    held.apply(contributions.with_columns(refused).filter(changed), gone.join(added, on=_PAIR, how="anti"))
    last = contributions.filter(~refused).sort(*ORDER).unique(KEY, keep="last").select(KEY, *ORDER)
    return groups, last


def row_inputs(node: Fold, rows: pl.DataFrame) -> list[Any]:
    """The rows as the user's functions see them."""
    return row_values(_inputs(node, rows), node.inputs[0].schema)


def report(node: Fold, rows: pl.DataFrame, reasons: Sequence[str | None], ledger: Ledger) -> None:
    """Make dead letters of rows under the key they came with, also of those that could not be removed."""
    if rows.height:
        letters = pl.concat([rows.select(CONTRIBUTION, *ORDER), _inputs(node, rows)], how="horizontal")
        letters = letters.rename({CONTRIBUTION: KEY}).with_columns(pl.lit(1, pl.Int8).alias(OP))
        ledger.dead(letters, [reason or "" for reason in reasons], node)


def _inputs(node: Fold, rows: pl.DataFrame) -> pl.DataFrame:
    return rows.select(pl.col(INPUT + name).alias(name) for name in node.inputs[0].schema.names)


def _folded(node: Fold, contributions: pl.DataFrame, keys: pl.DataFrame) -> tuple[dict[bytes, Group], list[str | None]]:
    """The groups, and for each contribution the reason if it was refused."""
    calls = Folding(node)
    key_columns = {row.pop(KEY): row for row in keys.iter_rows(named=True)}
    groups: dict[bytes, Group] = {}
    reasons: list[str | None] = []
    for key, row in zip(contributions[KEY], row_inputs(node, contributions), strict=True):
        group = groups.setdefault(key, Group(None, 0))
        try:
            group.value = calls.added(group.value, row, key_columns[key])
            group.count += 1
            reasons.append(None)
        except RefusedError as error:
            reasons.append(str(error))
    return {key: group for key, group in groups.items() if group.count}, reasons
