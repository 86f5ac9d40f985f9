"""Runs a service: one process, one Spark session, one query an output."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING, Any, Final

from everstate.engine.deployment import Deployment, Roster
from everstate.engine.folder import service_folder
from everstate.engine.leases import Leases
from everstate.engine.outputs import create_topics
from everstate.engine.planning import make_plan, require_possible
from everstate.engine.progress import Progress
from everstate.engine.rollout import Rollout
from everstate.engine.session import start_session, stop_session
from everstate.engine.settings import Settings, log_address
from everstate.engine.takeover import take_leases
from everstate.engine.wishes import Wishes
from everstate.generations.registry import Registry
from everstate.log.opening import open_log

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from everstate.dsl.service import Service
    from everstate.engine.planning import Planned
    from everstate.log.protocol import Log

_LOOK_S: Final = 0.1


class Runner:
    """One run of one service.

    Args:
        service: What to run.
        log: Which log; see `log_address`.
        show: False for silence; by default a table on a terminal, else a line now and then.
        session: A session of `start_session` to run in, which stays; without it the run has one of its own.
        wishes: What is asked for with this run.
        settings: Operational settings by name, as for `Settings`.
    """

    def __init__(
        self,
        service: Service,
        *,
        log: str | Path | None = None,
        show: bool | None = None,
        session: SparkSession | None = None,
        wishes: Wishes | None = None,
        **settings: Any,
    ) -> None:
        own = {"state_dir": service.state_dir, "shards": service.shards}
        self.settings = Settings.resolve(settings, service=own)
        self._service = service
        self._address = log_address(log, service.log)
        self._show = show
        self._session = session
        self._wishes = wishes or Wishes()
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._started = threading.Event()

    def run(self, *, once: bool = False) -> None:
        """Run in the foreground until stopped; with `once`, until everything that is there has been processed.

        Raises:
            LeaseHeldError: If another process runs this version of the service.
            ApprovalNeededError: If a cutover has to be approved first.
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
            units = self._service.units()
            create_topics(units, log, self._service.on_error)
            names = [unit.output.topic for unit in units]
            leases = Leases(log, self._service.name, self.settings.heartbeat, self._lost, names)
            try:
                self._with_leases(log, leases, once=once)
            finally:
                leases.release()
        finally:
            log.close()

    def _with_leases(self, log: Log, leases: Leases, *, once: bool) -> None:
        home = service_folder(self.settings.state_dir, log, self._service.name)
        registry = Registry(log, self._service.name)
        planned = take_leases(
            lambda: self._plan(log, home), leases, log=log, registry=registry, home=home, settings=self.settings,
            wishes=self._wishes,
        )  # fmt: skip
        session = self._session or start_session(self.settings, f"everstate {self._service.name}")
        try:
            self._handle_signals()  # PySpark has put its own in place
            roster = Roster()
            deployment = Deployment(
                planned,
                session=session,
                log=log,
                registry=registry,
                leases=leases,
                home=home,
                settings=self.settings,
                wishes=self._wishes,
                roster=roster,
            )
            with Progress(roster, log, show=self._show) as progress:
                rollout = Rollout(deployment, roster, leases, self.settings, progress, self._stopping, self._started)
                self._roll_out(rollout, once=once)
        finally:
            if self._session is None:
                stop_session(session)

    def _roll_out(self, rollout: Rollout, *, once: bool) -> None:
        try:
            rollout.drain() if once else rollout.follow()
        except BaseException as error:
            rollout.wind_down(suppress=True)
            if self._failure is not None:
                raise self._failure from error
            raise
        rollout.wind_down(suppress=self._failure is not None)
        if self._failure is not None:
            raise self._failure

    def _plan(self, log: Log, home: Path) -> Planned:
        planned = make_plan(self._service, log, home, self._wishes.options(self.settings.shards))
        require_possible(planned)
        return planned

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
