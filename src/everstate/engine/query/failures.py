"""From Spark's exceptions back to the error that caused them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from everstate.errors import (
    AccessError,
    CheckpointDamagedError,
    CheckpointMissingError,
    EngineError,
    EverstateError,
    LogBusyError,
    LogUnavailableError,
    ResourceError,
    StalledError,
)
from everstate.errors.carrying import decoded
from everstate.errors.exhaustion import chain, exhausted, exhaustion
from everstate.generations.state.folder import CURE

if TYPE_CHECKING:
    from pathlib import Path

#: What Spark calls state that it cannot read; the words are those of its error conditions and state store.
_STATE: Final = re.compile(
    r"CANNOT_LOAD_STATE_STORE|FAILED_TO_READ_STATE|CHECKPOINT_FILE_CHECKSUM|StateStore\w*Exception|RocksDBException"
    r"|STATE_STORE_\w+|[Cc]hecksum (?:verification|mismatch)"
)
_GONE: Final = re.compile(r"FileNotFoundException|NoSuchFileException|does not exist")
_WORKER_LOST: Final = re.compile(r"Python worker (?:exited unexpectedly|failed to connect)|EOFException")
#: What Spark says of a machine of a cluster that is gone, and of a master that is.
_EXECUTOR_LOST: Final = re.compile(
    r"ExecutorLostFailure|FetchFailed|Remote RPC client disassociated|Could not find CoarseGrainedScheduler"
    r"|Executor heartbeat timed out|worker lost|decommissioned"
)
_MASTER_GONE: Final = re.compile(
    r"All masters are unresponsive|Master removed our application|Application has been killed"
    r"|SparkContext (?:was|has been) (?:shut down|shutdown|stopped)|stopped SparkContext|cancelled because SparkContext"
)
#: A connection between the service's own processes that broke, or did not come about in time.
_CONNECTION: Final = re.compile(
    r"Connection (?:reset|refused)|Broken pipe|CANNOT_OPEN_SOCKET|SocketTimeoutException|SocketException|TimeoutError"
)


def root_cause(
    error: BaseException, output: str, *, java_lives: bool = True, report: Path | None = None
) -> EverstateError:
    """What a failed query is called in Everstate's words.

    Args:
        error: What Spark, Py4J or the sink raised.
        output: The output whose query it was.
        java_lives: Whether the Java process is there; what breaks when it ends looks like many other failures.
        report: Where Spark reports what it does.
    """
    if isinstance(error, EverstateError):
        return error
    text = _text(error)
    carried_error = decoded(text)
    if carried_error is not None:
        return carried_error
    found = _named(error, text, output, java_lives=java_lives)
    if report is not None:
        found.hint = f"{found.hint} Spark's own report: {report}"
    return found


def _named(error: BaseException, text: str, output: str, *, java_lives: bool) -> EverstateError:
    # First of all: whatever else a full disk breaks, such as state that cannot be loaded, is whole when there is space.
    lacking = exhaustion(error)
    if lacking is not None:
        return exhausted(lacking, f"the query of output {output!r} failed")
    if not java_lives or java_is_gone(error):
        return EngineError(
            f"Spark's Java process ended while output {output!r} was running",
            hint="Nothing is lost: run the service again. If it ended for lack of memory, give it more with --memory.",
        )
    if _MASTER_GONE.search(text):
        return EngineError(
            f"the Spark cluster has given up on this service while output {output!r} was running: {_first_line(text)}",
            hint="Nothing is lost: make sure that the master answers, then run the service again.",
        )
    if _EXECUTOR_LOST.search(text):
        return EngineError(
            f"output {output!r} has lost executors of the cluster too often: {_first_line(text)}",
            hint="Nothing is lost: make sure that the workers stay up, then run the service again. If memory is short "
            "there, lower --max-records or --cores.",
        )
    if _STATE.search(text):
        kind = CheckpointMissingError if _GONE.search(text) else CheckpointDamagedError
        return kind(f"Spark cannot load the state of output {output!r}: {_first_line(text)}", hint=CURE)
    if workers_were_lost(error):
        return EngineError(
            f"the Python workers of output {output!r} were lost: {_worker_line(text)}",
            hint="Nothing is lost: run the service again. If memory is short, lower --max-records or --cores.",
        )
    return EngineError(
        f"the query of output {output!r} failed: {_first_line(text)}",
        hint="Run it with --log-level INFO to see what Spark was doing.",
    )


def is_transient(error: BaseException) -> bool:
    """Whether a query that failed of this may succeed if it is started again: nothing is wrong with code or state."""
    if isinstance(error, EverstateError):
        # Nobody gets a right by waiting.
        return isinstance(error, (ResourceError, LogBusyError, LogUnavailableError, StalledError)) and not isinstance(
            error, AccessError
        )
    if java_is_gone(error):
        return False
    text = _text(error)
    found = decoded(text)
    if found is not None:
        return is_transient(found)
    if _MASTER_GONE.search(text):
        return False
    lost = _WORKER_LOST.search(text) or _EXECUTOR_LOST.search(text) or _CONNECTION.search(text)
    return bool(lost) or exhaustion(error) not in {None, AccessError}


def workers_were_lost(error: BaseException) -> bool:
    """Whether a query failed because its Python workers ended or did not start in time; starting it again may help."""
    text = _text(error)
    return bool(_WORKER_LOST.search(text)) and decoded(text) is None and not java_is_gone(error)


def java_is_gone(error: BaseException) -> bool:
    """Whether the connection to the Java process broke."""
    names = {"Py4JNetworkError", "ConnectionRefusedError", "ConnectionResetError", "Py4JError"}
    return any(type(one).__name__ in names for one in chain(error))


def _text(error: BaseException) -> str:
    return "\n".join(f"{type(one).__name__}: {one}" for one in chain(error))


def _worker_line(text: str) -> str:
    """How a worker was lost: whether it ended, or never came up."""
    found = _WORKER_LOST.search(text)
    line = next((line.strip() for line in text.splitlines() if found and found[0] in line), "")
    return line[-300:]


def _first_line(text: str) -> str:
    """The most telling line: Spark's own condition, else the last exception that is not a wrapper, else the first."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    conditions = [found[0] for line in lines if (found := re.search(r"\[[A-Z][A-Z_.]{5,}\] .*", line))]
    raised = [line for line in lines if re.match(r"(?:Caused by: )?(?!Py4J)[\w.]+(?:Error|Exception)\b", line)]
    return (conditions[:1] or raised[-1:] or lines[:1] or ["no message"])[0][:500]
