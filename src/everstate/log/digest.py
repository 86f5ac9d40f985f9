"""A digest of records that does not depend on their order.

A replayed batch may hand its rows to other tasks in another order; what it publishes is the same if the same keys and
values come out. Each row is hashed to 64 bits, and the digest is two sums over all rows, so the digests of parts add up
to that of the whole. The hash depends on nothing but the bytes: a digest of last year can be compared.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from struct import unpack
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from everstate.schema.partitioner import binary_buffers

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from everstate.log.descriptions import Staged

_Hashes = npt.NDArray[np.uint64]

_FACTOR: Final = np.uint64(0x9FB21C651E98DF25)
_SECOND: Final = np.uint64(0xD6E8FEB86659FD93)
_NULL: Final = np.uint64(0xA0761D6478BD642F)
_FACTOR_INT, _SECOND_INT, _NULL_INT = int(_FACTOR), int(_SECOND), int(_NULL)
_64_BITS: Final = 0xFFFF_FFFF_FFFF_FFFF
_LONG_WORDS: Final = 64
#: Bounds the temporary arrays, whatever the frame.
_ROWS_AT_A_TIME: Final = 65_536
#: A few short values are hashed one by one in less time than numpy takes to begin.
_FEW_ROWS: Final = 16
_SHORT_BYTES: Final = 8 * _LONG_WORDS


def content_digest(frame: pl.DataFrame) -> str:
    """The digest of the keys and values of a frame, as 32 hexadecimal digits.

    Example:
        >>> import polars as pl
        >>> frame = pl.DataFrame({"key": [b"a", b"b"], "value": [b"1", None]})
        >>> content_digest(frame) == content_digest(frame.reverse())
        True
    """
    if frame.height <= _FEW_ROWS:
        rows = list(zip(frame.get_column("key").to_list(), frame.get_column("value").to_list(), strict=True))
        if all(len(value or b"") < _SHORT_BYTES for row in rows for value in row):
            return _digest_of_few(rows)
    return _digest_of_many(frame)


def _digest_of_few(rows: Sequence[tuple[bytes | None, bytes | None]]) -> str:
    first = second = 0
    for key, value in rows:
        row = _mix((_hash(key) + 1) & _64_BITS) ^ _hash(value)
        first += _mix(row)
        second += _mix(row ^ _SECOND_INT)
    return f"{first & _64_BITS:016x}{second & _64_BITS:016x}"


def _hash(value: bytes | None) -> int:
    """What `_hashes` gives for a value that is not long."""
    if value is None:
        return _NULL_INT
    size = len(value)
    result = size * _SECOND_INT & _64_BITS
    # One word more than the whole ones: what is left, and nothing if nothing is.
    for word in unpack(f"<{(size >> 3) + 1}Q", value.ljust((size & ~7) + 8, b"\0")):
        result = _mix(result ^ word)
    return result


def _mix(value: int) -> int:
    """What `_mixed` does to one value."""
    value ^= value >> 32
    value = value * _FACTOR_INT & _64_BITS
    value ^= value >> 29
    value = value * _SECOND_INT & _64_BITS
    return value ^ (value >> 32)


def _digest_of_many(frame: pl.DataFrame) -> str:
    first = second = 0
    for part in frame.iter_slices(_ROWS_AT_A_TIME):
        rows = _mixed(_hashes(part["key"]) + np.uint64(1)) ^ _hashes(part["value"])
        first += int(_mixed(rows).sum(dtype=np.uint64))
        second += int(_mixed(rows ^ _SECOND).sum(dtype=np.uint64))
    return f"{first & _64_BITS:016x}{second & _64_BITS:016x}"


def combined_digest(staged: Sequence[Staged]) -> str:
    """A digest of all that a batch publishes, whichever tasks staged it and in whichever order.

    Only keys and values count: a replay that gives a record another timestamp publishes the same thing.
    """
    totals: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0, 0])
    for part in staged:
        if part.rows:
            total = totals[part.topic, part.partition]
            for place, number in enumerate((part.rows, int(part.digest[:16], 16), int(part.digest[16:], 16))):
                total[place] = (total[place] + number) & _64_BITS
    document = json.dumps([[*place, *totals[place]] for place in sorted(totals)])
    return hashlib.sha256(document.encode()).hexdigest()


def _hashes(column: pl.Series) -> _Hashes:
    """A 64-bit hash of every value, eight bytes of all rows at a time."""
    data, starts, lengths = binary_buffers(column)
    padded = np.concatenate([data, np.zeros(8, dtype=np.uint8)])
    words: _Hashes = np.ndarray(shape=(len(data) + 1,), dtype=np.dtype("<u8"), buffer=padded.data, strides=(1,))
    hashes = lengths.astype(np.uint64) * _SECOND
    whole = lengths >> 3
    active = np.flatnonzero(whole > 0)
    for word in range(_LONG_WORDS):
        if not len(active):
            break
        hashes[active] = _mixed(hashes[active] ^ words[starts[active] + (word << 3)])
        active = active[whole[active] > word + 1]
    for row in active.tolist():
        # The rest of a long value: hashed word by word with its place, then summed, in one go.
        begin = int(starts[row])
        rest = words[begin + (_LONG_WORDS << 3) : begin + int(whole[row] << 3) : 8]
        places = np.arange(len(rest), dtype=np.uint64) * _SECOND
        hashes[row] = _mixed(hashes[row : row + 1] ^ _mixed(_mixed(rest) + places).sum(dtype=np.uint64))[0]
    spare = (lengths & 7).astype(np.uint64)
    mask = (np.uint64(1) << (spare << np.uint64(3))) - np.uint64(1)
    hashes = _mixed(hashes ^ (words[starts + (whole << 3)] & mask))
    if column.null_count():
        hashes[column.is_null().to_numpy()] = _NULL
    return hashes


def _mixed(values: _Hashes) -> _Hashes:
    values = values ^ (values >> np.uint64(32))
    values = values * _FACTOR
    values ^= values >> np.uint64(29)
    values *= _SECOND
    values ^= values >> np.uint64(32)
    return values
