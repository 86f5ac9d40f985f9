"""A generation while it is built: a closed query, round after round, until it has caught up."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from everstate.errors import StalledError
from everstate.log import vectors
from everstate.log.crash import crash_point
from everstate.log.planning import Timing
from everstate.plan.actions import FEW
from everstate.topology.nodes import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from everstate.generations.deploy.executor import Execution
    from everstate.generations.deploy.migration import Preparation
    from everstate.generations.deploy.outputs import PreparedOutput
    from everstate.generations.deploy.site import Site
    from everstate.log.descriptions import Vector

#: A generation that has caught up looks for more no more often than this.
_REST_S = 2.0
#: What is measured for less time says nothing.
_LONG_S = 1.0
#: So many rounds in a row that change nothing, although there is something to do, and a build is given up.
_IDLE_ROUNDS = 5


class Build:
    """Builds one generation.

    Each round processes what there is when it begins, then stops: between rounds the executor and the log agree on the
    last batch, and the generation can be compared with its topic.

    Args:
        output: The generation.
        site: Where it is built.
        limit: A stream must not go further than the active generation: gives that vector; None for no limit.
        effects: Side effects happen all the same.
        preparation: Of a generation that begins with converted state; None for one that begins with none.
    """

    def __init__(
        self,
        output: PreparedOutput,
        site: Site,
        *,
        limit: Callable[[], Vector] | None = None,
        effects: bool = False,
        preparation: Preparation | None = None,
    ) -> None:
        self.output = output
        self.read = 0
        self._site = site
        self._log = site.log
        self._limit = limit
        self._effects = effects
        self._preparation = preparation
        self._round: Execution | None = None
        self._began = time.monotonic()
        self._begun = False
        self._rested = 0.0
        self._first = self.position
        self._seen: object = None
        self._idle = 0
        self.caught_up = False

    @property
    def name(self) -> str:
        """The output's name."""
        return self.output.name

    @property
    def position(self) -> Vector:
        """Where it is in its sources."""
        last = self._log.last_commit(self.output.unit.service, self.name, self.output.generation.name)
        return last.end if last is not None else self.output.generation.initial

    @property
    def target(self) -> Vector:
        """Where it should be."""
        unit = self.output.unit
        ends, timing = self._log.end_offsets(unit.topics), Timing.of(unit)
        if self._limit is None or unit.output.kind is Kind.TABLE:
            last = self._log.last_commit(unit.service, self.name)
            # Else what has expired in the table would be published again, for a moment.
            return ends if last is None else {**ends, **timing.within(last.end)}
        # A topic that the active generation does not read begins with what comes after the cutover.
        limit = self._limit()
        return {**ends, **vectors.capped(ends, limit), **timing.within(limit)}

    @property
    def lag(self) -> int:
        """Records that it has before it."""
        return vectors.lag(self.position, self.target)

    @property
    def done(self) -> int:
        """Records that it has read since this process builds it."""
        return vectors.lag(self._first, self.position)

    @property
    def rate(self) -> float:
        """Records a second."""
        return self.done / max(time.monotonic() - self._began, 1e-3)

    @property
    def measured(self) -> float | None:
        """Records a second, if enough were read for long enough to say something; else None."""
        return self.rate if self.done >= FEW and time.monotonic() - self._began >= _LONG_S else None

    @property
    def migrates(self) -> bool:
        """Whether it begins with the state of another generation: its rate says nothing then."""
        return self._preparation is not None

    @property
    def running(self) -> bool:
        """Whether a round is under way."""
        return self._round is not None

    def step(self, *, room: bool) -> None:
        """Look after the round, and begin another if there is something to do and room for its query.

        Raises:
            MigrationError: If the state that it begins with cannot be converted.
            StalledError: If rounds change nothing, although there is something to do.
            EverstateError: If the round has failed; nothing of the generation has been published.
        """
        if self._round is not None:
            if self._round.active():
                return
            self._end_round()
        if self.caught_up and time.monotonic() < self._rested + _REST_S:
            return
        if not room or (self._preparation is not None and not self._preparation.ready()):
            return
        self._rested = time.monotonic()
        if self._goes_on():
            self._begin_round()
        else:
            self.caught_up = True

    def finish(self) -> None:
        """Catch up to the end, and wait for it.

        Raises:
            EverstateError: If that fails.
        """
        self._await_round()
        while self._goes_on():
            self._begin_round()
            self._await_round()
        if self._is_late():
            # Once: the active generation may be live in another process, and its clock goes on with every second.
            self._begin_round()
            self._await_round()

    def stop(self, deadline: float) -> None:
        """Stop the round after its batch."""
        if self._round is not None:
            self._round.announce_stop()
            self._round.stop(deadline)
            self._round = None

    def _begin_round(self) -> None:
        self._round = self._site.executor.execution(
            self.output,
            self._site.leases.building(),
            closed=True,
            effects=self._effects,
            end=self.target,
            migration=None if self._preparation is None else self._preparation.result(),
        )
        first, self._begun = not self._begun, True
        self._round.start(once=True)
        if first:
            self._began = time.monotonic()  # Spark has started by now, which says nothing of how fast records are read

    def _await_round(self) -> None:
        while self._round is not None and self._round.active():
            time.sleep(self._site.executor.pause)
        if self._round is not None:
            self._end_round()

    def _end_round(self) -> None:
        if self._round is not None:
            self._round.stop(time.monotonic())
            self._round = None
        crash_point("build.round_ended")
        self.caught_up = self.lag <= self._site.settings.recalculation_records
        self._notice_idling()

    def _notice_idling(self) -> None:
        """A round that changes nothing would be repeated for ever: whatever the cause, that has an end.

        Raises:
            StalledError: If it was the last one of too many.
        """
        seen = (self.position, self._site.executor.last_batch(self.name, self.output.generation))
        self._idle = self._idle + 1 if seen == self._seen and self._goes_on() else 0
        self._seen = seen
        if self._idle >= _IDLE_ROUNDS:
            raise StalledError(
                f"the recalculation of output {self.name!r} makes no progress: {self.lag} records are left to read "
                f"after {self._idle} rounds that read none",
                hint=f"Run the service again; if that does not help, start over with --recalculate {self.name}.",
            )

    def _goes_on(self) -> bool:
        """Whether there is something to do: records to read, a batch to repeat, state to convert."""
        converts = self._preparation is not None and self._preparation.due()
        return bool(self.lag) or converts or not self._consistent()

    def _is_late(self) -> bool:
        """Whether the active generation has gone by times that this one has not: a tick, or a quiet partition."""
        return not vectors.reached(self.position, Timing.of(self.output.unit).needed(self.target))

    def _consistent(self) -> bool:
        """Whether the executor has noted every batch that the log has: the next one is then a new one.

        A generation that took over before there was anything to read has a cutover in the log, but no batch.
        """
        last = self._log.last_commit(self.output.unit.service, self.name, self.output.generation.name)
        if last is None or last.batch_id < 0:
            return True
        done = self._site.executor.last_batch(self.name, self.output.generation)
        return done is not None and done >= last.batch_id
