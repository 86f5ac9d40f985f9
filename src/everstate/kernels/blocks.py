"""Pages as bytes: each an Arrow IPC stream of one record batch, which describes itself.

Opening a stream costs far more than reading a few hundred rows. Blocks of one schema begin with the same bytes, so many
of them are joined into a single stream by leaving out all schemas but the first and all end marks but the last, and
many are written by cutting a single stream between its record batches. For 1,000 blocks of 300 rows that is about ten
milliseconds each way, a tenth of what one stream a block costs. Blocks are not compressed: Spark's state store
compresses what it writes, and compressing here takes three times as long as all the rest.
"""

from __future__ import annotations

import struct
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


def encode(frame: pl.DataFrame, bounds: Sequence[int]) -> list[bytes]:
    """Blocks of the rows between each two bounds.

    Args:
        frame: Rows, those of a page next to each other.
        bounds: Where pages begin, and at last where the last one ends; no page is empty.
    """
    if len(bounds) < 2:
        return []
    table = _without_int128(frame).to_arrow(compat_level=pl.CompatLevel.oldest()).combine_chunks()
    batch = table.to_batches(max_chunksize=None)[0]
    if any(_has_dictionary(field.type) for field in batch.schema):
        # A stream holds a dictionary once, before the first batch that needs it: such pages are streams of their own.
        return [block for begin, end in pairwise(bounds) for block in _stream(batch, [begin, end], cut=False)]
    return _stream(batch, bounds, cut=True)


def decode(blocks: Sequence[bytes]) -> tuple[pl.DataFrame, list[int], list[int]]:
    """The rows of many blocks as one frame; a column that some blocks lack is null there.

    Returns:
        The frame; the blocks' positions in the order in which their rows follow each other; their numbers of rows.
    """
    alike: dict[bytes, list[int]] = {}
    for position, block in enumerate(blocks):
        alike.setdefault(block[: _schema_length(block)], []).append(position)
    frames: list[pl.DataFrame] = []
    order: list[int] = []
    lengths: list[int] = []
    for schema, positions in alike.items():
        parts = [memoryview(blocks[position])[len(schema) : -len(_END)] for position in positions]
        with pa.ipc.open_stream(pa.py_buffer(b"".join([schema, *parts, _END]))) as reader:
            batches = list(reader)
        if len(batches) != len(positions):
            raise pa.ArrowInvalid(f"{len(positions)} blocks hold {len(batches)} record batches")
        frames.append(_with_int128(_to_frame(batches)))
        order.extend(positions)
        lengths.extend(batch.num_rows for batch in batches)
    return combine(frames), order, lengths


def combine(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Frames one below the other; a column that some lack is null there."""
    if len(frames) == 1:
        return frames[0]
    return pl.concat(
        frames, how="vertical" if len({tuple(f.columns) for f in frames}) == 1 else "diagonal", rechunk=True
    )


def payload(block: bytes) -> int:
    """The bytes of a block without its schema and framing."""
    schema = _schema_length(block)
    return len(block) - schema - len(_END) - _message_head(block, schema)


def expected_payload(frame: pl.DataFrame) -> int:
    """About how many bytes the rows of a frame will take."""
    # Polars counts the bytes of texts and lists but not where each begins.
    offsets = sum(8 for kind in frame.dtypes if kind in (pl.Binary, pl.String, pl.List))
    return int(frame.estimated_size()) + frame.height * offsets


def _stream(batch: pa.RecordBatch, bounds: Sequence[int], *, cut: bool) -> list[bytes]:
    sink = pa.BufferOutputStream()
    ends = []
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        for begin, end in pairwise(bounds):
            writer.write_batch(batch.slice(begin, end - begin))
            ends.append(sink.tell())
    stream = memoryview(sink.getvalue())
    if not cut:
        return [bytes(stream)]
    start = _schema_length(stream)
    schema = bytes(stream[:start])
    return [b"".join((schema, stream[begin:end], _END)) for begin, end in zip([start, *ends[:-1]], ends, strict=True)]


def _message_head(block: bytes | memoryview, at: int) -> int:
    """The length of a message's head and metadata."""
    if len(block) < at + _HEAD.size:
        raise pa.ArrowInvalid("the block ends too early")
    mark, metadata = _HEAD.unpack_from(block, at)
    if mark != 0xFFFFFFFF or metadata < 0:
        raise pa.ArrowInvalid("the block does not begin with an Arrow message")
    return _HEAD.size + int(metadata)


def _schema_length(block: bytes | memoryview) -> int:
    length = _message_head(block, 0)
    if bytes(block[-len(_END) :]) != _END or length + _HEAD.size > len(block):
        raise pa.ArrowInvalid("the block ends too early")
    return length


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
