"""The stage loop: records in, every stage on its shards, what leaves the unit out.

Spark's tasks, the test driver, the proof of a migration and the check of a sample all run it, so that they cannot
disagree. Each stage keeps books of its own: one that shared its stream times with another would take its own batch for
the past.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeAlias

import polars as pl

from everstate.kernels import stream_time
from everstate.kernels.ledger import Ledger
from everstate.kernels.parcel import MARKS, SPLITS, TOLD, Parcel, by_shard
from everstate.kernels.shard import Shard
from everstate.kernels.stage import farewell, ingest, run_stage
from everstate.kernels.steps import cut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from everstate.kernels.migration.convert import Migration
    from everstate.kernels.order import Order
    from everstate.kernels.pages.addressing import PagePolicy
    from everstate.kernels.pages.page_store import PageStore
    from everstate.kernels.stage import Witness
    from everstate.topology.unit import Unit

#: A contiguous range of a partition: topic, partition, records.
Piece: TypeAlias = "tuple[str, int, pl.DataFrame]"
#: By stage, what must outlive a micro-batch.
Books: TypeAlias = dict[int, bytes]
#: Says which of the parcels that wait for a stage it takes.
Admission: TypeAlias = "Callable[[int, list[Parcel]], list[Parcel]]"


def ingested(
    unit: Unit,
    pieces: Iterable[Piece],
    policy: str,
    witness: Witness | None = None,
    order: Order | None = None,
) -> list[Parcel]:
    """Stage 0 of a micro-batch: parcels for later stages, and what leaves the unit at once.

    Args:
        unit: The unit.
        pieces: What is read.
        policy: What happens to records that cannot be processed.
        witness: Is shown the rows that each node gives.
        order: The recorded micro-batches, if several of them are repeated.
    """
    ledger = Ledger.of(unit, policy)
    parcels: list[Parcel] = []
    for topic, partition, records in pieces:
        for step, part in cut(unit, topic, partition, records, order):
            parcels += ingest(unit, topic, partition, part, ledger, witness, order, step=step)
    return parcels + farewell(unit, ledger)


def told(
    unit: Unit,
    clock: int | None,
    repeats: tuple[int, int] | None,
    times: Iterable[tuple[str, int, int, int]],
) -> list[Parcel]:
    """What shards hear of a micro-batch besides its records.

    Args:
        unit: The unit.
        clock: The recorded wall clock, in milliseconds; None if the unit does not go by it.
        repeats: Which of the recorded micro-batches it repeats, as a range; None for none.
        times: Topic, partition, offset, and the stream time that the partition was given there. Ranges of records are
            cut at these offsets.
    """
    if not unit.depth:
        return []
    frames = [
        stream_time.mark(unit.topics.index(topic), partition, offset, offset, time)
        for topic, partition, offset, time in times
    ]
    first, last = repeats or (None, None)
    whole = pl.DataFrame([[clock], [first], [last]], schema=stream_time.TOLD_OF)
    marks = [Parcel(1, MARKS, SPLITS, frame) for frame in frames]
    return [*marks, Parcel(1, MARKS, TOLD, whole)] if clock is not None or repeats else marks


def stream_times(unit: Unit, books: Books) -> dict[str, dict[int, int]]:
    """The stream time of each partition for which a step waits, by topic, as stages have left it; -1 for none."""
    found: dict[str, dict[int, int]] = {}
    for place, time in json.loads(books[min(books)])["stream_times"].items() if books else ():
        topic, _, partition = place.partition("/")
        if int(topic) in unit.watched:
            found.setdefault(unit.topics[int(topic)], {})[int(partition)] = -1 if time is None else time
    return found


class ShardStages:
    """The later stages of a unit on one shard.

    Args:
        unit: The unit.
        pages: The shard's state.
        books: What `books` was after the last micro-batch; none on the first.
        policy: What happens to records that cannot be processed.
        page_policy: How large pages are; None for the usual way.
        order: Where earlier micro-batches ended, if this one repeats several of them.
        share: Which shard of how many it is.

    Attributes:
        books: By stage, what must outlive the micro-batch.
    """

    def __init__(
        self,
        unit: Unit,
        pages: PageStore,
        books: Books | None = None,
        *,
        policy: str,
        page_policy: PagePolicy | None = None,
        order: Order | None = None,
        share: tuple[int, int] = (0, 1),
    ) -> None:
        self.unit = unit
        self.books: Books = dict(books or {})
        self._pages = pages
        self._policy = policy
        self._page_policy = page_policy
        self._order = order
        self._share = share

    def shard(self, stage: int, ledger: Ledger | None = None) -> Shard:
        """The state of a stage as the last micro-batch left it."""
        ledger = ledger or Ledger.of(self.unit, self._policy)
        return Shard(self._pages, self.books.get(stage), ledger, self._page_policy, self._order, self._share)

    def run(
        self, stage: int, arrivals: list[Parcel], migration: Migration | None = None, witness: Witness | None = None
    ) -> list[Parcel]:
        """Run one stage on what has arrived for it; returns what it sends, dead letters and counts among it."""
        ledger = Ledger.of(self.unit, self._policy)
        shard = self.shard(stage, ledger)
        sent = run_stage(self.unit, stage, arrivals, shard, migration, witness)
        self.books[stage] = shard.close()
        return sent + farewell(self.unit, ledger)


def run_stages(
    shards: Sequence[ShardStages],
    stages: Iterable[int],
    parcels: list[Parcel],
    *,
    due: Callable[[int], Migration | None] | None = None,
    witness: Witness | None = None,
    admit: Admission | None = None,
) -> list[Parcel]:
    """Run stages one after the other, each on every shard.

    Args:
        shards: The shards between which rows move.
        stages: Which stages.
        parcels: What stage 0, or an earlier stage elsewhere, has sent.
        due: The conversion of a stage's state that has to come first, if any.
        witness: Is shown the rows that each node gives.
        admit: Leaves out some of what waits for a stage.

    Returns:
        What goes to other stages, or leaves the unit.
    """
    for stage in stages:
        waiting = [parcel for parcel in parcels if parcel.stage == stage]
        parcels = [parcel for parcel in parcels if parcel.stage != stage]
        lots: list[list[Parcel]] = [[] for _ in shards]
        for parcel in waiting if admit is None else admit(stage, waiting):
            for number, frame in by_shard(parcel, len(shards)).items():
                lots[number].append(Parcel(stage, parcel.node, parcel.port, frame))
        migration = due(stage) if due is not None else None
        for shard, lot in zip(shards, lots, strict=True):
            parcels += shard.run(stage, lot, migration, witness)
    return parcels
