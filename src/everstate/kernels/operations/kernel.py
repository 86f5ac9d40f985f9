"""What a kernel is: a handful of functions that say what an operation does to rows and state.

Who runs an operation, converts its state or reads its table asks for them in `kernels.py`, and knows no operation by
name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from everstate.topology.nodes import Node

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    from everstate.kernels.ledger import Ledger
    from everstate.kernels.shard import Shard
    from everstate.schema.schema import Schema

N = TypeVar("N", bound=Node)
N_contra = TypeVar("N_contra", bound=Node, contravariant=True)


class Update(Protocol[N_contra]):
    """Brings a step's state up to date with the rows of its ports, and gives the rows that follow.

    `emit_moves` says that a step downstream orders rows: what has only moved in time is then a change as well.
    """

    def __call__(
        self, node: N_contra, number: int, inputs: list[pl.DataFrame], shard: Shard, /, *, emit_moves: bool
    ) -> pl.DataFrame:
        """For one micro-batch."""
        ...


class Prepare(Protocol[N_contra]):
    """What rows become on their way to a port, where they are sent: another key, less to send."""

    def __call__(
        self, node: N_contra, port: int, rows: pl.DataFrame, ledger: Ledger, /, *, emit_moves: bool
    ) -> pl.DataFrame:
        """For one micro-batch."""
        ...


class Table(Protocol[N_contra]):
    """The table that a step's state amounts to: `$key`, time, position and the step's columns."""

    def __call__(self, node: N_contra, number: int, shard: Shard, /, *, emit_moves: bool) -> pl.DataFrame:
        """For one micro-batch."""
        ...


class Records(Protocol[N_contra]):
    """The records that leave the unit; `settled` changes come one per key and side.

    With `sources`, the names of the unit's topics, records say which input has caused them.
    """

    def __call__(
        self, node: N_contra, rows: pl.DataFrame, shard: Shard, /, *, settled: bool, sources: tuple[str, ...] = ()
    ) -> pl.DataFrame:
        """For one micro-batch."""
        ...


def _as_they_are(node: Node, port: int, rows: pl.DataFrame, ledger: Ledger, /, *, emit_moves: bool) -> pl.DataFrame:
    del node, port, ledger, emit_moves
    return rows


@dataclass(frozen=True)
class RowKernel(Generic[N]):
    """An operation that sees each row alone; for a source, each record.

    Attributes:
        update: (node, rows, ledger) -> the rows that follow.
    """

    update: Callable[[N, pl.DataFrame, Ledger], pl.DataFrame]


@dataclass(frozen=True)
class StateKernel(Generic[N]):
    """An operation that keeps state.

    Attributes:
        update: One micro-batch.
        prepare: What the sending side does.
        table: Its results, read from state; None where they are not in there.
        contents: (node, number, shard) -> `$key` and what is stored for it, where that is no table.
        shown: What is stored for a key, for people, from a row of `contents`.
        fill: (node, number, shard): gives stored rows the defaults of columns that they never had.
        convert: (node, number, schema before, shard): calls the user's `migrate` with all that is stored.
        settled: At most one change of each side a key comes out, and none without effect.
    """

    update: Update[N]
    prepare: Prepare[N] = _as_they_are
    table: Table[N] | None = None
    contents: Callable[[N, int, Shard], pl.DataFrame] | None = None
    shown: Callable[[dict[str, Any]], str] | None = None
    fill: Callable[[N, int, Shard], None] | None = None
    convert: Callable[[N, int, Schema, Shard], None] | None = None
    settled: bool = False


@dataclass(frozen=True)
class EndKernel(Generic[N]):
    """The end of a unit: rows become records."""

    records: Records[N]


Kernel: TypeAlias = RowKernel[Any] | StateKernel[Any] | EndKernel[Any]
