"""Number and sum of payments by customer with Spark's own aggregation and its Kafka connector.

Run by a Python that has the PySpark of the connector's version. Prints when the first micro-batch, and when all had
ended.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's custom

_STORE = "spark.sql.streaming.stateStore"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def main(servers: str, source: str, output: str, folder: str, jars: str, batch: int) -> None:
    """Process all that is there in micro-batches of so many records."""
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", jars)
        .config("spark.driver.memory", "4g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config(f"{_STORE}.providerClass", _ROCKSDB)
        .config(f"{_STORE}.rocksdb.changelogCheckpointing.enabled", "true")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    lines = (
        session.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("kafka.max.poll.records", 10_000)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", batch)
        .load()
    )
    payment = F.from_json(F.col("value").cast("string"), "customer string, amount long").alias("payment")
    sums = (
        lines.select(payment)
        .groupBy("payment.customer")
        .agg(F.count("*").alias("n"), F.sum("payment.amount").alias("total"))
    )
    query = (
        sums.select(F.col("customer").alias("key"), F.to_json(F.struct("n", "total")).alias("value"))
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("kafka.compression.type", "lz4")
        .option("topic", output)
        .option("checkpointLocation", f"{folder}/checkpoint")
        .outputMode("update")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    done = [each for each in query.recentProgress if each["numInputRows"]]
    ends = [
        datetime.fromisoformat(each["timestamp"]).timestamp() * 1_000 + each["durationMs"]["triggerExecution"]
        for each in done
    ]
    records = sum(each["numInputRows"] for each in done[1:])
    print(json.dumps({"began": ends[0], "ended": ends[-1], "records": records}), flush=True)
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:6], int(sys.argv[6]))  # type: ignore[call-arg, arg-type]
