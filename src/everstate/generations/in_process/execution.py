"""The micro-batches of one generation, one after the other, in the caller's thread."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from everstate.generations.deploy.executor import Tally
from everstate.generations.generation import own_dead_letters, own_side, own_topic
from everstate.generations.in_process.kept import ShardState
from everstate.generations.in_process.recording import Recording
from everstate.generations.in_process.times import Times
from everstate.generations.state.past import past_of
from everstate.generations.state.recorded import order_of
from everstate.generations.state.removed import has_removals, owner_read
from everstate.generations.state.topic_marks import require_ids
from everstate.kernels.output import addressed, dead_letter_records, side_records
from everstate.kernels.pages.page_store import MemoryPages
from everstate.kernels.parcel import COUNTS, DEAD_LETTERS, MARKS, OUT, RECORDS, SIDES, Parcel
from everstate.kernels.pipeline import ShardStages, ingested, run_stages, stream_times, told
from everstate.log import vectors
from everstate.log.archive.reading import read_split, splits
from everstate.log.crash import crash_point
from everstate.log.descriptions import Batch, Commit
from everstate.log.planning import Planner, Timing
from everstate.log.records import empty
from everstate.log.stops import Stops
from everstate.log.timing import wall_clock
from everstate.schema.topic_names import dead_letter_topic
from everstate.topology.nodes import Kind
from everstate.topology.unit import built, silenced

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from everstate.generations.deploy.outputs import PreparedOutput
    from everstate.generations.deploy.settings import Settings
    from everstate.generations.in_process.kept import Kept
    from everstate.kernels.migration.convert import Migration
    from everstate.kernels.pipeline import Piece
    from everstate.kernels.stage import Witness
    from everstate.log.archive.reading import Past
    from everstate.log.descriptions import Lease, Staged, Vector
    from everstate.log.protocol import Log
    from everstate.log.timing import Clock
    from everstate.topology.unit import Unit


@dataclass(frozen=True, kw_only=True)
class Course:
    """How a generation is run.

    Attributes:
        lease: Under which it commits.
        closed: It is being built: its results go to topics of its own.
        effects: Side effects happen although it is being built.
        end: Where it stops reading; None for never.
        migration: What its shards do to the state of an earlier version; None for nothing.
        ordered: The order of arrival is noted although the output does not depend on it: a later version may.
        recorded: Its first micro-batches are taken down as its sample.
        times: Where stream time was moved by hand.
        clock: The wall clock.
    """

    lease: Lease
    closed: bool = False
    effects: bool = False
    end: Vector | None = None
    migration: Migration | None = None
    ordered: bool = False
    recorded: bool = False
    times: Times = field(default_factory=Times)
    clock: Clock = wall_clock


class InProcessExecution:
    """Runs one generation; see `Execution`. Whenever it is asked whether it is active, it processes what there is.

    Args:
        output: What to run.
        kept: What is kept of it.
        log: The log.
        settings: Operational settings.
        course: How.
    """

    def __init__(self, output: PreparedOutput, kept: Kept, log: Log, settings: Settings, course: Course) -> None:
        self.output = output
        self.tally = Tally()
        self._kept = kept
        self._log = log
        self._settings = settings
        self._course = course
        self._target: tuple[Vector, int] | None = None
        self._runs = self._once = False
        generation, unit = output.generation, output.unit
        last = log.last_commit(unit.service, output.name, generation.name)
        self.position = last.end if last is not None else generation.initial
        self._unit: Unit = silenced(unit) if course.closed and not course.effects else unit
        self._unit = built(self._unit, caused=has_removals(log, unit)) if course.closed else self._unit
        self._timing = Timing.of(unit)
        self._planner = Planner(
            self._timing,
            log.order(unit.service, output.name, unit.topics) if course.closed else Stops.of([]),
            limit=course.end,
            times=self._times_at,
            live=not course.closed,
            tick_ms=1 if course.ordered else None,
            noting=course.ordered,
            initial=generation.initial,
        )
        self._order = order_of(self._planner.stops, unit.topics) if self._timing.ordered else None
        self._past: Past = past_of(output, log, self.position, closed=course.closed)
        written = () if course.closed else unit.written
        self._ids = {topic: known for topic, known in generation.topics.items() if topic in (*unit.topics, *written)}
        self._recording = self._recorded() if course.recorded else None

    @property
    def name(self) -> str:
        """The output's name."""
        return self.output.name

    def start(self, *, once: bool) -> None:
        """Begin; with `once`, for what is there now."""
        self._runs, self._once = True, once
        self._target = (self._available(), self._course.clock()) if once else None

    def active(self) -> bool:
        """Process what is there; says whether more may come."""
        if self._runs and not self._step() and self._once:
            self._runs = False
        return self._runs

    def coming_up(self) -> bool:
        """It is there at once."""
        return False

    def announce_stop(self) -> None:
        """Nothing is under way between two calls."""

    def stop(self, deadline: float) -> None:
        """Process nothing more."""
        del deadline
        self._runs = False

    def state_bytes(self) -> int:
        """The size of its pages."""
        return self._kept.size()

    def advance(self, ts: int) -> None:
        """Move the stream time of all source partitions, as a record of this timestamp would.

        It is a micro-batch without records: what becomes final is published.
        """
        kept, initial = self._kept, self.output.generation.initial
        batch = 0 if kept.last is None else kept.last + 1
        start = kept.start(batch, initial)
        position = vectors.completed(vectors.records(start), self._nowhere())
        self._course.times.move(position, ts)
        moved = {f"{vectors.MOVED}{topic}": dict.fromkeys(ends, ts) for topic, ends in position.items()}
        kept.plan(batch, {**vectors.told(start), **position, **moved})
        self._run(batch, start, kept.end(batch))

    def _nowhere(self) -> Vector:
        """All partitions of the sources, before their first record."""
        return {t: dict.fromkeys(offsets, 0) for t, offsets in self._log.end_offsets(self._unit.topics).items()}

    def replay(self, witness: Witness) -> None:
        """Process all that there is, from where the generation begins, and keep nothing of it.

        Args:
            witness: Is shown the rows that each node gives.
        """
        states = tuple(ShardState() for _ in range(self.output.generation.shards))
        start = self.output.generation.initial
        while (end := self._next_end(start)) != start:
            _, states = self.computed(states, list(self._pieces(start, end)), witness, self._told(start, end))
            start = end

    def _recorded(self) -> Recording:
        """What takes down its first micro-batches; what other code has made of them is no evidence against this one."""
        generation, known = self.output.generation, self._kept.recording
        if known is None:
            known = self._kept.recording = Recording(generation, self._unit)
        all_at_once = self._unit.building and self._unit.holds_back
        if known.fingerprint != generation.fingerprint or self._order or all_at_once:
            known.end()  # a batch in which several of the recorded order are repeated cannot be evaluated alone
        return known

    def _step(self) -> bool:
        """One micro-batch, if there is something to do."""
        kept, initial = self._kept, self.output.generation.initial
        batch = kept.planned
        if batch is None:
            batch = 0 if kept.last is None else kept.last + 1
            start = kept.start(batch, initial)
            end = self._next_end(start)
            if end == start:
                return False
            kept.plan(batch, end)
        crash_point("batch.before_state")
        self._run(batch, kept.start(batch, initial), kept.end(batch))
        return True

    def _available(self) -> Vector:
        ends = self._log.end_offsets(self._unit.topics)
        return ends if self._course.end is None else vectors.capped(ends, self._course.end)

    def _next_end(self, start: Vector) -> Vector:
        closed = self._course.closed
        most = self._settings.recalculation_records if closed else self._settings.max_records
        available, now_ms = self._target if self._target is not None else (self._available(), self._course.clock())
        return self._planner.end(start, available, most, now_ms)

    def _times_at(self, position: Vector) -> Vector | None:
        """The stream times at the end of the last micro-batch; None if that is not here."""
        generation = self.output.generation
        last = self._log.last_commit(self._unit.service, self.name, generation.name)
        if last is None:
            return {} if position == generation.initial else None
        return last.times if last.end == position else None

    def _told(self, start: Vector, end: Vector) -> list[Parcel]:
        """What shards hear besides the records."""
        known = self._planner.told(start, end)
        heard = told(self._unit, known.clock, known.epochs, known.times)
        return [*heard, *self._course.times.marks(self._unit.topics, start, end)]

    def _run(self, batch: int, start: Vector, end: Vector) -> None:
        began = time.monotonic()
        require_ids(self._ids, self._log)
        before = self._kept.states(batch, self.output.generation.shards)
        pieces = list(self._pieces(start, end))
        heard = self._told(start, end)
        if self._recording is not None and heard:
            self._recording.end()
        witness = None if self._recording is None else self._recording.witness(batch, self._unit, pieces)
        sent, after = self.computed(before, pieces, witness, heard)
        crash_point("batch.after_state")
        staged, counts = self._staged(sent)
        crash_point("sink.before_commit")
        times = stream_times(self._unit, after[0].books) if self._unit.hears_all else {}
        result = self._log.commit(self._commit(Batch(self._kept.query_id, batch, start, end, times), staged), staged)
        crash_point("sink.after_commit")
        self._kept.complete(batch, after)
        if self._recording is not None and witness is not None:
            self._recording.complete(pieces, sent)
        self._count(staged, result.counted(counts), (start, end, times), began)

    def computed(
        self,
        before: tuple[ShardState, ...],
        pieces: Sequence[Piece],
        witness: Witness | None = None,
        heard: Sequence[Parcel] = (),
    ) -> tuple[list[Parcel], tuple[ShardState, ...]]:
        """What a batch sends, and its shards after it; those before it stay as they are."""
        unit, migration = self._unit, self._course.migration
        shards = [self._shard(number, state) for number, state in enumerate(before)]
        parcels = [*ingested(unit, pieces, self.output.generation.policy, witness, self._order), *heard]
        name = "" if migration is None else migration.mark
        due = None if name in before[0].converted else migration  # all shards convert in the same batch
        every = [stages for stages, _ in shards]
        sent = run_stages(every, range(1, unit.depth + 1), parcels, due=lambda _: due, witness=witness)
        return sent, _after(shards, before, name)

    def _shard(self, number: int, state: ShardState) -> tuple[ShardStages, MemoryPages]:
        pages = MemoryPages()
        pages.blocks = dict(state.blocks)
        generation = self.output.generation
        share = (number, generation.shards)
        stages = ShardStages(self._unit, pages, state.books, policy=generation.policy, order=self._order, share=share)
        return stages, pages

    def _pieces(self, start: Vector, end: Vector) -> Iterator[Piece]:
        most = self._settings.recalculation_records
        given = self._planner.told(start, end).times
        for topic, partition, until in vectors.positions(end):
            since = vectors.offset_at(start, topic, partition)
            cuts = {at.offset for at in given if (at.topic, at.partition) == (topic, partition)}
            cuts |= set(self._course.times.cuts(topic, partition, since, until))
            for cut in [*sorted(offset for offset in cuts if since < offset < until), until]:
                if since < cut:
                    for split in splits(self._log, self._past, topic, partition, since, cut, max_records=most):
                        yield topic, partition, read_split(self._log, split)
                since = cut
        if self._unit.hears_all:
            # Who waits for all partitions must know of those that have no records.
            for topic, partition, _ in vectors.positions(end):
                if vectors.offset_at(start, topic, partition) == vectors.offset_at(end, topic, partition):
                    yield topic, partition, empty()

    def _staged(self, sent: list[Parcel]) -> tuple[list[Staged], dict[str, int]]:
        """What leaves the unit, on its way to the topics; and what was counted."""
        unit, generation, closed = self._unit, self.output.generation, self._course.closed
        target, letters = self.name, dead_letter_topic(self.name)
        if closed:
            # What a stream has published stands, so only its state is built.
            target = own_topic(unit.service, self.name, generation) if unit.output.kind is Kind.TABLE else ""
            letters = own_dead_letters(unit.service, self.name, generation)
        out = [parcel for parcel in sent if parcel.stage == OUT and parcel.node != MARKS and parcel.frame.height]
        records = [parcel.frame for parcel in out if parcel.port == RECORDS]
        dead = [parcel.frame for parcel in out if parcel.port == DEAD_LETTERS]
        staged: list[Staged] = []
        if records and target:
            partitions = self._log.describe(self.name).config.partitions
            more = owner_read(self._log, unit)
            placed = addressed(
                pl.concat(records),
                partitions,
                unit.service,
                generation.name,
                more=more,
                windows=unit.output.windows,
            )
            staged += self._log.stage_all(target, placed)
        if dead:
            staged += self._log.stage_all(letters, dead_letter_records(unit, pl.concat(dead)))
        for place, side in enumerate(unit.sides):
            topic = own_side(unit.service, self.name, generation, side) if closed else side.topic
            found = [parcel.frame for parcel in out if parcel.port == SIDES + place]
            if found and topic:
                partitions = self._log.describe(side.topic).config.partitions
                aside = side_records(side, pl.concat(found), partitions, unit.service, generation.name)
                staged += self._log.stage_all(topic, aside)
        counts: dict[str, int] = {}
        for parcel in out:
            if parcel.port == COUNTS:
                for name, count in parcel.frame.iter_rows():
                    counts[name] = counts.get(name, 0) + count
        return staged, counts

    def _commit(self, batch: Batch, staged: list[Staged]) -> Commit:
        moves = batch.start != batch.end  # else it is no place to stop at
        return Commit.of(
            batch,
            staged,
            self._course.lease,
            service=self._unit.service,
            output=self.name,
            generation=self.output.generation.name,
            kind="closed" if self._course.closed else "open",
            ordered=moves and (self._course.ordered or self._timing.noted(batch.start, batch.end)),
        ).having_seen(() if self._course.closed else self._unit.own_sources)

    def _count(
        self, staged: list[Staged], counts: dict[str, int], reached: tuple[Vector, Vector, Vector], began: float
    ) -> None:
        tally, (start, end, times) = self.tally, reached
        tally.batches += 1
        tally.read += vectors.lag(start, end)
        results = {self.name, own_topic(self._unit.service, self.name, self.output.generation)}
        tally.written += sum(part.rows for part in staged if part.topic in results)
        tally.position, tally.times = end, times
        tally.last_ms = (time.monotonic() - began) * 1000
        for name, count in counts.items():
            tally.counts[name] = tally.counts.get(name, 0) + count


def _after(
    shards: list[tuple[ShardStages, MemoryPages]], before: tuple[ShardState, ...], migration: str = ""
) -> tuple[ShardState, ...]:
    """The shards as stages have left them; with a migration, they have been through it."""
    return tuple(
        ShardState(pages.blocks, stages.books, state.converted | {migration} - {""})
        for (stages, pages), state in zip(shards, before, strict=True)
    )
