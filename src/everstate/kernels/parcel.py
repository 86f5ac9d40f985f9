"""Rows on their way between stages and shards, and the blocks they travel in."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Final

import polars as pl

from everstate.kernels.pages.hashing import murmur2, shard_of
from everstate.kernels.rows import KEY

#: The stage of parcels that leave the unit.
OUT: Final = -1
#: The node of parcels that carry stream time to every shard.
MARKS: Final = -1

#: Ports of marks: of each split; of each recorded micro-batch that a split has a part of; what else a batch is told.
SPLITS: Final = 0
PARTS: Final = 1
TOLD: Final = 2

#: Ports of parcels that leave the unit.
RECORDS: Final = 0
DEAD_LETTERS: Final = 1
COUNTS: Final = 2
#: The first port of the further topics of a unit; they follow each other as in `Unit.sides`.
SIDES: Final = 3


@dataclass(frozen=True, eq=False)
class Parcel:
    """A frame addressed to a port of a node, or out of the unit.

    Attributes:
        stage: The stage that takes it, or `OUT`.
        node: The node that takes it, or `MARKS`.
        port: Which input of the node.
        frame: The rows.
        everywhere: They go to every shard, whatever their key.
    """

    stage: int
    node: int
    port: int
    frame: pl.DataFrame
    everywhere: bool = False


def by_shard(parcel: Parcel, shards: int) -> dict[int, pl.DataFrame]:
    """The parcel's rows by the shard of their key; rows without a key go to shard 0, marks to every shard."""
    if parcel.everywhere or parcel.node == MARKS:
        return dict.fromkeys(range(shards), parcel.frame)
    if shards == 1:
        return {0: parcel.frame}
    shard = pl.Series("$shard", shard_of(murmur2(parcel.frame[KEY].fill_null(b"")), shards), dtype=pl.Int32)
    parts = parcel.frame.with_columns(shard).partition_by("$shard", as_dict=True, include_key=False)
    return {int(number): part for (number,), part in parts.items()}


def to_block(frame: pl.DataFrame) -> bytes:
    """A frame as bytes; compressed, since every byte is copied a dozen times on its way through Java."""
    buffer = io.BytesIO()
    frame.write_ipc_stream(buffer, compression="lz4")
    return buffer.getvalue()


def from_block(block: bytes) -> pl.DataFrame:
    """The frame of `to_block`."""
    return pl.read_ipc_stream(io.BytesIO(block))
