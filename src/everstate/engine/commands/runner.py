"""Runs a service: one process, one Spark session, one query an output."""

from __future__ import annotations

import contextlib
import logging
import threading
from typing import TYPE_CHECKING, Final, Unpack

from everstate.engine.farewell import replaced, stopped
from everstate.engine.signals import raise_stopped, stopping_on_signals
from everstate.engine.spark_run import SparkRun
from everstate.errors import TakenOverError
from everstate.generations.state.belonging import remember_log
from everstate.generations.state.folder import prepare_home
from everstate.log.leasing import this_process

if TYPE_CHECKING:
    from collections.abc import Callable

    from everstate.dsl.service import Service
    from everstate.generations.deploy.options import RunOptions
    from everstate.generations.deploy.site import Site
    from everstate.plan.actions import Plan

logger = logging.getLogger(__name__)

_LOOK_S: Final = 0.1


class Runner:
    """One run of one service.

    Args:
        service: What to run.
        announce: Called with the plan before anything is done.
        given: As for `SparkRun`.
    """

    def __init__(
        self, service: Service, *, announce: Callable[[Plan], None] | None = None, **given: Unpack[RunOptions]
    ) -> None:
        self._run = SparkRun(service, **given)
        self.settings = self._run.settings
        self._announce = announce
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._started = threading.Event()

    def run(self, *, once: bool = False) -> None:
        """Run in the foreground until stopped; with `once`, until everything that is there has been processed.

        It is stopped by Ctrl-C, by SIGTERM, or by another process that was started in its place: that is no error,
        unless something was to be done and is not.

        Raises:
            KeyboardInterrupt: If Ctrl-C has stopped a run with `once` before it was done.
            TakenOverError: If another process has.
            LeaseHeldError: If another process runs this version of the service.
            PlanDriftError: If a plan was given that does not fit any more.
            ApprovalNeededError: If a cutover has to be approved first.
            EverstateError: If an output fails; the others have been stopped in an orderly way.
        """
        with stopping_on_signals(self._run.ending.stopping) as received:
            done = self._execute(once=once)
        if not done:
            raise_stopped(received)

    def start(self) -> None:
        """Run in the background; returns when the queries have been started.

        Raises:
            EverstateError: If the service cannot be started.
        """
        name = f"everstate-{self._run.service.name}"
        self._thread = threading.Thread(target=self._in_background, name=name, daemon=True)
        self._thread.start()
        while not self._started.wait(_LOOK_S):
            if not self._thread.is_alive():
                break
        if self._failure is not None:
            self._thread.join()
            raise self._failure

    @property
    def running(self) -> bool:
        """Whether it runs in the background, and has not ended by itself."""
        return self._thread is not None and self._thread.is_alive()

    def lines(self) -> list[str]:
        """How far its outputs are, as lines of text."""
        return [line.text() for line in self._run.done()]

    def stop(self) -> None:
        """Finish the micro-batches in progress and stop.

        Raises:
            EverstateError: If the service failed while it ran in the background.
        """
        self._run.ending.stopping.set()
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

    def _execute(self, *, once: bool) -> bool:
        """Run; says whether all was done that was to be."""
        run = self._run
        try:
            with run:
                return self._carry_out(run, once=once)
        except TakenOverError as error:
            if once:
                raise
            run.say(replaced(error, run.service.name, this_process().host))
            return True
        except KeyboardInterrupt:
            if not run.ending.stopping.is_set():
                raise
            for line in stopped((), {}, run.again(once=once)):
                run.say(line)
            return not once

    def _carry_out(self, run: SparkRun, *, once: bool) -> bool:
        site, stopping = run.site, run.ending.stopping
        prepare_home(site.home)
        planned = run.begin(self._announce)
        remember_log(site.home, site.log)
        crossings = run.crossings(planned)
        with run.carrying_out(planned, self._started, look=crossings.look) as rollout, contextlib.closing(crossings):
            crossings.begin(once=once)
            if once:
                rollout.drain()
                crossings.finish()
            else:
                rollout.follow()
            asked = stopping.is_set()
        if asked:
            for line in stopped(run.done(), _building(site), run.again(once=once)):
                run.say(line)
        return not (once and asked)


def _building(site: Site) -> dict[str, int]:
    """By output, the generation that is not ready yet."""
    found = ((output, versions.building) for output, versions in site.registry.generations().items())
    return {output: generation.number for output, generation in found if generation is not None}
