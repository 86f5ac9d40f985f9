"""What is on a topic: read once, then followed by its tail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.log.records import HEADERS

if TYPE_CHECKING:
    from everstate.log.protocol import Log

_EMPTY: Final = pl.DataFrame(
    schema={"key": pl.Binary(), "value": pl.Binary(), "ts": pl.Int64(), "partition": pl.Int32()}
)


class TopicView:
    """The last record of every key of a topic, brought up to date whenever it is asked for.

    A cutover compares twice: for the guards, before it takes the lease, and again under it. While the second comparison
    runs nobody publishes, so it must not read a large topic from its beginning.

    Args:
        log: The log.
        topic: The topic; it need not exist.
        headers: The records' headers are wanted, too.
    """

    def __init__(self, log: Log, topic: str, *, headers: bool = False) -> None:
        self._log = log
        self._topic = topic
        self._empty = _EMPTY.with_columns(pl.lit(None, HEADERS).alias("headers")) if headers else _EMPTY
        self._columns = self._empty.columns
        self._table = self._empty
        self._ends: dict[int, int] | None = None

    def latest(self) -> pl.DataFrame:
        """key, value, ts and partition of every key; the same frame as before if nothing has come."""
        if not self._log.has_topic(self._topic):
            self._ends = None
            return self._empty
        ends = self._log.end_offsets([self._topic])[self._topic]  # before it is read: what comes later is read again
        if self._ends is None or (ends != self._ends and not self._follow(self._ends)):
            self._read()
        self._ends = ends
        return self._table

    def _read(self) -> None:
        self._table = self._log.latest(self._topic).select(self._columns)

    def _follow(self, since: dict[int, int]) -> bool:
        """Take in what has come since; False if the table cannot be told from that."""
        tails = [self._log.read(self._topic, partition, start) for partition, start in since.items()]
        tail = pl.concat([frame.select(self._columns) for frame in tails]).filter(pl.col("key").is_not_null())
        if tail.n_unique(["key", "partition"]) != tail["key"].n_unique():
            return False
        last = tail.unique("key", keep="last", maintain_order=True)
        replaced = self._table.join(last.select("key", pl.col("partition").alias("now")), on="key", how="inner")
        if (replaced["partition"] != replaced["now"]).any():
            return False  # a producer has put the key elsewhere: the younger record counts, and the log knows which
        kept = self._table.join(last.select("key"), on="key", how="anti", maintain_order="left")
        self._table = pl.concat([kept, last.filter(pl.col("value").is_not_null())])
        return True
