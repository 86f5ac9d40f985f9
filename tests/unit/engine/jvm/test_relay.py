from __future__ import annotations

import io

import pytest

from everstate.engine.jvm.relay import Relay


def test_relay_passes_users_lines_and_leaves_out_what_spark_says_at_every_start():
    said = (
        "WARNING: Using incubator modules: jdk.incubator.vector\n"
        "Starting Streaming TransformWithStateInPandas Python worker.\n"
        "\n"
        "hello from a function\n"
        "\n"
        "Streaming TransformWithStateInPandas Python worker received parameters.\n"
        "12:00:00 spark ERROR X: something\n"
    )
    target = io.StringIO()
    relay = Relay(io.StringIO(said), target)
    relay.start()
    relay.join(5)
    assert target.getvalue() == "hello from a function\n\n12:00:00 spark ERROR X: something\n"


def relayed(said):
    target, aside = io.StringIO(), []
    relay = Relay(io.StringIO(said), target, aside.append)
    relay.start()
    relay.join(5)
    return target.getvalue(), "".join(aside)


JAVA = """\
Exception in thread "stream execution thread" java.io.IOException: No space left on device
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)
\tat org.apache.spark.X.$anonfun$run$1(X.scala:12)
Caused by: org.apache.spark.SparkException: Job aborted
\t... 12 more
2026-11-18T00:00:00.000000Z main ERROR Unable to write to stream
"""
PYSPARK = """\
Traceback (most recent call last):
  File "/x/site-packages/pyspark/daemon.py", line 233, in manager
    code = worker(sock, authenticated)
BrokenPipeError: [Errno 32] Broken pipe
"""
USERS = """\
Traceback (most recent call last):
  File "/home/me/service.py", line 3, in parse
    int("x")
ValueError: invalid literal
"""


def test_relay_stack_traces_of_java_and_pyspark_go_aside():
    assert relayed(f"hello\n{JAVA}{PYSPARK}bye\n") == ("hello\nbye\n", JAVA + PYSPARK)


CHAINED = f"""\
PySpark worker failed with exception:
{PYSPARK}
During handling of the above exception, another exception occurred:

{PYSPARK}"""
WARNINGS = """\
OpenJDK 64-Bit Server VM warning: INFO: os::commit_memory failed
WARNING: java.lang.System::load has been called by io.netty.util.internal.NativeLibraryUtil
/x/site-packages/pyspark/sql/pandas/utils.py:31: UserWarning: this pandas is not the one that was tested
  warnings.warn(
"""


@pytest.mark.parametrize("said", [CHAINED, WARNINGS, "SLF4J: No providers were found.\n"])
def test_relay_all_that_the_machinery_says_at_once_goes_aside(said):
    assert relayed(f"hello\n{said}bye\n") == ("hello\nbye\n", said)


def test_relay_indented_line_of_a_user_arrives():
    assert relayed("hello\n  there\n") == ("hello\n  there\n", "")


def test_relay_traceback_that_a_user_prints_arrives():
    assert relayed(f"{USERS}bye\n") == (f"{USERS}bye\n", "")


def test_relay_traceback_that_is_cut_off_arrives_at_the_end():
    assert relayed(USERS.removesuffix("ValueError: invalid literal\n"))[0].startswith("Traceback")


def test_relay_line_that_speaks_of_an_exception_is_the_users():
    said = "at 12 o'clock\nmy java.lang.Exception in the text\n"
    assert relayed(said) == (said, "")
