"""The training run for the class data archive: touches the classes of Spark that a service uses.

Runs as a program of its own (`python -m everstate.engine.jvm.archive_training ARCHIVE FOLDER`), because Java writes the
archive when it exits. A Python source, `mapInArrow`, chained `transformWithState` on RocksDB and `foreachBatch`: what
is not used here is loaded in the ordinary, slower way later.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming import StatefulProcessor

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.streaming import StatefulProcessorHandle

_COLUMNS = "shard int, block binary"
_STATE_STORE = "spark.sql.streaming.stateStore"

#: Java writes the archive on its way out, which takes some ten seconds of one core.
_EXIT_TIMEOUT_S = 240


class Numbers(DataSource):
    """A source of a few numbers."""

    @classmethod
    def name(cls) -> str:
        """What `format()` calls it."""
        return "everstate-training"

    def schema(self) -> str:
        """One column."""
        return "value long"

    def streamReader(self, schema: Any) -> NumbersReader:  # noqa: ARG002, N802 - Spark's protocol
        """What reads it."""
        return NumbersReader()


class NumbersReader(DataSourceStreamReader):
    """Ten numbers a batch, in two partitions."""

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's protocol
        """Where a first batch begins."""
        return {"offset": 0}

    def latestOffset(self, *_limits: Any) -> dict[str, int]:  # noqa: N802 - Spark's protocol
        """Where it ends; Spark hands over the start and a limit, which do not matter here."""
        return {"offset": 10}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """Two halves."""
        return [InputPartition((start["offset"] + half, end["offset"])) for half in range(2)]

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        """The numbers of one half."""
        first, end = partition.value
        return ((number,) for number in range(first, end, 2))


class Remember(StatefulProcessor):
    """Uses both kinds of state that the engine declares."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declares them."""
        self._pages = handle.getMapState("pages", "store int, page int", "block binary")
        self._book = handle.getValueState("book", "block binary")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: ARG002, N802, N803 - Spark's protocol
        """Writes, reads and deletes, then passes the rows on."""
        blocks = [bytes(row.block) for row in rows]
        for page, block in enumerate(blocks):
            self._pages.updateValue((0, page), (block,))
            self._pages.getValue((0, page))
        self._pages.removeKey((0, 0))
        self._book.get()
        self._book.update((b"".join(blocks),))
        for block in blocks:
            yield Row(shard=key[0], block=block)

    def close(self) -> None:
        """Nothing to give back."""


def route(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Packs each batch into a block for one of two shards."""
    import pyarrow as pa  # noqa: PLC0415 - runs in a worker

    for batch in batches:
        blocks = [str(value).encode() for value in batch.column(0).to_pylist()]
        shards = pa.array([number % 2 for number in range(len(blocks))], pa.int32())
        yield pa.RecordBatch.from_arrays([shards, pa.array(blocks, pa.binary())], names=["shard", "block"])


def session(archive: Path) -> SparkSession:
    """A session whose Java writes the archive when it exits."""
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("everstate-archive")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.adaptive.enabled", "false")
        .config(
            f"{_STATE_STORE}.providerClass",
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        )
        .config(f"{_STATE_STORE}.rocksdb.changelogCheckpointing.enabled", "true")
        .config(f"{_STATE_STORE}.checkpointFormatVersion", "2")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        .config(
            "spark.driver.extraJavaOptions",
            f'-Xlog:disable -XX:TieredStopAtLevel=1 -XX:ArchiveClassesAtExit="{archive}"',
        )
    )
    return builder.getOrCreate()


def stateful(rows: DataFrame) -> DataFrame:
    """One stateful stage."""
    return rows.groupBy("shard").transformWithState(Remember(), _COLUMNS, "Append", "None")


def collect(rows: DataFrame, _batch_id: int) -> None:
    """Takes a micro-batch to the driver and drops it."""
    rows.collect()


def main(archive: Path, folder: Path) -> None:
    """Runs a small query twice, the second time from its checkpoint, and waits for Java to write the archive."""
    spark = session(archive)
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(Numbers)
    for _start in range(2):
        numbers = spark.readStream.format(Numbers.name()).load()
        rows = stateful(stateful(numbers.mapInArrow(route, _COLUMNS)))
        writer = rows.writeStream.foreachBatch(collect).outputMode("append").trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
        query.awaitTermination()
    java = spark.sparkContext._gateway.proc  # noqa: SLF001 - the only handle on the process
    spark.stop()
    java.stdin.close()  # Spark's Java exits when its input ends
    java.wait(_EXIT_TIMEOUT_S)


if __name__ == "__main__":
    os.chdir(sys.argv[2])  # whatever Spark leaves behind goes with the folder
    main(Path(sys.argv[1]), Path(sys.argv[2]))
