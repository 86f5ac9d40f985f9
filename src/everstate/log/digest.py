"""A digest of records that does not depend on their order.

A replayed batch may hand its rows to other tasks in another order; what it publishes is the same if the same keys and
values come out. Each row is hashed to 64 bits, and the digest is two sums over all rows, so the digests of parts add up
to that of the whole. The hash depends on nothing but the bytes: a digest of last year can be compared.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from everstate.topology.partitioner import binary_buffers

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from everstate.log.protocol import Staged

_Hashes = npt.NDArray[np.uint64]

_FACTOR: Final = np.uint64(0x9FB21C651E98DF25)
_SECOND: Final = np.uint64(0xD6E8FEB86659FD93)
_NULL: Final = np.uint64(0xA0761D6478BD642F)
_64_BITS: Final = 0xFFFF_FFFF_FFFF_FFFF
_LONG_WORDS: Final = 64
#: Bounds the temporary arrays, whatever the frame.
_ROWS_AT_A_TIME: Final = 65_536


def content_digest(frame: pl.DataFrame) -> str:
    """The digest of the keys and values of a frame, as 32 hexadecimal digits.

    Example:
        >>> import polars as pl
        >>> frame = pl.DataFrame({"key": [b"a", b"b"], "value": [b"1", None]})
        >>> content_digest(frame) == content_digest(frame.reverse())
        True
    """
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
