from __future__ import annotations

from pathlib import Path

import pytest

from everstate.engine.query.failures import is_transient, root_cause
from everstate.errors import (
    AccessError,
    CheckpointDamagedError,
    CheckpointMissingError,
    DiskFullError,
    EngineError,
    FencedError,
    LogBusyError,
    OpenFilesError,
    RecordError,
    SegmentDamagedError,
    StalledError,
)
from everstate.errors.carrying import CarriedError, encoded


def test_root_cause_finds_a_worker_error_in_the_chain():
    outer = RuntimeError("job failed")
    outer.__cause__ = CarriedError(encoded(SegmentDamagedError("segment 3")))
    assert isinstance(root_cause(outer, "totals"), SegmentDamagedError)


def test_root_cause_everstate_error_is_itself():
    error = RecordError("x")
    assert root_cause(error, "totals") is error


def test_root_cause_state_that_spark_cannot_load_is_named_with_the_cure():
    gone = RuntimeError("[CANNOT_LOAD_STATE_STORE.X] An error: java.io.FileNotFoundException: 3_x.changelog")
    bad = RuntimeError("[CANNOT_LOAD_STATE_STORE.X] An error occurred: Checksum verification failed")
    assert isinstance(root_cause(gone, "totals"), CheckpointMissingError)
    found = root_cause(bad, "totals")
    assert isinstance(found, CheckpointDamagedError)
    assert "--recalculate" in str(found)


def test_root_cause_lost_java_says_that_nothing_is_lost():
    found = root_cause(ConnectionRefusedError(111, "refused"), "totals")
    assert isinstance(found, EngineError)
    assert "Java process ended" in str(found)


def test_root_cause_names_the_condition_of_spark_not_the_wrapper():
    text = (
        "An error occurred while calling o267.collectToPython.\n"
        ": org.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred. SQLSTATE: 1\n"
        "\tat x\nCaused by: java.lang.NullPointerException"
    )
    assert "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred" in str(root_cause(RuntimeError(text), "totals"))


def test_root_cause_after_java_has_ended_is_that_whatever_broke():
    found = root_cause(RuntimeError("java.io.EOFException"), "totals", java_lives=False)
    assert "Java process ended" in str(found)


def test_root_cause_unknown_error_is_an_engine_error_with_its_text():
    found = root_cause(ValueError("odd"), "totals")
    assert isinstance(found, EngineError)
    assert "odd" in str(found)


FULL = "java.io.IOException: No space left on device"
FILES = "java.net.SocketException: Too many open files"
RIGHTS = "java.io.FileNotFoundException: /state/0/0/1.changelog (Permission denied)"


@pytest.mark.parametrize("wrapper", ["[CANNOT_LOAD_STATE_STORE.X] cannot load: {}", "StateStoreException: {}", "{}"])
@pytest.mark.parametrize(("text", "kind"), [(FULL, DiskFullError), (FILES, OpenFilesError), (RIGHTS, AccessError)])
def test_root_cause_of_what_has_run_out_is_never_damage(wrapper, text, kind):
    found = root_cause(RuntimeError(wrapper.format(text)), "totals")
    assert type(found) is kind
    assert "Nothing is damaged" in str(found)
    assert "--recalculate" not in str(found)


def test_root_cause_names_the_file_of_sparks_report():
    found = root_cause(RuntimeError("[CANNOT_LOAD_STATE_STORE.X] odd"), "totals", report=Path("/state/spark.log"))
    assert "/state/spark.log" in str(found)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError(FULL),
        RuntimeError(FILES),
        OSError(28, "No space left on device"),
        RuntimeError("Python worker exited unexpectedly (crashed)"),
        RuntimeError("java.net.SocketException: Connection reset"),
        RuntimeError("TimeoutError: timed out"),
        LogBusyError("locked"),
        StalledError("still"),
        CarriedError(encoded(DiskFullError("full"))),
    ],
)
def test_failure_that_may_pass_is_transient(error):
    assert is_transient(error)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("[CANNOT_LOAD_STATE_STORE.X] Checksum verification failed"),
        RuntimeError(RIGHTS),
        PermissionError(13, "Permission denied"),
        FencedError("taken"),
        SegmentDamagedError("x"),
        CarriedError(encoded(RecordError("record: Connection reset, No space left on device"))),
        ConnectionRefusedError(111, "refused"),
        ValueError("odd"),
    ],
)
def test_failure_that_will_not_pass_is_not_transient(error):
    assert not is_transient(error)


@pytest.mark.parametrize(
    ("text", "transient", "said"),
    [
        ("ExecutorLostFailure (executor 1 exited caused by one of the running tasks)", True, "lost executors"),
        ("FetchFailed(BlockManagerId(0, host, 1, None))", True, "lost executors"),
        ("Master removed our application: KILLED", False, "has given up on this service"),
        ("Job 3 cancelled because SparkContext was shut down", False, "has given up on this service"),
    ],
)
def test_failure_of_a_cluster_is_named_and_tried_again_where_that_may_help(text, transient, said):
    error = RuntimeError(text)
    assert is_transient(error) is transient
    assert said in root_cause(error, "totals").message
