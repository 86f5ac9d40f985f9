"""Many small batches: no process of a service may hold more open files after them than before."""

from __future__ import annotations

import time

import psutil
import pytest

import everstate as es
from everstate import col
from everstate.engine.commands.runner import Runner
from everstate.engine.jvm.session import java_process

pytestmark = [pytest.mark.spark, pytest.mark.long]

#: Four queries share the cores: a batch waits more than it works.
OUTPUTS = 4
BATCHES = 2_000 // OUTPUTS
#: Before that, caches and pools fill.
WARM = 60
#: Sockets and files come and go; a leak of one each batch would be thousands.
MORE_FILES = 60


def service():
    app = es.Service("patience", shards=1)
    orders = app.table("orders", key="order", schema={"order": str, "customer": str, "amount": int})
    for number in range(OUTPUTS):
        by_customer = orders.filter(col("amount") >= -number).group_by("customer")
        by_customer.agg(total=col("amount").sum()).to(f"totals{number}")
    return app


def usage():
    """Open files and memory by process: Java, the driver, all workers together."""
    java, driver = psutil.Process(java_process()), psutil.Process()
    workers = [process for process in java.children(recursive=True) if process.name().startswith("python")]
    return {"java": totals([java]), "driver": totals([driver]), "workers": totals(workers)}


def totals(processes):
    files = memory = 0
    for process in processes:
        try:
            files, memory = files + process.num_fds(), memory + process.memory_info().rss
        except psutil.Error:
            continue  # it has just ended
    return files, memory


def test_batches_by_the_thousand_leave_no_open_files_behind(spark, topics, log):
    topics.create("orders", partitions=1)
    topics.send("orders", [(f"o{n}", {"customer": f"c{n % 7}", "amount": n + 1}) for n in range(BATCHES)])
    runner = Runner(service(), log=log.url, session=spark, show=False, cores=2, max_records=1, trigger=0)
    runner.start()
    try:
        before = wait_for(topics, WARM)
        began = time.monotonic()
        after = wait_for(topics, BATCHES)
    finally:
        runner.stop()
    print(f"{OUTPUTS * (BATCHES - WARM)} batches in {time.monotonic() - began:.0f} s: {before} -> {after}")
    for name in before:
        assert after[name][0] <= before[name][0] + MORE_FILES, f"open files of {name}: {before} -> {after}"


def wait_for(topics, batches):
    """Every batch publishes one record."""
    deadline = time.monotonic() + 3_000
    while time.monotonic() < deadline:
        done = [topics.count(f"totals{number}") for number in range(OUTPUTS) if topics.log.has_topic(f"totals{number}")]
        if len(done) == OUTPUTS and min(done) >= batches:
            return usage()
        time.sleep(0.5)
    pytest.fail("the batches do not get on")
