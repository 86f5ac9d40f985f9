"""One output while it runs: its query, its sink, and how it ends."""

from __future__ import annotations

import contextlib
import logging
import pickle
import time
from typing import TYPE_CHECKING, Final

from everstate.engine.backoff import Backoff
from everstate.engine.checkpoint.inspection import orderly_end
from everstate.engine.checkpoint.relocation import relocate
from everstate.engine.jvm.reports import report_file
from everstate.engine.jvm.session import java_lives, java_process
from everstate.engine.query.failures import is_transient, root_cause
from everstate.engine.query.job import Job
from everstate.engine.query.query import QueryPlan, start_query
from everstate.engine.query.sink import Sink
from everstate.engine.query.watchdog import LOOK_S, Watchdog, task_signs, thread_lives, work_of
from everstate.errors import LogBusyError, LogUnavailableError, ResourceError, StalledError
from everstate.generations.deploy.outputs import kept_tables
from everstate.generations.generation import own_dead_letters, own_side, own_topic
from everstate.generations.state.past import past_of
from everstate.generations.state.removed import has_removals
from everstate.generations.state.topic_marks import require_ids
from everstate.log.abilities import HeldBack
from everstate.log.planning import Timing, suited
from everstate.log.timing import wall_clock
from everstate.schema.topic_names import dead_letter_topic
from everstate.topology.nodes import Kind
from everstate.topology.unit import built, silenced

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from everstate.errors import EverstateError
    from everstate.generations.deploy.executor import Tally
    from everstate.generations.deploy.outputs import PreparedOutput
    from everstate.generations.deploy.settings import Settings
    from everstate.generations.generation import Generation
    from everstate.generations.state.folder import OutputFolder
    from everstate.kernels.migration.convert import Migration
    from everstate.log.descriptions import Lease, Vector
    from everstate.log.protocol import Log
    from everstate.log.stops import Stops
    from everstate.topology.unit import Unit

logger = logging.getLogger(__name__)

_AGAIN: Final = "Run the service again; it picks up where it stopped."
#: A query that takes longer to its first batch has much to do, not processes to start.
_COMING_UP_S: Final = 20.0
_LOOK_AT_TOPICS_S: Final = 2.0


class SparkExecution:
    """Starts, watches and stops the query of one generation; see `Execution`.

    Args:
        spark: Gives the session.
        cores: Gives the number of tasks that run at once.
        output: What to run.
        folder: Where its state is.
        log: The log.
        lease: Under which it commits.
        settings: Operational settings.
        closed: The generation is being built: its results go to topics of its own, side effects do not happen.
        effects: Side effects happen all the same.
        end: Where it stops reading; None for never.
        migration: What its shards do to the state of an earlier version; None for nothing.
    """

    def __init__(  # noqa: PLR0913 - all that a query is started with, each by name
        self,
        spark: Callable[[], SparkSession],
        cores: Callable[[], int],
        output: PreparedOutput,
        folder: OutputFolder,
        log: Log,
        lease: Lease,
        settings: Settings,
        *,
        closed: bool = False,
        effects: bool = False,
        end: Vector | None = None,
        migration: Migration | None = None,
    ) -> None:
        self.output = output
        self._folder, self._log = folder, log
        self._spark, self._cores, self._settings = spark, cores, settings
        self._query: StreamingQuery | None = None
        self._once = False
        self._backoff = Backoff(settings.restarts)
        self._watchdog = Watchdog(settings.stall_timeout, lambda: work_of(java_process()))
        self._began = self._watched = self._looked = 0.0
        self._due: float | None = None
        self._done = 0
        generation = output.generation
        self._topics = _ids(generation, *output.unit.topics, *(() if closed else output.unit.written))
        self._held = HeldBack(log, output.unit.topics)
        self._position = _begins(output, log)
        unit = _while_built(output.unit, log, effects=effects) if closed else output.unit
        timing = Timing.of(unit)
        stops = log.order(unit.service, output.name, unit.topics) if closed and timing.matters else None
        job = _job(unit, generation, log, closed=closed, vectors=_repeated(stops, timing), migration=migration)
        self._plan = QueryPlan(
            job=job,
            topics=unit.topics,
            depth=unit.depth,
            checkpoint=folder.checkpoint,
            initial=generation.initial,
            max_records=settings.recalculation_records if closed else settings.max_records,
            order=(unit.service, output.name) if stops is not None else (),
            recorded=0 if stops is None else len(stops),
            timing=timing if timing.matters else None,
            live=not closed,
            end=end,
            tables=kept_tables(unit),
            checked_ms=wall_clock(),
            past=past_of(output, log, self._position, closed=closed),
            ids=_ids(generation, *unit.topics),
        )
        self._sink = Sink(
            job=job,
            log=log,
            lease=lease,
            checkpoint=folder.checkpoint,
            initial=generation.initial,
            kind="closed" if closed else "open",
            timing=timing,
            topics=self._topics,
        )

    @property
    def name(self) -> str:
        """The output's name."""
        return self.output.name

    @property
    def tally(self) -> Tally:
        """What it has done so far."""
        return self._sink.tally

    def start(self, *, once: bool) -> None:
        """Start the query.

        Raises:
            EverstateError: If Spark cannot.
        """
        self._folder.forget_stopped()
        self._once = once
        self._began = time.monotonic()
        relocate(self._folder.checkpoint)
        try:
            self._query = start_query(
                self._spark(), self._plan, self._sink, self._settings, tasks=self._cores(), once=once
            )
        except Exception as error:
            raise self._named(error) from error

    def active(self) -> bool:
        """Whether it runs, or is about to be started again.

        Raises:
            EverstateError: If it has failed, and trying again has not helped or cannot help.
        """
        if self._due is not None:
            if time.monotonic() >= self._due:
                self._start_again()
            return True
        if self._query is None:
            return False
        if self._sink.tally.batches > self._done:
            self._done = self._sink.tally.batches
            self._backoff.succeeded()
        running, failure = self._state(self._query)
        # A log that cannot be read for the moment says nothing of its topics.
        with contextlib.suppress(ResourceError, LogBusyError, LogUnavailableError):
            if running:
                self._look_at_topics()
            elif failure is not None:
                # Spark's words for a topic that is gone name neither it nor what to do, and trying again does not help.
                require_ids(self._topics, self._log)
        if running or (failure is None and self._once):
            return running
        # Nobody but this class stops a query: one that is to go on and has ended without a word is lost.
        self._retry(failure or StalledError(f"the query of output {self.name!r} ended on its own", hint=_AGAIN))
        return True

    def _retry(self, failure: BaseException) -> None:
        """Start it again in a while.

        Raises:
            EverstateError: If that cannot help, or has not helped so far.
        """
        alive = java_lives()
        named = self._named(failure, alive=alive)
        delay = self._backoff.failed() if alive and is_transient(failure) else None
        if delay is None:
            raise named from None
        logger.warning("Output %s will start again in %.0f s: %s", self.name, delay, named.message)
        self._due = time.monotonic() + delay

    def _start_again(self) -> None:
        self._due = None
        self._sink.failure = None
        try:
            if self._query is not None:
                self._query.stop()
            self.start(once=self._once)
        except Exception as error:  # noqa: BLE001 - whatever it is, it gets a name
            self._retry(error)

    def _require_life(self, query: StreamingQuery) -> None:
        """Look now and then whether it does something.

        Raises:
            StalledError: If it does nothing any more.
        """
        now = time.monotonic()
        if now < self._watched + LOOK_S:
            return
        self._watched = now
        if not thread_lives(query) and query.isActive:
            raise (
                self._sink.failure
                or query.exception()
                or StalledError(f"the query of output {self.name!r} has lost its thread in Spark", hint=_AGAIN)
            )
        status = query.status
        # On a cluster tasks work elsewhere: Spark knows which of them run and whether their machines are alive.
        tasks = () if self._settings.master is None else task_signs(self._spark().sparkContext)
        sign = (self._sink.tally.batches, status["message"], status["isTriggerActive"], *tasks)
        still = self._watchdog.stalled(sign, in_batch=bool(status["isTriggerActive"]))
        if still is not None:
            raise StalledError(
                f"the query of output {self.name!r} has done nothing for {still:.0f} s: {status['message']}",
                hint="Run the service again. If a function of yours waits that long, raise EVERSTATE_STALL_TIMEOUT.",
            )

    def _named(self, error: BaseException, *, alive: bool = True) -> EverstateError:
        report = report_file(self._folder.home)
        return root_cause(error, self.name, java_lives=alive, report=report if report.exists() else None)

    def _state(self, query: StreamingQuery) -> tuple[bool, BaseException | None]:
        """Whether the query runs and, if not, what has ended it."""
        try:
            if query.isActive:
                self._require_life(query)
                return True, None
            return False, self._sink.failure or query.exception()
        except Exception as error:  # noqa: BLE001 - whatever it is, it gets a name
            return False, self._sink.failure or error

    def _look_at_topics(self) -> None:
        """Now and then: a topic that was created again may never have a batch that shows it."""
        if time.monotonic() > self._looked + _LOOK_AT_TOPICS_S:
            self._looked = time.monotonic()
            require_ids(self._topics, self._log)
            self._held.look(self._looked)

    def coming_up(self) -> bool:
        """Whether it has been started, and has neither done its first batch nor found that there is nothing to do.

        Raises:
            EverstateError: If it has failed.
        """
        query = self._query
        if query is None or not self.active() or time.monotonic() > self._began + _COMING_UP_S:
            return False
        try:
            return not self._sink.tally.batches and not query.status["message"].startswith("Waiting")
        except Exception as error:
            raise self._named(error) from error

    def announce_stop(self) -> None:
        """A batch that begins from now on need not be waited for."""
        self._sink.stopping.set()

    def stop(self, deadline: float) -> None:
        """Let the batch in progress finish, then stop the query and note that it ended in an orderly way.

        Raises:
            EverstateError: If Spark has failed meanwhile.
        """
        query, self._due = self._query, None
        if query is None:
            return
        try:
            while query.isActive and self._in_batch(query) and time.monotonic() < deadline:
                time.sleep(0.02)
            query.stop()
        except Exception as error:
            raise self._named(error) from error
        self._query = None
        if self._folder.checkpoint.exists():
            self._folder.write_stopped(orderly_end(self._folder.checkpoint))

    @property
    def position(self) -> Vector:
        """Where it had got to before it was started."""
        return self._position

    def state_bytes(self) -> int:
        """The size of the state as it is on disk: what Spark says of RocksDB is nothing until that writes a table."""
        return self._folder.size()

    def _in_batch(self, query: StreamingQuery) -> bool:
        """Whether a batch is on its way that had begun before the stop was announced."""
        if self._sink.began_after_stop:
            return False
        return bool(query.status["isTriggerActive"])


def _ids(generation: Generation, *topics: str) -> dict[str, str]:
    """The ids of these topics, as far as the generation has noted them."""
    return {topic: known for topic, known in generation.topics.items() if topic in topics}


def _begins(output: PreparedOutput, log: Log) -> Vector:
    """Where in its sources a generation goes on."""
    last = log.last_commit(output.unit.service, output.name, output.generation.name)
    return last.end if last is not None else output.generation.initial


def _repeated(stops: Stops | None, timing: Timing) -> Stops | None:
    """The recorded micro-batches whose order counts; None for none."""
    return suited(stops, timing) if stops is not None and timing.ordered else None


def _while_built(unit: Unit, log: Log, *, effects: bool) -> Unit:
    """A unit as it runs for a generation that is being built."""
    return built(unit if effects else silenced(unit), caused=has_removals(log, unit))


def _job(
    unit: Unit,
    generation: Generation,
    log: Log,
    *,
    closed: bool,
    vectors: Stops | None,
    migration: Migration | None,
) -> Job:
    output = unit.output
    target, letters = output.topic, dead_letter_topic(output.topic)
    if closed:
        # What a stream has published stands, so only its state is built.
        target = own_topic(unit.service, output.topic, generation) if output.kind is Kind.TABLE else ""
        letters = own_dead_letters(unit.service, output.topic, generation)
    return Job.of(
        unit,
        url=log.url,
        opening=pickle.dumps(log),
        target=target,
        dead_letters=letters,
        sides=tuple(
            (
                own_side(unit.service, output.topic, generation, side) if closed else side.topic,
                log.describe(side.topic).config.partitions,
            )
            for side in unit.sides
        ),
        partitions=log.describe(output.topic).config.partitions,
        generation=generation.name,
        policy=generation.policy,
        shards=generation.shards,
        vectors=vectors,
        migration=migration,
    )
