"""Pages as bytes: each an Arrow IPC stream of one record batch, which describes itself.

Opening a stream costs far more than reading a few hundred rows. Blocks of one schema begin with the same bytes, so many
of them are joined into a single stream by leaving out all schemas but the first and all end marks but the last, and
many are written by cutting a single stream between its record batches. For 1,000 blocks of 300 rows that is about ten
milliseconds each way, a tenth of what one stream a block costs. Blocks are not compressed here: a test driver that
keeps them in memory has nothing to gain, and on Spark whole pages are compressed on their way to its store.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Ends an IPC stream.
_END: Final = b"\xff\xff\xff\xff\x00\x00\x00\x00"
#: Before every IPC message: a mark and the length of its metadata.
_HEAD: Final = struct.Struct("<Ii")

#: Arrow has no 128-bit integers; they are stored as two columns with these endings.
_HIGH: Final = "\x1fhigh"
_LOW: Final = "\x1flow"
_BASE: Final = pl.lit(1 << 64, pl.Int128)


@dataclass(frozen=True)
class Decoded:
    """Rows of many blocks.

    Attributes:
        frame: The rows; a column that some blocks lack is null there.
        order: The blocks' positions in the order in which their rows follow each other.
        lengths: How many rows come from each, in that order.
        payloads: Their bytes without schema and framing, in that order.
    """

    frame: pl.DataFrame
    order: list[int]
    lengths: list[int]
    payloads: list[int]


def encode(frame: pl.DataFrame, bounds: Sequence[int]) -> tuple[list[bytes], list[int]]:
    """Blocks of the rows between each two bounds, and the payload of each.

    Args:
        frame: Rows, those of a page next to each other.
        bounds: Where pages begin, and at last where the last one ends; no page is empty.
    """
    if len(bounds) < 2:
        return [], []
    table = _without_int128(frame).to_arrow(compat_level=pl.CompatLevel.oldest()).combine_chunks()
    batch = table.to_batches(max_chunksize=None)[0]
    if any(_has_dictionary(field.type) for field in batch.schema):
        # A stream holds a dictionary once, before the first batch that needs it: such pages are streams of their own.
        blocks = [_cut(batch, pair)[0] for pair in pairwise(bounds)]
    else:
        blocks = _cut(batch, bounds)
    overhead = _overhead(blocks[0])
    return blocks, [len(block) - overhead for block in blocks]


def decode(blocks: Sequence[bytes]) -> Decoded:
    """The rows of many blocks as one frame."""
    alike: dict[bytes, list[int]] = {}
    schema = None
    for position, block in enumerate(blocks):
        if schema is None or not block.startswith(schema):
            schema = block[: _message_head(block, 0)]
        alike.setdefault(schema, []).append(position)
    frames: list[pl.DataFrame] = []
    lengths: list[int] = []
    payloads: list[int] = []
    for schema, positions in alike.items():
        group = [blocks[position] for position in positions]
        batches = _read(schema, group)
        overhead = _overhead(group[0])
        frames.append(_with_int128(_to_frame(batches)))
        lengths.extend(batch.num_rows for batch in batches)
        payloads.extend(len(block) - overhead for block in group)
    order = [position for positions in alike.values() for position in positions]
    return Decoded(combine(frames), order, lengths, payloads)


def combine(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Frames one below the other; a column that some lack is null there."""
    if len(frames) == 1:
        return frames[0]
    return pl.concat(
        frames, how="vertical" if len({tuple(f.columns) for f in frames}) == 1 else "diagonal", rechunk=True
    )


def expected_payload(frame: pl.DataFrame) -> int:
    """About how many bytes the rows of a frame will take."""
    # Polars counts the bytes of texts and lists but not where each begins.
    offsets = sum(8 for kind in frame.dtypes if kind in (pl.Binary, pl.String, pl.List))
    return int(frame.estimated_size()) + frame.height * offsets


def _cut(batch: pa.RecordBatch, bounds: Sequence[int]) -> list[bytes]:
    """Writes slices of a batch as one stream, and cuts that into blocks."""
    sink = pa.BufferOutputStream()
    ends = []
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        for begin, end in pairwise(bounds):
            writer.write_batch(batch.slice(begin, end - begin))
            ends.append(sink.tell())
    stream = memoryview(sink.getvalue())
    start = _message_head(stream, 0)
    schema = bytes(stream[:start])
    return [b"".join((schema, stream[begin:end], _END)) for begin, end in pairwise([start, *ends])]


def _read(schema: bytes, blocks: list[bytes]) -> list[pa.RecordBatch]:
    """The record batches of blocks that begin with the same schema."""
    if not all(block.endswith(_END) for block in blocks):
        raise pa.ArrowInvalid("a block ends too early")
    parts = [memoryview(block)[len(schema) : -len(_END)] for block in blocks]
    with pa.ipc.open_stream(pa.py_buffer(b"".join([schema, *parts, _END]))) as reader:
        batches = list(reader)
    if len(batches) != len(blocks):
        raise pa.ArrowInvalid(f"{len(blocks)} blocks hold {len(batches)} record batches")
    return batches


def _message_head(block: bytes | memoryview, at: int) -> int:
    """The length of a message's head and metadata."""
    if len(block) < at + _HEAD.size:
        raise pa.ArrowInvalid("a block ends too early")
    mark, metadata = _HEAD.unpack_from(block, at)
    if mark != 0xFFFFFFFF or metadata < 0:
        raise pa.ArrowInvalid("a block does not begin with an Arrow message")
    return _HEAD.size + int(metadata)


def _overhead(block: bytes) -> int:
    """The bytes of schema and framing, which are as many in every block of that schema."""
    schema = _message_head(block, 0)
    return schema + _message_head(block, schema) + len(_END)


def _to_frame(batches: list[pa.RecordBatch]) -> pl.DataFrame:
    frame = pl.from_arrow(pa.Table.from_batches(batches).combine_chunks())
    assert isinstance(frame, pl.DataFrame)
    return frame


def _has_dictionary(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return True
    return any(_has_dictionary(kind.field(i).type) for i in range(kind.num_fields))


def _without_int128(frame: pl.DataFrame) -> pl.DataFrame:
    columns: list[pl.Expr] = []
    for name, kind in frame.schema.items():
        value = pl.col(name)
        if kind == pl.Int128:
            columns.append((value // _BASE).cast(pl.Int64).alias(name + _HIGH))
            columns.append((value % _BASE).cast(pl.UInt64).alias(name + _LOW))
        else:
            columns.append(value)
    return frame.select(columns) if len(columns) > frame.width else frame


def _with_int128(frame: pl.DataFrame) -> pl.DataFrame:
    if not any(name.endswith(_HIGH) for name in frame.columns):
        return frame
    columns: list[pl.Expr] = []
    for name in frame.columns:
        value = pl.col(name)
        if name.endswith(_HIGH):
            whole = name.removesuffix(_HIGH)
            columns.append((value.cast(pl.Int128) * _BASE + pl.col(whole + _LOW).cast(pl.Int128)).alias(whole))
        elif not name.endswith(_LOW):
            columns.append(value)
    return frame.select(columns)
