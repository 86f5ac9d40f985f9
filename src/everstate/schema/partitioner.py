"""Kafka's default partitioner, over whole columns of keys.

The hash is the murmur2 of Kafka's Java client, so a record written by Everstate lands where any Kafka producer would
put it. It is also the hash behind shards and pages: it depends on nothing but the bytes, in every process, on every
machine and in every version of the libraries used here.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

_SEED: Final = 0x9747B28C
_M: Final = np.uint32(0x5BD1E995)
_POSITIVE: Final = np.uint32(0x7FFFFFFF)
#: Keeps the low 0, 1, 2 or 3 bytes of a little-endian word: what is left of a key after its whole words.
_REST_MASK: Final = np.array([0, 0xFF, 0xFFFF, 0xFFFFFF], dtype=np.uint32)
#: Below so many rows, the words that are left go one by one; and so do keys that are no longer than this together.
_FEW: Final = 16
_FEW_BYTES: Final = 1024
_NO_BYTES: Final = np.zeros(0, dtype=np.uint8)


def murmur2(keys: pl.Series) -> npt.NDArray[np.uint32]:
    """Hash every key as Kafka does.

    Args:
        keys: A Binary series. A null hashes like an empty key; callers that mean something else filter first.

    Returns:
        One unsigned 32-bit hash a row; Kafka's Java code sees the same bits as a signed number.

    Example:
        >>> murmur2(pl.Series([b"21"], dtype=pl.Binary)).astype("int32").tolist()
        [-973932308]
    """
    data, starts, lengths = binary_buffers(keys)
    words = _words_at_every_byte(data)
    hashes = np.uint32(_SEED) ^ lengths.astype(np.uint32)
    whole = lengths >> 2
    everywhere = int(whole.min()) if len(whole) else 0
    for word in range(everywhere):
        hashes = (hashes * _M) ^ _mixed(words[starts + (word << 2)])
    active = np.flatnonzero(whole > everywhere)
    word = everywhere
    while len(active) >= _FEW:
        hashes[active] = (hashes[active] * _M) ^ _mixed(words[starts[active] + (word << 2)])
        word += 1
        active = active[whole[active] > word]
    for row in active.tolist():
        begin = int(starts[row])
        hashes[row] = _along(int(hashes[row]), words[begin + (word << 2) : begin + int(whole[row] << 2) : 4])
    rest = lengths & 3
    with_rest = np.where(rest > 0, (hashes ^ (words[starts + (whole << 2)] & _REST_MASK[rest])) * _M, hashes)
    with_rest ^= with_rest >> np.uint32(13)
    with_rest *= _M
    with_rest ^= with_rest >> np.uint32(15)
    return with_rest


def partition_of(keys: pl.Series, partitions: int) -> pl.Series:
    """The partition of every key among so many; null where the key is null.

    Example:
        >>> partition_of(pl.Series([b"21", None], dtype=pl.Binary), 8).to_list()
        [4, None]
    """
    if partitions < 1:
        raise ValueError(f"a topic has at least one partition, not {partitions}")
    if len(keys) < _FEW and keys.dtype == pl.Binary:
        few = keys.to_list()
        if sum(len(key) for key in few if key is not None) <= _FEW_BYTES:
            chosen = [None if key is None else partition_of_key(key, partitions) for key in few]
            return pl.Series("partition", chosen, pl.Int32)
    numbers = (murmur2(keys) & _POSITIVE) % np.uint32(partitions)
    series = pl.Series("partition", numbers.astype(np.int32), dtype=pl.Int32)
    if keys.null_count():
        return (
            series.to_frame()
            .select(pl.when(keys.is_not_null()).then(pl.col("partition")).alias("partition"))
            .to_series()
        )
    return series


def partition_of_key(key: bytes, partitions: int) -> int:
    """The partition of one key, as `partition_of` gives it: for a single key a hundred times as fast.

    Example:
        >>> partition_of_key(b"21", 8)
        4
    """
    factor, low = int(_M), 0xFFFFFFFF
    value = _SEED ^ len(key)
    whole = len(key) & ~3
    for start in range(0, whole, 4):
        word = int.from_bytes(key[start : start + 4], "little") * factor & low
        value = (value * factor & low) ^ ((word ^ word >> 24) * factor & low)
    if len(key) > whole:
        value = (value ^ int.from_bytes(key[whole:], "little")) * factor & low
    value = (value ^ value >> 13) * factor & low
    return int(((value ^ value >> 15) & int(_POSITIVE)) % partitions)


def _mixed(words: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """The part of a round that needs only the word itself."""
    words = words * _M
    words ^= words >> np.uint32(24)
    words *= _M
    return words


def _along(value: int, words: npt.NDArray[np.uint32]) -> int:
    """Run the words of one key into its hash; a numpy call a word would cost far more for a key that is a document."""
    factor = int(_M)
    for word in _mixed(words).tolist():
        value = (value * factor & 0xFFFFFFFF) ^ word
    return value


def binary_buffers(keys: pl.Series) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The bytes of all keys in a row, and where each key starts and how long it is; a null has length 0."""
    array: Any = keys.cast(pl.Binary).rechunk().to_arrow()
    if array.type != pa.large_binary():
        array = array.cast(pa.large_binary())
    _, offset_buffer, data_buffer = array.buffers()
    if len(array) == 0:
        return _NO_BYTES, np.zeros(0, np.int64), np.zeros(0, np.int64)
    offsets = np.frombuffer(offset_buffer, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    data = np.frombuffer(data_buffer, dtype=np.uint8) if data_buffer is not None else _NO_BYTES
    first, last = int(offsets[0]), int(offsets[-1])
    starts = offsets[:-1] - first
    lengths = offsets[1:] - offsets[:-1]
    if array.null_count:
        # Arrow leaves the bytes under a null undefined.
        lengths = np.where(np.asarray(array.is_valid()), lengths, 0)
    return data[first:last], starts, lengths


def _words_at_every_byte(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint32]:
    """A view in which element i is the little-endian word that begins at byte i."""
    padded = np.concatenate([data, np.zeros(4, dtype=np.uint8)])
    return np.ndarray(shape=(len(data) + 1,), dtype=np.dtype("<u4"), buffer=padded.data, strides=(1,))
