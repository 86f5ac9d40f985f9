"""Spark's own ways to the same totals: its aggregation in Java, and Python state with one group a key.

Both read and write the JSON that Everstate reads and writes, as text files. They get the same cores and memory, and
Java's optimising compiler, since their work is done in Java; of the state store's options they get RocksDB with
changelog checkpointing, and not those that make Everstate's checkpoints safer and slower.
"""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's custom
from pyspark.sql.streaming import StatefulProcessor

from bench.inputs import PARTITIONS
from everstate.engine.jvm import session as engine_session
from everstate.generations.deploy.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_STORE: Final = "spark.sql.streaming.stateStore"
_KEPT: Final = (f"{_STORE}.providerClass", f"{_STORE}.rocksdb.changelogCheckpointing.enabled")
_VALUE: Final = "customer string, amount long"
_RESULT: Final = "customer string, n long, total long"


def aggregation(folder: str, work: str, settings: dict[str, Any]) -> dict[str, Any]:
    """`groupBy().agg()`; returns the seconds of all batches but the first."""
    return _run(
        folder,
        work,
        settings,
        lambda rows: rows.groupBy("customer").agg(F.count("*").alias("n"), F.sum("amount").alias("total")),
    )


def per_key(folder: str, work: str, settings: dict[str, Any]) -> dict[str, Any]:
    """`transformWithState` with one group a key; returns the seconds of all batches but the first."""
    return _run(
        folder,
        work,
        settings,
        lambda rows: rows.groupBy("customer").transformWithState(PerKey(), _RESULT, "Update", "None"),
    )


class PerKey(StatefulProcessor):  # type: ignore[misc]
    """Number and sum of one key's payments."""

    def init(self, handle: Any) -> None:
        """Declare the state."""
        self._value = handle.getValueState("value", "n long, total long")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: ARG002, N802, N803 - Spark's names
        """The payments of one key in one micro-batch."""
        n, total = self._value.get() or (0, 0)
        for row in rows:
            n, total = n + 1, total + row.amount
        self._value.update((n, total))
        yield Row(customer=key[0], n=n, total=total)

    def close(self) -> None:
        """Nothing to close."""


def _run(folder: str, work: str, settings: dict[str, Any], totals: Callable[[DataFrame], DataFrame]) -> dict[str, Any]:
    session = session_of(Settings.resolve({**settings, "full_compiler": True}, environment={}))
    lines = session.readStream.option("maxFilesPerTrigger", PARTITIONS).text(folder)
    rows = lines.select(F.from_json("value", _VALUE).alias("payment")).select("payment.*")
    ends: list[float] = []

    def write(batch: DataFrame, number: int) -> None:
        texts = batch.select(F.to_json(F.struct("customer", "n", "total")).alias("value"))
        texts.write.text(str(Path(work) / "out" / str(number)))
        ends.append(time.time())

    query = (
        totals(rows)
        .writeStream.foreachBatch(write)
        .outputMode("update")
        .option("checkpointLocation", str(Path(work) / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    engine_session.stop_session(session)
    return {"seconds": [later - earlier for earlier, later in pairwise(ends)]}


def session_of(settings: Settings) -> SparkSession:
    """A session as a service has it, without what is Everstate's own."""
    own = {**engine_session.STATE, **engine_session.PACE}
    kept = {name: own[name] for name in _KEPT}
    engine_session.STATE.clear()
    engine_session.PACE.clear()
    engine_session.STATE.update(kept)
    session = engine_session.start_session(settings, "bench")
    session.conf.set("spark.sql.shuffle.partitions", str(settings.used_cores))
    return session
