"""What a changelog of Spark's state store builds on.

The changes of a batch are a file of their own. It begins with its lineage: the versions back to the last snapshot,
which Spark loads before it replays the files between. Nothing else says which files the next batch needs; a snapshot
that is older than the lineage is of no use to Spark.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Final

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The frames of lz4-java: magic, method, length, length without compression, check sum.
_FRAME: Final = struct.Struct("<8sBIII")
_MAGIC: Final = b"LZ4Block"
_METHOD: Final = 0xF0
_STORED: Final = 0x10
_TEXT: Final = struct.Struct(">H")
_CODEC: Final = pa.Codec("lz4_raw")
#: The formats of a changelog that carry a lineage.
_WITH_LINEAGE: Final = frozenset({"v3", "v4"})


def lineage(content: bytes) -> dict[int, str]:
    """The versions that a changelog builds on, with the id of each; the file itself is not among them.

    Args:
        content: The bytes of the file.

    Raises:
        ValueError: If it is not a changelog with a lineage.
    """
    frames = _frames(content)
    version, rest = _text(b"", frames)
    if version not in _WITH_LINEAGE:
        raise ValueError(f"its format {version!r} is not known")
    document, _ = _text(rest, frames)
    try:
        return {int(item["version"]): str(item["checkpointUniqueId"]) for item in json.loads(document)}
    except (TypeError, KeyError) as error:
        raise ValueError("its lineage cannot be read") from error


def _text(begun: bytes, frames: Iterator[bytes]) -> tuple[str, bytes]:
    """A text as Java's DataOutput writes it, and what follows."""
    stored = _at_least(begun, _TEXT.size, frames)
    (length,) = _TEXT.unpack_from(stored)
    stored = _at_least(stored, _TEXT.size + length, frames)
    return stored[_TEXT.size : _TEXT.size + length].decode(), stored[_TEXT.size + length :]


def _at_least(begun: bytes, size: int, frames: Iterator[bytes]) -> bytes:
    while len(begun) < size:
        begun += next(frames)
    return begun


def _frames(content: bytes) -> Iterator[bytes]:
    position = 0
    while position + _FRAME.size <= len(content):
        magic, token, length, full, _ = _FRAME.unpack_from(content, position)
        position += _FRAME.size
        body = content[position : position + length]
        position += length
        if magic != _MAGIC or len(body) != length:
            raise ValueError("it is not compressed the way Spark does it")
        if token & _METHOD == _STORED:
            yield body
        else:
            try:
                yield _CODEC.decompress(body, full, asbytes=True)
            except (OSError, pa.ArrowInvalid) as error:
                raise ValueError("it cannot be decompressed") from error
    raise ValueError("it ends too early")
