"""Pages in Spark's state store.

PySpark's own client sends one request and waits for the answer, which costs a page two switches between processes. The
other end of its socket reads and answers one request after the other, so several may be on their way: the pages of a
batch are asked for, or written, in one go, at half the cost. And as every byte is encoded twice on its way to Java,
pages are compressed before that.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.streaming.proto import StateMessage_pb2 as messages

from everstate.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

#: Requests on their way at once. Either the requests or their answers are small, and so many small ones fit into the
#: socket's buffer: neither side ever waits for the other to read.
WINDOW: Final = 64

#: Before every message: the version of the protocol and the length.
_HEAD: Final = struct.Struct("!ii")
#: Before every compressed page: its length without compression.
_LENGTH: Final = struct.Struct("<I")
_CODEC: Final = pa.Codec("lz4_raw")


class SparkPages:
    """The pages of one shard.

    Args:
        state: A `MapState` from (store int, page int) to (block binary).
    """

    def __init__(self, state: Any) -> None:
        # Only these parts of PySpark can have more than one request on the way; its version is pinned.
        self._name = state._stateName  # noqa: SLF001
        self._client = state._mapStateClient._stateful_processor_api_client  # noqa: SLF001

    def read(self, store: int, pages: Sequence[int]) -> list[bytes | None]:
        """The blocks of pages; None where there is none."""
        calls = (self._call(getValue=messages.GetValue(userKey=self._key(store, page))) for page in pages)
        return [self._opened(answer) if answer else None for answer in self._asked(calls)]

    def write(self, store: int, blocks: Mapping[int, bytes]) -> None:
        """Write the blocks of pages."""
        calls = (
            self._call(updateValue=messages.UpdateValue(userKey=self._key(store, page), value=self._packed(block)))
            for page, block in blocks.items()
        )
        for _ in self._asked(calls):
            pass

    def delete(self, store: int, pages: Sequence[int]) -> None:
        """Take pages away."""
        calls = (self._call(removeKey=messages.RemoveKey(userKey=self._key(store, page))) for page in pages)
        for _ in self._asked(calls):
            pass

    def _key(self, store: int, page: int) -> bytes:
        key: bytes = self._client.pickleSer.dumps((store, page))
        return key

    def _packed(self, block: bytes) -> bytes:
        value: bytes = self._client.pickleSer.dumps((compressed(block),))
        return value

    def _opened(self, answer: bytes) -> bytes:
        return decompressed(self._client.pickleSer.loads(answer)[0])

    def _call(self, **call: Any) -> bytes:
        request = messages.MapStateCall(stateName=self._name, **call)
        message: bytes = messages.StateRequest(
            stateVariableRequest=messages.StateVariableRequest(mapStateCall=request)
        ).SerializeToString()
        return message

    def _asked(self, calls: Iterator[bytes]) -> Iterator[bytes]:
        """The answers to calls, in order."""
        stream = self._client.sockfile
        waiting = True
        while waiting:
            sent = 0
            for message in calls:
                stream.write(_HEAD.pack(0, len(message)))
                stream.write(message)
                sent += 1
                if sent == WINDOW:
                    break
            else:
                waiting = False
            stream.flush()
            for _ in range(sent):
                status, text, value = self._client._receive_proto_message()  # noqa: SLF001 - see above
                if status != 0:
                    raise EngineError(f"Spark's state store refuses a page: {text}")
                yield value


def compressed(block: bytes) -> bytes:
    """A page as it is stored.

    Example:
        >>> decompressed(compressed(b"page " * 100)) == b"page " * 100
        True
    """
    return _LENGTH.pack(len(block)) + _CODEC.compress(block, asbytes=True)


def decompressed(stored: bytes | bytearray) -> bytes:
    """The page that `compressed` made.

    Raises:
        ArrowInvalid: If it is not one.
    """
    if len(stored) <= _LENGTH.size:
        raise pa.ArrowInvalid("a page ends too early")
    (length,) = _LENGTH.unpack_from(stored)
    try:
        block: bytes = _CODEC.decompress(memoryview(stored)[_LENGTH.size :], length, asbytes=True)
    except OSError as error:
        raise pa.ArrowInvalid(f"a page cannot be decompressed: {error}") from error
    return block
