"""Parcels as Spark rows: an address and one Arrow block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow as pa

from everstate.engine.query.shard_numbers import shard_ids
from everstate.kernels.parcel import MARKS, OUT, Parcel, by_shard, from_block, to_block

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: The columns of a packed parcel. `origin` puts parcels of several senders into the same order every time.
ROWS: Final = "shard int, stage int, node int, port int, origin long, block binary"
_TYPES: Final[dict[str, pa.DataType]] = {
    "shard": pa.int32(),
    "stage": pa.int32(),
    "node": pa.int32(),
    "port": pa.int32(),
    "origin": pa.int64(),
    "block": pa.binary(),
}
ARROW: Final = pa.schema(_TYPES)
#: A block is cut above this size: Spark moves and sorts rows of some megabytes well, of hundreds badly.
BLOCK_BYTES: Final = 16 << 20
#: Parcels of one sender are numbered below this.
_SEQUENCE: Final = 1 << 20


@dataclass(frozen=True, eq=False)
class Packed:
    """One parcel, or a part of one, on its way to a shard.

    Attributes:
        shard: Spark's number of the shard.
        origin: Sender and sequence.
        block: The rows.
    """

    shard: int
    stage: int
    node: int
    port: int
    origin: int
    block: bytes

    def parcel(self) -> Parcel:
        """Unpack."""
        return Parcel(self.stage, self.node, self.port, from_block(self.block))


def merged(parcels: Iterable[Parcel]) -> list[Parcel]:
    """One parcel for each address."""
    frames: dict[tuple[int, int, int, bool], list[pl.DataFrame]] = {}
    for parcel in parcels:
        frames.setdefault((parcel.stage, parcel.node, parcel.port, parcel.everywhere), []).append(parcel.frame)
    return [
        Parcel(stage, node, port, parts[0] if len(parts) == 1 else pl.concat(parts, how="diagonal_relaxed"), copied)
        for (stage, node, port, copied), parts in frames.items()
    ]


def pack(parcels: Iterable[Parcel], *, shards: int, sender: int, home: int | None = None) -> Iterator[Packed]:
    """Address parcels to the shards of their rows.

    Args:
        parcels: What a task sends.
        shards: How many shards there are.
        sender: Number of the sending task, for the order of arrival.
        home: The shard that sends. Every shard has heard all marks, so from there on each passes them on to itself;
            what leaves the unit stays on the way through its own shard, too.
    """
    ids = shard_ids(shards)
    sequence = sender * _SEQUENCE
    for parcel in merged(parcels):
        if parcel.stage == OUT or (parcel.node == MARKS and home is not None):
            frame = parcel.frame.unique(maintain_order=True) if parcel.node == MARKS else parcel.frame
            parts = {home or 0: frame}
        else:
            parts = by_shard(parcel, shards)
        for shard, part in sorted(parts.items()):
            for piece in _pieces(part):
                yield Packed(ids[shard], parcel.stage, parcel.node, parcel.port, sequence, to_block(piece))
                sequence += 1


def to_arrow(packed: Iterable[Packed]) -> Iterator[pa.RecordBatch]:
    """One Arrow batch for each packed parcel, so that no batch holds more than one block."""
    for item in packed:
        yield pa.RecordBatch.from_pylist([item.__dict__], schema=ARROW)


def _pieces(frame: pl.DataFrame) -> Iterator[pl.DataFrame]:
    parts = max(1, -(-int(frame.estimated_size()) // BLOCK_BYTES))
    height = max(1, -(-frame.height // parts))
    return frame.iter_slices(height)
