"""Sources and outputs of Spark's own: folders of files in, folders of files out, and kills between the steps."""

from __future__ import annotations

import json

import pytest

import everstate as es

pytestmark = [pytest.mark.spark, pytest.mark.long]


def arrive(folder, name, rows):
    """A file that is there at once, as a source of files needs it."""
    folder.mkdir(exist_ok=True)
    waiting = folder.parent / f"{name}.waiting"
    waiting.write_text("".join(json.dumps(row) + "\n" for row in rows))
    waiting.rename(folder / f"{name}.json")


def shop(arriving, delivered, *, least=0, **options):
    def read_orders(spark):
        return spark.readStream.schema("id string, customer string, amount long").json(str(arriving))

    def write_totals(frame, batch_id):
        frame.write.mode("overwrite").parquet(str(delivered / str(batch_id)))

    app = es.Service("shop", shards=2)
    orders = app.stream("orders", key="id", schema={"id": str, "customer": str, "amount": int})
    orders = orders.from_spark(read_orders, partitions=2, **options)
    totals = orders.group_by("customer").agg(total=es.col("amount").sum())
    totals.filter(es.col("total") > least).to("totals").to_spark(write_totals)
    return app


def sink(spark, delivered):
    """What a sink holds that has taken the batches one after the other; a batch that came again is the same batch."""
    held = {}
    for folder in sorted(delivered.iterdir(), key=lambda path: int(path.name)):
        rows = spark.read.parquet(str(folder)).collect()
        assert len({row["customer"] for row in rows}) == len(rows)
        for row in rows:
            held[row["customer"]] = None if row["$deleted"] else row["total"]
    return {key: total for key, total in held.items() if total is not None}


def test_files_become_records_once_and_results_reach_files(topics, run, spark, tmp_path):
    arriving, delivered = tmp_path / "in", tmp_path / "out"
    arrive(arriving, "one", [{"id": str(n), "customer": f"c{n % 3}", "amount": n} for n in range(30)])
    run(shop(arriving, delivered))
    expected = {f"c{k}": sum(n for n in range(30) if n % 3 == k) for k in range(3)}
    assert sink(spark, delivered) == expected
    arrive(arriving, "two", [{"id": "x", "customer": "c0", "amount": 1000}, {"id": "y", "customer": None, "amount": 5}])
    run(shop(arriving, delivered))
    run(shop(arriving, delivered))
    expected["c0"] += 1000
    assert topics.count("orders") == 32
    assert sink(spark, delivered) == expected
    assert topics.table("totals") == {key: {"total": total} for key, total in expected.items()}
    assert len(topics.table("totals.dlq")) == 1
    # The sink follows an edit by its differences: nothing but tombstones for keys that are no longer there.
    before = len(list(delivered.iterdir()))
    run(shop(arriving, delivered, least=200), approval="approve")
    assert sink(spark, delivered) == {"c0": 1135}
    (last,) = sorted(delivered.iterdir(), key=lambda path: int(path.name))[before:]
    assert {row["customer"]: row["$deleted"] for row in spark.read.parquet(str(last)).collect()} == {
        "c1": True,
        "c2": True,
    }
