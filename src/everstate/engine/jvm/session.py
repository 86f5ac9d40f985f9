"""The one Spark session of a service's process, and what every query of it is configured with."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import threading
from typing import TYPE_CHECKING, Any, Final

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from everstate.engine.checkpoint.checkpoint import RETAINED_BATCHES
from everstate.engine.jvm.class_archive import java_options
from everstate.engine.jvm.java import find_java
from everstate.engine.jvm.relay import Relay
from everstate.engine.jvm.reports import Aside, logging_options
from everstate.engine.jvm.submission import THEIRS, is_submitted, submitted_properties
from everstate.engine.jvm.workers import worker_environment
from everstate.engine.limits import raise_open_files
from everstate.engine.query.source import LogSource
from everstate.errors import ConfigurationError, EngineError

if TYPE_CHECKING:
    from pathlib import Path

    from everstate.engine.cluster.cluster import Cluster
    from everstate.generations.deploy.settings import Settings

#: Attempts of a task: a worker that was killed does not end the query.
TASK_ATTEMPTS: Final = 4
_STORE: Final = "spark.sql.streaming.stateStore"

#: How state is kept. None of these is a setting: recovery and the checks at start rely on each of them.
STATE: Final[dict[str, str]] = {
    # The usual one has a shell look for links at every step of every file: forty processes for each micro-batch.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    f"{_STORE}.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    f"{_STORE}.rocksdb.changelogCheckpointing.enabled": "true",
    # Files are unique by attempt, so a process that should be dead cannot overwrite state.
    f"{_STORE}.checkpointFormatVersion": "2",
    f"{_STORE}.rowChecksum.enabled": "true",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "true",
    # The checks at start know from this which files must be there.
    "spark.sql.streaming.minBatchesToRetain": str(RETAINED_BATCHES),
    # Damage is named, not worked around.
    f"{_STORE}.autoSnapshotRepair.enabled": "false",
    # Without it, stopping a query waits for ever for a thread that does not end.
    "spark.sql.streaming.stopTimeout": "60000",
}

#: On a busy machine a Python worker takes longer to say hello than the 15 seconds that Spark gives it.
_HANDSHAKE: Final = {"spark.python.authenticate.socketTimeout": "60s"}

#: Longer than stopping the queries may take, of which each has its own limit.
_STOP_S: Final = 90.0

#: What makes small batches quick.
PACE: Final[dict[str, str]] = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "20",
    # A row is a block of up to 16 MB, so these bound the memory of one transfer.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16",
    "spark.shuffle.compress": "false",
}


def start_session(
    settings: Settings, name: str, report: Path | None = None, cluster: Cluster | None = None
) -> SparkSession:
    """Start Spark in this process.

    Args:
        settings: Operational settings.
        name: What Spark calls the application.
        report: The file that Java reports to; None for the terminal.
        cluster: Where tasks run, if not in this process.

    Raises:
        EngineError: If there is no Java, or it does not start, or this process has a session of another kind; if a
            cluster does not answer, or lacks something.
        ConfigurationError: If a cluster does not see the folder of the service's state, or Spark Connect is asked for.
    """
    _require_none()
    raise_open_files()
    if report is not None:
        report.parent.mkdir(parents=True, exist_ok=True)
    os.environ["JAVA_HOME"] = str(find_java())
    os.environ.update(worker_environment())
    options = session_options(settings, report)
    if cluster is not None:
        options.update(cluster.prepare())
        os.environ.update(cluster.environment)
    for decided in submitted_properties(THEIRS):
        options.pop(decided, None)
    if settings.log_level == "ERROR":
        _quieten()
    conf = SparkConf(loadDefaults=False).setAppName(name).setAll(list(options.items()))
    try:
        session = _started(conf, report)
    except Exception as error:
        told = "" if report is None else f" What Java reported is in {report.parent}."
        raise EngineError(
            f"Spark did not start: {(str(error).splitlines() or [type(error).__name__])[0][:300]}",
            hint=f"Run it with --log-level INFO to see more, and check --memory.{told}",
        ) from error
    try:
        if is_submitted():
            session.sparkContext.setLogLevel(settings.log_level)
        if cluster is not None:
            cluster.join(session.sparkContext)
    except BaseException:
        stop_session(session)
        raise
    return session


def _require_none() -> None:
    """Refuse to start a second session, or one that somebody means to be elsewhere."""
    if SparkContext._active_spark_context is not None:  # noqa: SLF001 - the documented way creates one if there is none
        raise EngineError(
            "this process already runs a Spark session",
            hint="Stop it first, or run the service in a process of its own: everstate run SERVICE.py",
        )
    if os.environ.get("SPARK_REMOTE"):
        raise ConfigurationError(
            "SPARK_REMOTE names a Spark Connect server, and Spark Connect is not supported: paged state, Python "
            "sources and atomic batches need the classic API",
            hint="Unset SPARK_REMOTE; for a cluster, name its standalone master: --master spark://host:7077",
        )


def _quieten() -> None:
    """What fails in a sink, or because Java ended, has our own message; Py4J's tracebacks would come before it."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_not_from_py4j)
    for context in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(context).setLevel(logging.CRITICAL)


def _started(conf: SparkConf, report: Path | None) -> SparkSession:
    gateway = _launched(conf, {"stderr": subprocess.PIPE, "text": True, "errors": "replace"})
    if gateway.proc is not None:
        relay = Relay(gateway.proc.stderr, aside=Aside(report) if report is not None else None)
        relay.start()
    context = SparkContext(conf=conf, gateway=gateway)
    # A connection that breaks because Java ended would be reported as a traceback, ahead of our own message.
    context._accumulatorServer.handle_error = lambda *_: None  # noqa: SLF001
    return SparkSession(context)


def _launched(conf: SparkConf, pipes: dict[str, Any]) -> Any:
    """Java, whose files and those of its workers are for the owner alone: state is the users' records."""
    if SparkContext._gateway is not None:  # noqa: SLF001 - of the Java that has started this process
        return SparkContext._gateway  # noqa: SLF001
    before = os.umask(0o077)
    try:
        return launch_gateway(conf, popen_kwargs=pipes)
    finally:
        os.umask(before)


def _not_from_py4j(record: logging.LogRecord) -> bool:
    """Py4J reports some failures to the root logger instead of its own."""
    return "py4j" not in record.pathname


def session_options(settings: Settings, report: Path | None = None) -> dict[str, str]:
    """Everything the session is told."""
    options = {
        "spark.master": f"local[{settings.used_cores},{TASK_ATTEMPTS}]",
        "spark.api.mode": "classic",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": settings.memory,
        "spark.driver.extraJavaOptions": " ".join(
            [java_options(full_compiler=settings.full_compiler), *logging_options(settings.log_level, report)]
        ),
        "spark.scheduler.mode": "FAIR",
        "spark.sql.catalogImplementation": "in-memory",
        # Hadoop gives files rights of its own, whatever the process was started with.
        "spark.hadoop.fs.permissions.umask-mode": "077",
        "spark.task.maxFailures": str(TASK_ATTEMPTS),
        # A worker is one of several that share the cores.
        "spark.executorEnv.POLARS_MAX_THREADS": "1",
        "spark.executorEnv.OMP_NUM_THREADS": "1",
        # Polars' allocator gives memory back after half a second, and takes it again with the next batch: a tenth of a
        # worker's time.
        "spark.executorEnv._RJEM_MALLOC_CONF": "dirty_decay_ms:10000,muzzy_decay_ms:10000",
        **_HANDSHAKE,
        **STATE,
        **PACE,
    }
    if settings.scratch_dir is not None:
        options["spark.local.dir"] = str(settings.scratch_dir.absolute())
    return options


def query_session(session: SparkSession, shards: int) -> SparkSession:
    """A session for one query, which has its own number of shards."""
    own = session.newSession()
    own.conf.set("spark.sql.shuffle.partitions", str(shards))
    own.dataSource.register(LogSource)
    return own


def java_process() -> int | None:
    """The number of Spark's Java process; None if there is none."""
    if is_submitted():
        return os.getppid()
    process = getattr(SparkContext._gateway, "proc", None)  # noqa: SLF001 - there is no public way to ask
    return None if process is None else int(process.pid)


def java_lives() -> bool:
    """Whether Spark's Java process runs; asked after a failure, so it is given a moment to be gone."""
    process = getattr(SparkContext._gateway, "proc", None)  # noqa: SLF001 - there is no public way to ask
    if process is None:
        return True
    try:
        process.wait(timeout=1)
    except subprocess.TimeoutExpired:
        return True
    return False


def _stop_quietly(session: SparkSession, gateway: Any) -> None:
    with contextlib.suppress(Exception):
        session.stop()
    with contextlib.suppress(Exception):
        if gateway is not None:
            gateway.shutdown()


def stop_session(session: SparkSession) -> None:
    """Stop Spark; a Java process that has ended already is no error, and one that `spark-submit` started goes on."""
    if is_submitted():
        _stop_quietly(session, None)
        return
    gateway = SparkContext._gateway  # noqa: SLF001 - there is no public way to end the Java process
    # In a thread of its own: a call to a Java process that hangs has no end, and this one has.
    stopping = threading.Thread(target=_stop_quietly, args=(session, gateway), name="spark-stop", daemon=True)
    stopping.start()
    stopping.join(_STOP_S)
    if gateway is None:
        return
    process = getattr(gateway, "proc", None)
    if process is not None:
        with contextlib.suppress(Exception):
            process.stdin.close()
            process.wait(timeout=20)
        with contextlib.suppress(Exception):
            process.kill()  # one that has ended is not touched
            process.wait(timeout=5)
    # A Java process that was killed leaves these behind, and a later session would talk to it.
    SparkContext._gateway = None  # noqa: SLF001
    SparkContext._jvm = None  # noqa: SLF001
    SparkContext._active_spark_context = None  # noqa: SLF001
    SparkSession._instantiatedSession = None  # noqa: SLF001
