"""What Spark hears of a batch that failed: it searches the text in a way that a long one overflows Java's stack."""

from __future__ import annotations

import re
import traceback

import pytest

from everstate.engine.query.sink import FailedBatchError, Sink, told
from everstate.errors import FencedError

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
    return Sink(job=None, log=None, lease=None, checkpoint=None, initial={}, kind="open", ordered=False, topics={})


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
