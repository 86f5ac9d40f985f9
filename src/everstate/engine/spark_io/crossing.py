"""One query of Spark's own at an end of a service: started, watched, started again after a failure, stopped."""

from __future__ import annotations

import json
import logging
import time
import traceback
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import AnalysisException

from everstate.engine.backoff import Backoff
from everstate.engine.jvm.session import query_session
from everstate.engine.query.by_value import own_copy
from everstate.engine.query.failures import is_transient, root_cause
from everstate.engine.query.sink import FailedBatchError, told
from everstate.errors import CheckpointMissingError, EngineError, EverstateError, UserFunctionError
from everstate.errors.carrying import decoded
from everstate.location import Location
from everstate.log.private import make_private

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

    from everstate.generations.deploy.settings import Settings
    from everstate.log.descriptions import Lease
    from everstate.log.protocol import Log
    from everstate.topology.spark_steps import SparkStep

logger = logging.getLogger(__name__)

#: Rows that travel between Spark and Python together.
_ROWS: Final = "10000"
#: What a function cannot be cured of by trying again.
_MISTAKES: Final = (TypeError, NameError, AttributeError, ImportError, AnalysisException)


class Crossing(ABC):
    """The query of one step.

    Args:
        step: What the user declared.
        log: The log.
        lease: Under which it runs.
        folder: Where its checkpoint is.
        run: The number of its checkpoint.
        service: The service.
        settings: Operational settings.
    """

    def __init__(
        self, step: SparkStep, log: Log, lease: Lease, folder: Path, *, run: int, service: str, settings: Settings
    ) -> None:
        self.step = step
        self.lease = lease
        self._log = log
        self._folder = folder
        self._run = run
        self._service = service
        self._settings = settings
        self._call = own_copy(step.function.call, step.location.file if step.location is not None else "")
        self._query: StreamingQuery | None = None
        self._session: Callable[[], SparkSession] | None = None
        self._failure: BaseException | None = None
        self._backoff = Backoff(settings.restarts)
        self._due: float | None = None
        self._once = False
        self.batches = 0

    @property
    def checkpoint(self) -> Path:
        """Spark's folder."""
        return self._folder / str(self._run)

    @abstractmethod
    def _written(self, own: SparkSession) -> DataStreamWriter[Any]:
        """The query, but for where it keeps its positions and when it runs."""

    @abstractmethod
    def _batch(self, frame: DataFrame, batch_id: int) -> None:
        """Carry a batch over."""

    def start(self, session: Callable[[], SparkSession], *, once: bool) -> None:
        """Start it; with `once` it ends when all that is there has been carried over.

        Raises:
            EverstateError: If Spark cannot, or the user's function raises.
        """
        self._session, self._once = session, once
        make_private(self.checkpoint)
        own = query_session(session(), self._settings.used_cores)
        own.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", _ROWS)
        own.conf.set("spark.sql.session.timeZone", "UTC")
        try:
            writer = self._written(own).foreachBatch(self._carried).queryName(f"{self._service}/{self.step.name}")
            writer = writer.option("checkpointLocation", str(self.checkpoint))
            pace = f"{int(self._settings.trigger * 1000)} milliseconds"
            writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=pace)
            own.sparkContext.setLocalProperty("spark.scheduler.pool", self.step.name)
            self._query = writer.start()
        except Exception as error:  # noqa: BLE001 - whatever it is, it gets a name
            self._retry(error)

    def _carried(self, frame: DataFrame, batch_id: int) -> None:
        try:
            self._batch(frame, batch_id)
        except Exception as error:  # noqa: BLE001 - kept, and named by who looks at the query
            self._failure = error
            raise FailedBatchError(told(error)) from None
        self.batches += 1
        self._backoff.succeeded()

    def active(self) -> bool:
        """Whether it runs, or is about to be started again.

        Raises:
            EverstateError: If it has failed, and trying again has not helped or cannot help.
        """
        if self._due is not None:
            if time.monotonic() >= self._due:
                self._start_again()
            return True
        if self._query is None or self._query.isActive:
            return self._query is not None
        failure = self._failure or self._query.exception()
        if failure is None and self._once:
            return False
        self._retry(failure or EngineError(f"the query of {self.step.call} ended on its own"))
        return True

    def _retry(self, failure: BaseException) -> None:
        named = self._named(failure)
        delay = self._backoff.failed() if not self._once and self._may_pass(failure, named) else None
        if delay is None:
            raise named from None
        logger.warning("%s will start again in %.0f s: %s", self.step.call, delay, named.message)
        self._due = time.monotonic() + delay

    def _may_pass(self, failure: BaseException, named: EverstateError) -> bool:
        """Whether it may succeed if it is tried again: a sink that is away comes back, a mistake stays one."""
        if isinstance(named, UserFunctionError):
            return not isinstance(failure, _MISTAKES)
        return is_transient(failure)

    def _start_again(self) -> None:
        self._due, self._failure = None, None
        if self._session is not None:
            self.start(self._session, once=self._once)

    def stop(self, deadline: float) -> None:
        """Let the batch in progress finish, then stop."""
        query, self._query, self._due = self._query, None, None
        if query is None:
            return
        try:
            while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
                time.sleep(0.02)
            query.stop()
        except Exception as error:
            raise self._named(error) from error

    def _query_id(self) -> str:
        try:
            return str(json.loads((self.checkpoint / "metadata").read_bytes())["id"])
        except OSError as error:
            raise CheckpointMissingError(
                f"{self.checkpoint} is missing", hint="Restore it from a copy of the same moment."
            ) from error

    def _named(self, error: BaseException) -> EverstateError:
        """What is said of an error: of the user's function with its file and line, of all else in our words."""
        if isinstance(error, EverstateError):
            return error
        carried = decoded(str(error))
        place = self._place(error)
        if carried is None and place is not None:
            text = (str(error).strip().splitlines() or [""])[0][:500]
            return UserFunctionError(
                f"{self.step.call} raised {type(error).__name__}: {text}",
                location=place,
                hint=self._cure(),
            )
        return root_cause(error, self.step.name)

    @abstractmethod
    def _cure(self) -> str:
        """What to do about a function that has raised."""

    def _place(self, error: BaseException) -> Location | None:
        """The user's line that an error passed through; None if it was not in the user's function."""
        code = getattr(self._call, "__code__", None)
        if code is None:
            return None
        lines = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == code.co_filename]
        return Location(lines[-1].filename, lines[-1].lineno or code.co_firstlineno) if lines else None
