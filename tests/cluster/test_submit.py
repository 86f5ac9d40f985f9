"""A service under spark-submit, on a cluster of this machine, where the embedded log will do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pyspark
import pytest

from everstate.engine.jvm.java import find_java
from everstate.log import TopicConfig, open_log

pytestmark = [pytest.mark.spark, pytest.mark.long]

SCRIPT = Path(__file__).with_name("submitted_service.py")


def submit(master, *words, **more):
    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", master]
    environment = {**os.environ, "JAVA_HOME": str(find_java()), "PYSPARK_PYTHON": sys.executable, **more}
    options = ["--conf", "spark.executor.memory=700m", str(SCRIPT), *map(str, words)]
    return subprocess.run(
        [*command, *options], env=environment, capture_output=True, text=True, timeout=280, check=False
    )


def test_service_under_spark_submit_runs_on_the_cluster_that_was_named_there(cluster, python, tmp_path):
    log = open_log(tmp_path / "log")
    log.create_topic("orders", TopicConfig(partitions=2, compact=True))
    values = [{"order_id": f"o{n}", "customer": f"c{n % 7}", "amount": float(n)} for n in range(500)]
    keys = [value["order_id"].encode() for value in values]
    log.append("orders", pl.DataFrame({"key": keys, "value": [json.dumps(value).encode() for value in values]}))
    before = set(cluster.folder.glob("work*/app-*"))
    done = submit(cluster.url, tmp_path / "log", tmp_path / "state", EVERSTATE_WORKER_PYTHON=str(python))
    assert done.returncode == 0, done.stdout + done.stderr + cluster.said()
    # Both workers have had an executor of this application.
    assert len(set(cluster.folder.glob("work*/app-*")) - before) == 2
    expected = {f"c{c}": {"total": float(sum(range(c, 500, 7))), "orders": len(range(c, 500, 7))} for c in range(7)}
    found = log.latest("totals").select("key", "value").iter_rows()
    assert {key.decode(): json.loads(value) for key, value in found} == expected
    log.close()
