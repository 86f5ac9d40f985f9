"""Runs a service: one process, one Spark session, one query an output."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final, Unpack

from everstate.engine.operation import Operation
from everstate.engine.signals import stopping_on_signals
from everstate.generations.state.belonging import remember_log
from everstate.generations.state.folder import prepare_home

if TYPE_CHECKING:
    from collections.abc import Callable

    from everstate.dsl.service import Service
    from everstate.generations.deploy.options import RunOptions
    from everstate.plan.actions import Plan

logger = logging.getLogger(__name__)

_LOOK_S: Final = 0.1


class Runner:
    """One run of one service.

    Args:
        service: What to run.
        announce: Called with the plan before anything is done.
        given: As for `Operation`.
    """

    def __init__(
        self, service: Service, *, announce: Callable[[Plan], None] | None = None, **given: Unpack[RunOptions]
    ) -> None:
        self._operation = Operation(service, **given)
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
        with stopping_on_signals(self._operation.ending.stopping):
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
        self._operation.ending.stopping.set()
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
        operation = self._operation
        with operation.site() as site:
            prepare_home(site.home)
            run = operation.run(site)
            planned = run.begin(self._announce)
            remember_log(site.home, site.log)
            with operation.rollout(run, planned, self._started) as rollout:
                if once:
                    rollout.drain()
                else:
                    rollout.follow()
