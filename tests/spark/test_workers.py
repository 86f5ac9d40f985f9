from __future__ import annotations

import contextlib
import gc
import time

import psutil
import pytest

import everstate as es
from everstate.engine.commands.runner import Runner
from everstate.engine.execution import SparkExecution
from everstate.engine.jvm.session import java_process

pytestmark = pytest.mark.spark


def test_workers_import_the_installed_pyspark_which_is_compiled(spark):
    def origin(_):
        import pyspark

        return pyspark.__file__

    (found,) = spark.sparkContext.parallelize([0], 1).map(origin).collect()
    assert ".zip" not in found


@pytest.mark.long
def test_workers_lost_now_and_then_are_no_reason_to_stop(spark, topics, log, caplog):
    topics.create("words", partitions=1)
    app = es.Service("patient", shards=1)
    app.stream("words", schema={"word": str}).group_by("word").agg(n=es.count()).to("counts")
    # One restart in a row: a second failure ends the service, unless a batch was committed in between.
    runner = Runner(app, log=log.url, session=spark, show=False, cores=2, trigger=0.1, restarts=1)
    runner.start()
    try:
        for episode in range(3):
            topics.send("words", [("k", {"word": "a"})])
            assert wait(lambda: topics.log.has_topic("counts") and topics.table("counts").get("a"), 120)
            topics.send("words", [("k", {"word": "a"})])
            seen = episode + 1
            assert wait(lambda seen=seen: kill_workers() or caplog.text.count("will start again") == seen, 180)
            assert wait(lambda seen=seen: topics.table("counts")["a"]["n"] == 2 * seen, 180), caplog.text
    finally:
        runner.stop()


@pytest.mark.long
def test_query_that_lives_without_a_thread_or_has_ended_without_a_word_is_started_again(spark, topics, log, caplog):
    topics.create("words", partitions=1)
    app = es.Service("watched", shards=1)
    app.stream("words", schema={"word": str}).group_by("word").agg(n=es.count()).to("counts")
    runner = Runner(app, log=log.url, session=spark, show=False, cores=2, trigger=0.1)
    runner.start()
    try:
        topics.send("words", [("k", {"word": "a"})])
        assert wait(lambda: topics.log.has_topic("counts") and topics.table("counts").get("a"), 180)
        execution = running_query("watched")._jsq.streamingQuery()
        alive = execution.state().get()
        execution.stop()
        execution.state().set(alive)  # Spark takes it for active, and its thread is gone
        topics.send("words", [("k", {"word": "a"})])
        assert wait(lambda: topics.table("counts")["a"]["n"] == 2, 180), caplog.text
        running_query("watched").stop()
        topics.send("words", [("k", {"word": "a"})])
        assert wait(lambda: topics.table("counts")["a"]["n"] == 3, 180), caplog.text
        assert "will start again" in caplog.text
    finally:
        runner.stop()


def running_query(service):
    """Spark's query; the service keeps it to itself."""
    executions = [one for one in gc.get_objects() if isinstance(one, SparkExecution)]
    (found,) = [one._query for one in executions if one._query is not None and one.output.unit.service == service]
    return found


def kill_workers():
    for process in psutil.Process(java_process()).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if "pyspark.daemon" in process.cmdline() and process.parent().name() != "java":
                process.kill()


def wait(condition, seconds):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.1)
    return False
