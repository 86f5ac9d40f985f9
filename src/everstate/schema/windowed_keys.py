"""Keys of windows as Kafka Streams writes them: the bytes of the group's key, then the window's bounds.

| windows | after the group's key |
|---|---|
| tumbling, hopping, sliding | the start: eight bytes, big endian, milliseconds since 1970 |
| sessions | the end, then the start |
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from struct import Struct
from typing import Final

from everstate.errors import DecodeError

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_ONE, _TWO = Struct(">q"), Struct(">qq")


@dataclass(frozen=True)
class WindowedKeys:
    """Which windows the keys are of.

    Attributes:
        size_ms: How long a window is; None for sessions, whose keys have both bounds.
    """

    size_ms: int | None

    @property
    def width(self) -> int:
        """How many bytes come after the key of the group."""
        return _TWO.size if self.size_ms is None else _ONE.size

    def bounds(self, start: datetime, end: datetime) -> bytes:
        """The bytes after the key of the group.

        Example:
            >>> day = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
            >>> WindowedKeys(1000).bounds(day, day + timedelta(seconds=1)).hex()
            '00000000000003e8'
        """
        first = (start - _EPOCH) // _MILLISECOND
        return _ONE.pack(first) if self.size_ms is not None else _TWO.pack((end - _EPOCH) // _MILLISECOND, first)

    def split(self, key: bytes) -> tuple[bytes, datetime, datetime]:
        """The key of the group, start and end.

        Raises:
            DecodeError: If these are not the bytes of such a key.
        """
        inner, rest = key[: -self.width], key[-self.width :]
        if len(rest) < self.width:
            raise DecodeError(f"key: {len(key)} bytes are too few for a window")
        if self.size_ms is None:
            end, start = _TWO.unpack(rest)
        else:
            (start,) = _ONE.unpack(rest)
            end = start + self.size_ms
        try:
            return inner, _EPOCH + start * _MILLISECOND, _EPOCH + end * _MILLISECOND
        except OverflowError:
            raise DecodeError("key: its window is outside of the years 1 to 9999") from None
