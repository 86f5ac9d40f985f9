"""A generation while it is built: a closed query, round after round, until it has caught up."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from everstate.engine.checkpoint import numbers
from everstate.engine.execution import Execution
from everstate.log import vectors
from everstate.log.crash import crash_point
from everstate.topology.nodes import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from everstate.engine.migration import Preparation
    from everstate.engine.outputs import PreparedOutput
    from everstate.engine.settings import Settings
    from everstate.log.protocol import Lease, Log, Vector

#: Between two looks at a round.
_LOOK_S = 0.1
#: A generation that has caught up looks for more no more often than this.
_REST_S = 2.0


class Build:
    """Builds one generation.

    Each round processes what there is when it begins, then stops: between rounds Spark and the log agree on the last
    batch, and the generation can be compared with its topic.

    Args:
        spark: Gives the session.
        output: The generation.
        log: The log.
        lease: The lease of building.
        settings: Operational settings.
        limit: A stream must not go further than the active generation: gives that vector; None for no limit.
        effects: Side effects happen all the same.
        preparation: Of a generation that begins with converted state; None for one that begins with none.
    """

    def __init__(
        self,
        spark: Callable[[], SparkSession],
        output: PreparedOutput,
        log: Log,
        lease: Lease,
        settings: Settings,
        *,
        limit: Callable[[], Vector] | None = None,
        effects: bool = False,
        preparation: Preparation | None = None,
    ) -> None:
        self.output = output
        self.read = 0
        self._spark = spark
        self._log = log
        self._lease = lease
        self._settings = settings
        self._limit = limit
        self._effects = effects
        self._preparation = preparation
        self._round: Execution | None = None
        self._began = time.monotonic()
        self._rested = 0.0
        self._first = self.position
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
        ends = self._log.end_offsets(self.output.unit.topics)
        if self._limit is None or self.output.unit.output.kind is Kind.TABLE:
            return ends
        # A topic that the active generation does not read begins with what comes after the cutover.
        return {**ends, **vectors.capped(ends, self._limit())}

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
        if self.lag or not self._consistent():
            self._begin_round()
        else:
            self.caught_up = True

    def finish(self) -> None:
        """Catch up to the end, and wait for it.

        Raises:
            EverstateError: If that fails.
        """
        self._await_round()
        while self.lag or not self._consistent():
            self._begin_round()
            self._await_round()

    def stop(self, deadline: float) -> None:
        """Stop the round after its batch."""
        if self._round is not None:
            self._round.announce_stop()
            self._round.stop(deadline)
            self._round = None

    def _begin_round(self) -> None:
        self._round = Execution(
            self._spark,
            self.output,
            self._log,
            self._lease,
            self._settings,
            closed=True,
            effects=self._effects,
            end=self.target,
            migration=None if self._preparation is None else self._preparation.result(),
        )
        self._round.start(once=True)

    def _await_round(self) -> None:
        while self._round is not None and self._round.active():
            time.sleep(_LOOK_S)
        if self._round is not None:
            self._end_round()

    def _end_round(self) -> None:
        if self._round is not None:
            self._round.stop(time.monotonic())
            self._round = None
        crash_point("build.round_ended")
        self.caught_up = self.lag <= self._settings.recalculation_records

    def _consistent(self) -> bool:
        """Whether Spark has noted every batch that the log has: the next one is then a new one."""
        last = self._log.last_commit(self.output.unit.service, self.name, self.output.generation.name)
        done = numbers(self.output.folder.checkpoint / "commits")
        return last is None or (bool(done) and done[-1] >= last.batch_id)
