"""What stands before a value: a zero, the number of its schema, and for Protobuf which message of the schema it is."""

from __future__ import annotations

import struct
from typing import Final

from everstate.errors import DecodeError

#: A zero, and the number in four bytes.
HEAD: Final = 5
_HEAD: Final = struct.Struct(">bI")


def framed(number: int, body: bytes) -> bytes:
    """A value with the number of its schema."""
    return _HEAD.pack(0, number) + body


def unframed(data: bytes) -> tuple[int, bytes]:
    """The number of a value's schema, and the value.

    Raises:
        DecodeError: If it has none.
    """
    if len(data) < HEAD or data[0] != 0:
        raise DecodeError("it does not begin with the number of a schema, as values written with a schema registry do")
    return _HEAD.unpack_from(data)[1], data[HEAD:]


def varint(number: int) -> bytes:
    """A whole number in zigzag and as few bytes as it needs."""
    rest = (number << 1) ^ (number >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append((rest & 0x7F) | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def read_varint(data: bytes, start: int) -> tuple[int, int]:
    """The number that begins at a place, and where it ends.

    Raises:
        DecodeError: If there is none.
    """
    number = shift = 0
    for place in range(start, min(start + 10, len(data))):
        byte = data[place]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), place + 1
        shift += 7
    raise DecodeError("it is cut off before the value begins")


def message_place(data: bytes) -> tuple[tuple[int, ...], int]:
    """Which message of its file a value of Protobuf is, and where the value begins.

    Raises:
        DecodeError: If that cannot be read.
    """
    count, at = read_varint(data, 0)
    if count == 0:
        return (0,), at  # the first message, which is what most are, in one byte
    if not 0 < count <= len(data):
        raise DecodeError("the place of its message in the schema cannot be read")
    places = []
    for _ in range(count):
        number, at = read_varint(data, at)
        places.append(number)
    return tuple(places), at


def written_place(places: tuple[int, ...]) -> bytes:
    """How such a place is written."""
    if places == (0,):
        return varint(0)
    return varint(len(places)) + b"".join(varint(place) for place in places)
