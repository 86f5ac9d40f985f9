"""The course of a run: host what publishes, build what has changed, cut over, go on."""

from __future__ import annotations

import contextlib
import logging
import time
from functools import partial
from typing import TYPE_CHECKING, Final

from everstate.errors import (
    ApprovalNeededError,
    EverstateError,
    FencedError,
    LogBusyError,
    ResourceError,
)
from everstate.generations.deploy.approval import require_approval
from everstate.plan.guards import Policy

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Collection, Iterable, Sequence

    from everstate.generations.deploy.change import Changes, OutputChange
    from everstate.generations.deploy.display import Display
    from everstate.generations.deploy.options import Wishes
    from everstate.generations.deploy.site import Site

logger = logging.getLogger(__name__)

#: Samples are looked after so long after the start, then ever less often.
_TEND_S: Final = 5.0
_TEND_MOST_S: Final = 3600.0


class Rollout:
    """Says which output takes its steps when, until all are done or the service is stopped.

    Args:
        changes: What happens to each output.
        site: Where it takes place.
        wishes: What was asked for with this run.
        display: Shows it.
        look: Called again and again while it runs: watches what it could run out of.
        stopping: Set when the service has to stop.
        started: Set when its queries have been started.
    """

    def __init__(
        self,
        changes: Changes,
        site: Site,
        wishes: Wishes,
        display: Display,
        look: Callable[[], None],
        stopping: threading.Event,
        started: threading.Event,
    ) -> None:
        self.changes = changes
        self._leases = site.leases
        self._settings = site.settings
        self._policy = Policy(site.settings.approval)
        self._executor = site.executor
        self._pause = site.executor.pause
        self._wishes = wishes
        self._display = display
        self._look_around = look
        self._stopping = stopping
        self._started = started
        self._tend_after = _TEND_S
        self._tend_at = time.monotonic() + _TEND_S

    def follow(self) -> None:
        """Run until stopped.

        Raises:
            EverstateError: If an output fails, or the new version cannot take over and nothing else runs here.
        """
        levels = self._levels()
        if self._leases.publishes():
            self._host()
        elif not levels:
            self._take_over(())
        self._started.set()
        held_up: EverstateError | None = None
        try:
            for level in levels:
                if not self._replace(level):
                    return
        except FencedError:
            raise
        except EverstateError as error:
            given_up = isinstance(error, ApprovalNeededError) and self._policy is Policy.FAIL
            if given_up or not self.changes.executions:
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
        self._started.set()
        levels = {level[0].level: level for level in self._levels()}
        if not self._leases.publishes() and not levels:
            self._leases.take_publishing(take_over=True)
        hosts = self._leases.publishes()
        if hosts:
            self._get_ready(once=True)
        for level in range(1 + max((change.level for change in self.changes.outputs), default=-1)):
            if level in levels and not self._replace(levels[level], once=True):
                return
            if not hosts and self._leases.publishes():
                self._get_ready(once=True)
                hosts = True
            due = [change for change in self.changes.outputs if change.level <= level and change.waiting is not None]
            self._drain_together(due)

    def prepare(self, outputs: Collection[str]) -> bool:
        """Build what has changed and leave it ready for a cutover; nothing is published.

        Args:
            outputs: Only of these.

        Returns:
            False if it was stopped before.

        Raises:
            EverstateError: If a generation cannot be built.
        """
        for level in self._levels():
            built = [change for change in level if change.output in outputs and change.builds]
            if not self._build(built):
                return False
            for change in built:
                change.finish()
        return True

    def replace(self) -> bool:
        """Make the planned generations the active ones, and end without running them.

        Returns:
            False if it was stopped before.

        Raises:
            EverstateError: If a generation cannot be built, or a cutover has to be approved.
        """
        return all(self._replace(level, once=True) for level in self._levels())

    def wind_down(self, *, suppress: bool) -> None:
        """Stop everything, in order."""
        deadline = time.monotonic() + self._settings.stop_timeout
        running = list(self.changes.executions.values())
        if running and self._stopping.is_set() and not suppress:
            self._display.tell("Stopping as soon as the micro-batches under way are committed.")
        for execution in running:
            execution.announce_stop()
        stops: list[Callable[[], None]] = [self._stop_builds]
        stops += [partial(execution.stop, deadline) for execution in running]
        for stop in stops:
            try:
                stop()
            except EverstateError:
                if not suppress:
                    raise

    def _levels(self) -> list[list[OutputChange]]:
        """Changes that can be built at the same time; outputs that others read come first, retired ones last."""
        found: dict[int, list[OutputChange]] = {}
        for change in self.changes.outputs:
            if change.replaces:
                found.setdefault(change.level, []).append(change)
        return [found[level] for level in sorted(found)]

    def _replace(self, level: Sequence[OutputChange], *, once: bool = False) -> bool:
        """Build the generations of one level, and make them the active ones; False if the service has to stop."""
        if not self._build(level):
            return False
        self._guard(level)
        if not self._leases.publishes():
            self._take_over(level, host=not once)
        for change in level:
            if told := change.cut_over():
                self._display.tell(told)
            self._display.update()
        for change in level:
            change.succeed()
        if not once:
            self._start(level)
        return True

    def _build(self, level: Sequence[OutputChange]) -> bool:
        """Until the generations of these have caught up, no more at once than there are cores; False if stopped."""
        for change in level:
            change.begin()
        while True:
            caught_up = [change.step(room=self._has_room(change, level)) for change in level]
            if all(caught_up):
                return True
            if not self._look():
                return False

    def _has_room(self, change: OutputChange, level: Sequence[OutputChange]) -> bool:
        others = [other.build for other in level if other is not change and other.build is not None]
        return sum(build.running for build in others) < self._executor.cores()

    def _guard(self, level: Sequence[OutputChange]) -> None:
        """Stop before a cutover that has to be approved; those who deploy by machine may want it given up, too."""
        try:
            require_approval([found for change in level for found in change.concerns()], self._policy, self._wishes)
        except ApprovalNeededError as error:
            if self._policy is Policy.WAIT and self._display.approves(error.message):
                return
            if self._policy is Policy.FAIL:
                self._stop_builds()
                for change in level:
                    change.give_up()
            raise

    def _take_over(self, level: Sequence[OutputChange], *, host: bool = True) -> None:
        """Replace the process that publishes, and go on with all that it did but for what is replaced."""
        self._leases.take_publishing(take_over=True)
        if host:
            self._host(but=level)

    def _host(self, but: Sequence[OutputChange] = ()) -> None:
        """Start all that publishes now."""
        self._get_ready(once=False, but=but)
        self._start(self.changes.outputs)

    def _get_ready(self, *, once: bool, but: Sequence[OutputChange] = ()) -> None:
        """Get all that publishes now ready to be started."""
        for change in self.changes.outputs:
            if change not in but:
                change.host(once=once)
        if not any(change.replaces for change in self.changes.outputs):
            self._leases.give_building_back()  # nothing is built: whoever previews another version may do so

    def _start(self, changes: Iterable[OutputChange]) -> None:
        for change in changes:
            if change.waiting is not None:
                self._await_room()
                if self._stopping.is_set():
                    return
                change.start(once=False)

    def _await_room(self) -> None:
        """Until fewer queries are coming up than there are cores.

        Every query starts processes of its own, and Spark gives up on those that take longer than ten seconds.
        """
        while sum(e.coming_up() for e in self.changes.executions.values()) >= self._executor.cores():
            if self._stopping.wait(self._pause):
                return

    def _drain_together(self, changes: Sequence[OutputChange]) -> None:
        """Outputs of one level; no more at once than there are cores."""
        cores = self._executor.cores()
        for place in range(0, len(changes), cores):
            group = changes[place : place + cores]
            for change in group:
                if not self._stopping.is_set():
                    change.start(once=True)
            running = [change.execution for change in group if change.execution is not None]
            while sum(execution.active() for execution in running):
                if not self._look(executions=False):
                    return
            self.wind_down(suppress=False)
            self._display.finished(running)
            for change in group:
                change.execution = None

    def _watch(self) -> None:
        """Until the service has to stop."""
        while self._look():
            self._tend()

    def _tend(self) -> None:
        """Now and then: samples of what runs, as its topics grow; a service may have begun with empty ones."""
        now = time.monotonic()
        if now >= self._tend_at:
            self._tend_after = min(2 * self._tend_after, _TEND_MOST_S)
            self._tend_at = now + self._tend_after
            for change in self.changes.outputs:
                change.tend()

    def _look(self, *, executions: bool = True) -> bool:
        """A moment later: whether to go on.

        Raises:
            EverstateError: If an output has failed.
        """
        if executions:
            for change in self.changes.outputs:
                self._require_active(change)
        self._look_around()
        # What is only shown may wait until the log can be read again; whoever needs it says so.
        with contextlib.suppress(ResourceError, LogBusyError):
            self._display.update()
        return not self._stopping.wait(self._pause)

    def _require_active(self, change: OutputChange) -> None:
        try:
            if change.execution is not None:
                change.execution.active()
        except FencedError:
            raise
        except EverstateError as error:
            if change.build is None:
                raise
            # It is about to be replaced; what replaces it must not depend on it.
            logger.warning("Output %s is silent until its new generation is ready: %s", change.output, error)
            change.execution = None

    def _stop_builds(self) -> None:
        for change in self.changes.outputs:
            change.stop_build()
