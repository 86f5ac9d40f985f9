"""Runs a service: one process, one Spark session, one query an output."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from everstate.engine.execution import Execution
from everstate.engine.failures import root_cause
from everstate.engine.folder import service_folder
from everstate.engine.lease import Heartbeat
from everstate.engine.outputs import prepare_outputs
from everstate.engine.progress import Progress
from everstate.engine.session import start_session, stop_session
from everstate.engine.settings import Settings, log_address
from everstate.log.opening import open_log

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from everstate.dsl.service import Service
    from everstate.log.protocol import Lease, Log

_LOOK_S: Final = 0.1


class Runner:
    """One run of one service.

    Args:
        service: What to run.
        log: Which log; see `log_address`.
        show: False for silence; by default a table on a terminal, else a line now and then.
        session: A session of `start_session` to run in, which stays; without it the run has one of its own.
        settings: Operational settings by name, as for `Settings`.
    """

    def __init__(
        self,
        service: Service,
        *,
        log: str | Path | None = None,
        show: bool | None = None,
        session: SparkSession | None = None,
        **settings: Any,
    ) -> None:
        own = {"state_dir": service.state_dir, "shards": service.shards}
        self.settings = Settings.resolve(settings, service=own)
        self._service = service
        self._address = log_address(log, service.log)
        self._show = show
        self._session = session
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._started = threading.Event()

    def run(self, *, once: bool = False) -> None:
        """Run in the foreground until stopped; with `once`, until everything that is there has been processed.

        Raises:
            LeaseHeldError: If another process runs this service.
            EverstateError: If an output fails; the others have been stopped in an orderly way.
        """
        with self._signals():
            self._execute(once=once)

    def start(self) -> None:
        """Run in the background; returns when the queries have been started.

        Raises:
            EverstateError: If the service cannot be started.
        """
        self._thread = threading.Thread(target=self._in_background, name=f"everstate-{self._service.name}", daemon=True)
        self._thread.start()
        while not self._started.wait(_LOOK_S):
            if not self._thread.is_alive():
                break
        if self._failure is not None:
            self._thread.join()
            raise self._failure

    def stop(self) -> None:
        """Finish the micro-batches in progress and stop.

        Raises:
            EverstateError: If the service failed while it ran in the background.
        """
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            if self._failure is not None:
                raise self._failure

    def _in_background(self) -> None:
        try:
            self._execute(once=False)
        except BaseException as error:  # noqa: BLE001 - raised again by start() or stop()
            self._failure = error

    def _execute(self, *, once: bool) -> None:
        log = open_log(self._address)
        try:
            lease = log.acquire(self._service.name)
            try:
                self._under_lease(log, lease, once=once)
            finally:
                log.release(lease)
        finally:
            log.close()

    def _under_lease(self, log: Log, lease: Lease, *, once: bool) -> None:
        home = service_folder(self.settings.state_dir, log, self._service.name)
        policy = self._service.on_error
        outputs = prepare_outputs(self._service.units(), log, home, self.settings, policy=policy)
        heartbeat = Heartbeat(log, lease, self.settings.heartbeat, self._lost, [output.name for output in outputs])
        heartbeat.start()
        try:
            session = self._session or start_session(self.settings, f"everstate {self._service.name}")
            try:
                self._handle_signals()  # PySpark has put its own in place
                executions = [
                    Execution(session, output, log, lease, self.settings, policy=policy) for output in outputs
                ]
                with Progress(executions, log, show=self._show) as progress:
                    self._run(executions, progress, once=once)
            finally:
                if self._session is None:
                    stop_session(session)
        finally:
            heartbeat.stop()

    def _run(self, executions: Sequence[Execution], progress: Progress, *, once: bool) -> None:
        rounds = _in_turns(executions, self.settings.used_cores) if once else [list(executions)]
        for members in rounds:
            try:
                for execution in members:
                    self._await_room(members)
                    if not self._stopping.is_set():
                        execution.start(once=once)
                self._started.set()
                self._watch(members, progress)
            except BaseException as error:
                self._wind_down(members, suppress=True)
                if self._failure is not None:
                    raise self._failure from error
                raise
            self._wind_down(members, suppress=False)
        if self._failure is not None:
            raise self._failure

    def _await_room(self, members: Sequence[Execution]) -> None:
        """Until fewer queries are coming up than there are cores.

        Every query starts processes of its own, and Spark gives up on those that take longer than ten seconds.
        """
        while sum(execution.coming_up() for execution in members) >= self.settings.used_cores:
            if self._stopping.wait(_LOOK_S):
                return

    def _watch(self, members: Sequence[Execution], progress: Progress) -> None:
        """Until all have ended, one has failed, or the service is to stop."""
        while not self._stopping.is_set():
            active = [execution for execution in members if execution.active()]
            progress.update()
            if not active:
                return
            time.sleep(_LOOK_S)

    def _wind_down(self, members: Sequence[Execution], *, suppress: bool) -> None:
        deadline = time.monotonic() + self.settings.stop_timeout
        for execution in members:
            execution.announce_stop()
        for execution in members:
            try:
                execution.stop(deadline)
            except Exception as error:
                if not suppress:
                    raise root_cause(error, execution.name) from error

    def _lost(self, error: BaseException) -> None:
        self._failure = error
        self._stopping.set()

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
        self._handle_signals()
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _handle_signals(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: self._stopping.set())


def _in_turns(executions: Sequence[Execution], cores: int) -> list[list[Execution]]:
    """Outputs that feed others first, so that one pass drains a chain; no more at once than there are cores."""
    found: dict[int, list[Execution]] = defaultdict(list)
    for execution in executions:
        found[execution.output.level].append(execution)
    return [
        found[level][place : place + cores] for level in sorted(found) for place in range(0, len(found[level]), cores)
    ]
