"""When Spark is started: in the background while there is other work, or only if it turns out to be needed."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from everstate.engine.jvm.session import start_session, stop_session
from everstate.engine.jvm.timings import note_start

if TYPE_CHECKING:
    from concurrent.futures import Future
    from pathlib import Path

    from pyspark.sql import SparkSession

    from everstate.engine.cluster.cluster import Cluster
    from everstate.generations.deploy.settings import Settings


class Spark:
    """The session of one operation.

    Args:
        settings: Operational settings.
        name: What Spark calls the application.
        report: The file that its Java process reports to.
        given: A session to work in, which stays; without it there is one of its own, which ends with `stop`.
        cluster: Where tasks run, if not in this process.
    """

    def __init__(
        self,
        settings: Settings,
        name: str,
        report: Path,
        given: SparkSession | None = None,
        cluster: Cluster | None = None,
    ) -> None:
        self._settings = settings
        self._report = report
        self._name = name
        self._given = given
        self._cluster = cluster
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="spark-start")
        self._starting: Future[SparkSession] | None = None

    def begin(self) -> None:
        """Start it without waiting; what fails is raised to the first who asks for the session."""
        if self._given is None:
            self._begun()

    def session(self) -> SparkSession:
        """The session, as soon as it is there.

        Raises:
            EngineError: If it does not start.
        """
        if self._given is not None:
            return self._given
        return self._begun().result()

    def _begun(self) -> Future[SparkSession]:
        if self._starting is None:
            self._starting = self._threads.submit(self._start)
        return self._starting

    def _start(self) -> SparkSession:
        began = time.monotonic()
        session = start_session(self._settings, self._name, self._report, self._cluster)
        note_start(time.monotonic() - began)
        return session

    def stop(self) -> None:
        """Stop what was started."""
        if self._starting is not None and self._starting.exception() is None:
            stop_session(self._starting.result())
        self._threads.shutdown()
