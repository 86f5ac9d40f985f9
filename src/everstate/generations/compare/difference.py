"""The difference between a generation's table and what is on its topic: what a cutover writes.

Decoded values are compared, not bytes: another order of fields or another way to write text is no difference, and an
unchanged key must not be written again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import polars as pl

_DECODE: Final = json.JSONDecoder().decode
#: Not equal to itself for Python, but no difference.
_NAN: Final = b"NaN"
#: From a decoded value to what of it is compared.
Meaning: TypeAlias = Callable[[Any], Any]


def _itself(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Difference:
    """What has to be written so that a topic holds a table.

    Attributes:
        records: key, value (null for a tombstone), ts, and the partition of a tombstone; the others go where their key
            belongs.
        new: Keys that the topic does not have.
        changed: Keys with another value.
        stale: Keys that the table does not have; they get a tombstone.
        unchanged: Keys that are not written.
        parts: By "new", "changed" and "stale", all rows as key, "was" (the value on the topic) and value.
    """

    records: pl.DataFrame
    new: int
    changed: int
    stale: int
    unchanged: int
    parts: dict[str, pl.DataFrame]

    @property
    def counts(self) -> dict[str, int]:
        """The numbers by name."""
        return {"new": self.new, "changed": self.changed, "stale": self.stale, "unchanged": self.unchanged}

    def rows(self, kind: str) -> list[tuple[bytes, bytes | None, bytes | None]]:
        """All keys of a kind, in their order, with the value on the topic and the one in the table."""
        return self.parts[kind].sort("key").rows()

    @property
    def live(self) -> int:
        """Keys on the topic before."""
        return self.changed + self.stale + self.unchanged


def difference(
    table: pl.DataFrame, topic: pl.DataFrame, *, text: bool = False, meaning: Meaning = _itself
) -> Difference:
    """Compare a table with what is on its topic.

    Args:
        table: key, value and ts of every key that there should be.
        topic: key, value, ts and partition of every key that there is. A tombstone gets the timestamp of the record
            that it removes, so that it moves no consumer's time, and goes where that record lies.
        text: Values are not JSON: they are compared as bytes.
        meaning: What of a decoded value is compared.

    Example:
        >>> import polars as pl
        >>> table = pl.DataFrame({"key": [b"a", b"b"], "value": [b"1", b"2"], "ts": [5, 6]})
        >>> topic = pl.DataFrame({"key": [b"b", b"c"], "value": [b"2", b"3"], "ts": [1, 2], "partition": [0, 0]})
        >>> difference(table, topic).records.select("key", "value", "ts").rows()
        [(b'a', b'1', 5), (b'c', None, 2)]
    """
    there = topic.select("key", pl.col("value").alias("was"), pl.col("ts").alias("was_ts"), "partition")
    both = table.select("key", "value", "ts").join(there, on="key", how="left", maintain_order="left")
    new = both.filter(pl.col("was").is_null())
    other = both.filter(pl.col("was").is_not_null() & (pl.col("value") != pl.col("was")))
    changed = other if text else other.filter(_means_otherwise(other, meaning))
    stale = there.join(table.select("key"), on="key", how="anti", maintain_order="left").with_columns(
        pl.lit(None, pl.Binary).alias("value"), pl.col("was_ts").alias("ts")
    )
    nowhere = pl.lit(None, pl.Int32).alias("partition")
    parts = [
        part.select("key", "value", "ts", pl.col("partition").cast(pl.Int32))
        for part in (new.with_columns(nowhere), changed.with_columns(nowhere), stale)
    ]
    kinds = {
        name: part.select("key", "was", "value")
        for name, part in (("new", new), ("changed", changed), ("stale", stale))
    }
    unchanged = both.height - new.height - changed.height
    return Difference(pl.concat(parts).sort("key"), new.height, changed.height, stale.height, unchanged, kinds)


def _means_otherwise(rows: pl.DataFrame, meaning: Meaning) -> pl.Series:
    pairs = rows.select("value", "was").iter_rows()
    return pl.Series([not same_value(value, was, meaning) for value, was in pairs], dtype=pl.Boolean)


def same_value(one: bytes, other: bytes, meaning: Meaning = _itself) -> bool:
    """Whether two encoded values mean the same.

    Example:
        >>> same_value(b'{"a": 1, "b": NaN}', b'{"b":NaN,"a":1}'), same_value(b"1", b"1.0")
        (True, False)
    """
    try:
        # As text: from bytes, `json.loads` would look for their encoding first.
        left, right = meaning(_DECODE(one.decode())), meaning(_DECODE(other.decode()))
    except ValueError:
        return one == other
    if left != right and _NAN not in one:
        return False  # most often: what is not even equal to Python needs no closer look
    return _same(left, right)


def _same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False  # 1 and 1.0 and true are different for whoever reads them with a schema
    if isinstance(one, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(value, other[name]) for name, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)
