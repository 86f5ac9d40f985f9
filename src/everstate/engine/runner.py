"""Runs a service: one process, one Spark session, one query an output."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any, Final

from everstate.engine.belonging import remember_log
from everstate.engine.folder import prepare_home
from everstate.engine.operation import Operation
from everstate.engine.outputs import create_topics
from everstate.engine.planning import require_no_drift, require_possible
from everstate.engine.signals import stopping_on_signals
from everstate.engine.takeover import take_leases
from everstate.plan.categories import Category
from everstate.topology.errors import LeaseHeldError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from everstate.dsl.service import Service
    from everstate.engine.operation import Site
    from everstate.engine.planning import Planned
    from everstate.engine.wishes import Wishes
    from everstate.plan.actions import Plan

logger = logging.getLogger(__name__)

_LOOK_S: Final = 0.1


class Runner:
    """One run of one service.

    Args:
        service: What to run.
        log: Which log; see `log_address`.
        show: False for silence; by default a table on a terminal, else a line now and then.
        session: A session of `start_session` to run in, which stays; without it the run has one of its own.
        wishes: What is asked for with this run.
        announce: Called with the plan before anything is done.
        given: Operational settings by name, as for `Settings`, and further wishes, as for `Wishes`.
    """

    def __init__(
        self,
        service: Service,
        *,
        log: str | Path | None = None,
        show: bool | None = None,
        session: SparkSession | None = None,
        wishes: Wishes | None = None,
        announce: Callable[[Plan], None] | None = None,
        **given: Any,
    ) -> None:
        self._operation = Operation(service, log=log, show=show, session=session, wishes=wishes, **given)
        self.settings = self._operation.settings
        self._announce = announce
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._started = threading.Event()

    def run(self, *, once: bool = False) -> None:
        """Run in the foreground until stopped; with `once`, until everything that is there has been processed.

        Raises:
            LeaseHeldError: If another process runs this version of the service.
            PlanDriftError: If a plan was given that does not fit any more.
            ApprovalNeededError: If a cutover has to be approved first.
            EverstateError: If an output fails; the others have been stopped in an orderly way.
        """
        with stopping_on_signals(self._operation.stopping):
            self._execute(once=once)

    def start(self) -> None:
        """Run in the background; returns when the queries have been started.

        Raises:
            EverstateError: If the service cannot be started.
        """
        name = f"everstate-{self._operation.service.name}"
        self._thread = threading.Thread(target=self._in_background, name=name, daemon=True)
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
        self._operation.stopping.set()
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
        operation, service = self._operation, self._operation.service
        with operation.site() as site:
            prepare_home(site.home)
            planned = self._plan(site)
            if self._announce is not None:
                self._announce(planned.plan)
            create_topics(service.units(), site.log, service.on_error)
            planned = self._take_leases(site)
            remember_log(site.home, site.log)
            _tell_missed(planned.plan)
            operation.roll_out(
                planned,
                site,
                lambda _, rollout: rollout.drain() if once else rollout.follow(),
                self._started,
            )

    def _take_leases(self, site: Site) -> Planned:
        try:
            return take_leases(
                lambda: self._plan(site),
                site.leases,
                log=site.log,
                registry=site.registry,
                home=site.home,
                settings=self.settings,
                wishes=self._operation.wishes,
            )
        except LeaseHeldError as error:
            ways = "With --standby this one waits until that has ended, with --take-over it takes its place."
            raise LeaseHeldError(error.message, hint=f"{error.hint} {ways}") from error

    def _plan(self, site: Site) -> Planned:
        """The plan of this moment, if it can be carried out."""
        planned = self._operation.plan(site)
        require_possible(planned)
        made = self._operation.wishes.plan
        if made is not None:
            require_no_drift(made, planned)
        return planned


def _tell_missed(plan: Plan) -> None:
    """Changes that fingerprints have missed, and steps that nothing can be said of, are told whoever reads the plan."""
    for action in plan.actions:
        for found in action.differences:
            if found.category is Category.MISSED:
                logger.warning("Output %s is recalculated. %s (%s)", action.output, found.cause, found.location)
        for warning in action.warnings:
            logger.warning("Output %s: %s", action.output, warning)
