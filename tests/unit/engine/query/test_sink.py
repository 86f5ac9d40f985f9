"""What Spark hears of a batch that failed: it searches the text in a way that a long one overflows Java's stack."""

from __future__ import annotations

import logging
import re
import traceback
from types import SimpleNamespace

import pytest

from everstate.engine.query.sink import FailedBatchError, Sink, told
from everstate.errors import FencedError
from everstate.log.planning import Timing

#: How Spark finds out that a query was stopped and has not failed (`StreamExecution.PROXY_ERROR`).
SPARKS = re.compile(
    r"py4j.protocol.Py4JJavaError: An error occurred while calling((.|\r\n|\r|\n)*)"
    r"(java.lang.InterruptedException|java.io.InterruptedIOException|java.nio.channels.ClosedByInterruptException)"
)
JAVA = "An error occurred while calling o12.collect.\n: " + "\tat org.apache.spark.X.run(X.scala:12)\n" * 20_000


class Frame:
    """A batch whose job fails."""

    def __init__(self, error):
        self._error = error

    def collect(self):
        raise self._error


def sink():
    job = SimpleNamespace(output="totals")
    return Sink(job=job, log=None, lease=None, checkpoint=None, initial={}, kind="open", timing=Timing(), topics={})


@pytest.mark.parametrize("error", [RuntimeError(JAVA), FencedError("x" * 100_000)])
def test_failed_batch_is_told_to_spark_in_few_words_and_kept_whole(error):
    target = sink()
    with pytest.raises(FailedBatchError) as caught:
        target(Frame(error), 0)
    assert target.failure is error
    sent = "".join(traceback.format_exception(caught.value))
    assert len(sent) < 3_000
    assert not SPARKS.search(sent)


def test_batch_that_was_interrupted_still_counts_as_stopped():
    assert SPARKS.search(told(RuntimeError(f"{JAVA}Caused by: java.lang.InterruptedException: sleep interrupted")))


def test_error_whose_text_is_gone_with_java_is_told_by_its_name():
    class JavaError(Exception):
        def __str__(self):
            raise ConnectionRefusedError(111, "Connection refused")

    assert told(JavaError()) == "JavaError: "


def test_partition_that_time_waits_for_is_named_once_and_so_is_that_it_no_longer_is(caplog):
    caplog.set_level(logging.INFO)
    target, waiting = sink(), {"t": {0: 1_000, 1: -1}}
    start, passed = {"t": {0: 5, 1: 0}}, {"t": {0: 5, 1: 0}, "$time:t": {1: 1000}}
    for _ in range(2):
        target._tell(start, start, waiting)
    target._tell(start, passed, {"t": {0: 1_000, 1: 1_000}})
    target._tell(passed, {**passed, "$time:t": {1: 1200}}, {"t": {0: 1_200, 1: 1_200}})
    assert caplog.messages == [
        "Output totals waits for partition 1 of t, which has no time yet",
        "Output totals no longer waits for partition 1 of t: later records count as of 1000 ms or more",
    ]
    assert target.tally.times == {"t": {0: 1_200, 1: 1_200}}
