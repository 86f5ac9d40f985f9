"""The course of a run: host what publishes, build what has changed, cut over, go on."""

from __future__ import annotations

import contextlib
import logging
import time
from functools import partial
from typing import TYPE_CHECKING

from everstate.errors import (
    ApprovalNeededError,
    EverstateError,
    FencedError,
    LogBusyError,
    ResourceError,
)
from everstate.plan.guards import Policy

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

    from everstate.generations.deploy.deployment import Deployment, Roster
    from everstate.generations.deploy.display import Display
    from everstate.generations.deploy.executor import Execution
    from everstate.generations.deploy.site import Site
    from everstate.plan.actions import Action

logger = logging.getLogger(__name__)


class Rollout:
    """Runs a deployment to its end, or until it is stopped.

    Args:
        deployment: What to do.
        roster: What runs.
        site: Where it takes place.
        display: Shows it.
        look: Called again and again while it runs: watches what it could run out of.
        stopping: Set when the service has to stop.
        started: Set when its queries have been started.
    """

    def __init__(
        self,
        deployment: Deployment,
        roster: Roster,
        site: Site,
        display: Display,
        look: Callable[[], None],
        stopping: threading.Event,
        started: threading.Event,
    ) -> None:
        self._deployment = deployment
        self._roster = roster
        self._leases = site.leases
        self._settings = site.settings
        self._pause = site.executor.pause
        self._display = display
        self._look_around = look
        self._stopping = stopping
        self._started = started

    def follow(self) -> None:
        """Run until stopped.

        Raises:
            EverstateError: If an output fails, or the new version cannot take over and nothing else runs here.
        """
        deployment = self._deployment
        changes = deployment.changes()
        if self._leases.publishes():
            self._start(deployment.host(once=False), once=False)
        elif not changes:
            self._take_over(())
        self._started.set()
        held_up: EverstateError | None = None
        try:
            for actions in deployment.in_levels(changes):
                if not self._replace(actions):
                    return
        except FencedError:
            raise
        except EverstateError as error:
            given_up = isinstance(error, ApprovalNeededError) and self._settings.approval == Policy.FAIL
            if given_up or not self._roster.executions:
                raise
            # What is on the topic stays right: the active version goes on until someone has looked.
            held_up = error
            logger.error("The new version is not active. %s", error)  # noqa: TRY400 - for people, without a traceback
            self._stop_builds()
        # Nothing is built any more: whoever approves, previews another version or gives this one up may do so.
        self._leases.give_building_back()
        self._watch()
        if held_up is not None:
            raise held_up

    def drain(self) -> None:
        """Bring the service to its newest version, process what is there, and end.

        Raises:
            EverstateError: If an output fails, or the new version cannot take over.
        """
        deployment = self._deployment
        self._started.set()
        changes = {deployment.level(actions[0]): actions for actions in deployment.in_levels(deployment.changes())}
        if not self._leases.publishes() and not changes:
            self._leases.take_publishing(take_over=True)
        waiting = deployment.host(once=True) if self._leases.publishes() else None
        for level in range(1 + max([deployment.depth, *changes])):
            if level in changes and not self._replace(changes[level], once=True):
                return
            if waiting is None and self._leases.publishes():
                waiting = deployment.host(once=True)
            due = [execution for execution in waiting or () if execution.output.level <= level]
            waiting = None if waiting is None else [execution for execution in waiting if execution not in due]
            self._drain_together([*due, *self._roster.executions.values()])
            self._roster.executions.clear()

    def prepare(self, actions: Sequence[Action]) -> bool:
        """Build what has changed and leave it ready for a cutover; nothing is published.

        Returns:
            False if it was stopped before.

        Raises:
            EverstateError: If a generation cannot be built.
        """
        for level in self._deployment.in_levels(actions):
            self._deployment.begin_builds(level)
            while not self._deployment.step():
                if not self._look():
                    return False
            self._deployment.finish_builds()
            self._roster.builds.clear()
        return True

    def replace(self) -> bool:
        """Make the planned generations the active ones, and end without running them.

        Returns:
            False if it was stopped before.

        Raises:
            EverstateError: If a generation cannot be built, or a cutover has to be approved.
        """
        levels = self._deployment.in_levels(self._deployment.changes())
        done = all(self._replace(actions, once=True) for actions in levels)
        self._roster.executions.clear()
        return done

    def wind_down(self, *, suppress: bool) -> None:
        """Stop everything, in order."""
        deadline = time.monotonic() + self._settings.stop_timeout
        running = list(self._roster.executions.values())
        for execution in running:
            execution.announce_stop()
        steps: list[Callable[[], None]] = [self._stop_builds]
        steps += [partial(execution.stop, deadline) for execution in running]
        for stop in steps:
            try:
                stop()
            except EverstateError:
                if not suppress:
                    raise

    def _replace(self, actions: Sequence[Action], *, once: bool = False) -> bool:
        """Build the generations of one level, and make them the active ones; False if the service has to stop."""
        deployment = self._deployment
        deployment.begin_builds(actions)
        while not deployment.step():
            if not self._look():
                return False
        self._guard(actions)
        if not self._leases.publishes():
            self._take_over(actions, host=not once)
        deployment.cut_over(actions, self._display)
        successors = [deployment.successor(action) for action in actions]
        ready = [execution for execution in successors if execution is not None]
        if once:
            self._roster.executions.update({execution.name: execution for execution in ready})
        else:
            self._start(ready, once=False)
        return True

    def _guard(self, actions: Sequence[Action]) -> None:
        """Stop before a cutover that has to be approved; those who deploy by machine may want it given up, too."""
        try:
            self._deployment.guard(actions)
        except ApprovalNeededError as error:
            if self._settings.approval == Policy.WAIT and self._display.approves(error.message):
                return
            if self._settings.approval == Policy.FAIL:
                self._stop_builds()
                self._deployment.give_up(actions)
            raise

    def _take_over(self, actions: Sequence[Action], *, host: bool = True) -> None:
        """Replace the process that publishes, and go on with all that it did but for what is replaced."""
        self._leases.take_publishing(take_over=True)
        if host:
            replaced = {action.output for action in actions}
            found = self._deployment.host(once=False)
            self._start([execution for execution in found if execution.name not in replaced], once=False)

    def _start(self, executions: Sequence[Execution], *, once: bool) -> None:
        for execution in executions:
            self._await_room()
            if self._stopping.is_set():
                return
            execution.start(once=once)
            self._roster.executions[execution.name] = execution

    def _await_room(self) -> None:
        """Until fewer queries are coming up than there are cores.

        Every query starts processes of its own, and Spark gives up on those that take longer than ten seconds.
        """
        while sum(e.coming_up() for e in self._roster.executions.values()) >= self._settings.used_cores:
            if self._stopping.wait(self._pause):
                return

    def _drain_together(self, executions: Sequence[Execution]) -> None:
        """Outputs of one level; no more at once than there are cores."""
        cores = self._settings.used_cores
        for place in range(0, len(executions), cores):
            group = executions[place : place + cores]
            self._roster.executions = {execution.name: execution for execution in group}
            for execution in group:
                if not self._stopping.is_set():
                    execution.start(once=True)
            while sum(execution.active() for execution in group):
                if not self._look(executions=False):
                    return
            self.wind_down(suppress=False)
            self._display.finished(group)

    def _watch(self) -> None:
        """Until the service has to stop."""
        while self._look():
            self._deployment.tend()

    def _look(self, *, executions: bool = True) -> bool:
        """A moment later: whether to go on.

        Raises:
            EverstateError: If an output has failed.
        """
        if executions:
            for execution in list(self._roster.executions.values()):
                self._require_active(execution)
        self._look_around()
        # What is only shown may wait until the log can be read again; whoever needs it says so.
        with contextlib.suppress(ResourceError, LogBusyError):
            self._display.update()
        return not self._stopping.wait(self._pause)

    def _require_active(self, execution: Execution) -> None:
        try:
            execution.active()
        except FencedError:
            raise
        except EverstateError as error:
            if execution.name not in self._roster.builds:
                raise
            # It is about to be replaced; what replaces it must not depend on it.
            logger.warning("Output %s is silent until its new generation is ready: %s", execution.name, error)
            del self._roster.executions[execution.name]

    def _stop_builds(self) -> None:
        for build in self._roster.builds.values():
            build.stop(time.monotonic())
        self._roster.builds.clear()
