"""One micro-batch of one shard: run its stages on the pages, and stage what leaves the unit."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import polars as pl

from everstate.engine.query.packing import Packed, pack
from everstate.engine.query.shard_numbers import shard_ids
from everstate.generations.state.removed import owner_read
from everstate.kernels.output import addressed, dead_letter_records, side_records
from everstate.kernels.parcel import COUNTS, DEAD_LETTERS, MARKS, OUT, RECORDS, SIDES, Parcel
from everstate.kernels.pipeline import ShardStages, run_stages, stream_times
from everstate.log.crash import crash_point

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from everstate.engine.query.job import Job
    from everstate.kernels.migration.convert import Migration
    from everstate.kernels.pages.page_store import PageStore
    from everstate.log.descriptions import Staged


class ShardTask:
    """Runs stages of a unit on one shard.

    Args:
        job: The query.
        stages: Which stages; with one shard nothing has to move between them, so all run in one call.
        number: Spark's number of the shard.
        pages: The shard's state.
        bookkeeping: What `run` left after the last micro-batch; None on the first.
    """

    def __init__(
        self, job: Job, stages: tuple[int, ...], number: int, pages: PageStore, bookkeeping: bytes | None
    ) -> None:
        self._job = job
        self._stages = stages
        self._shard = shard_ids(job.shards).index(number)
        self._pages = pages
        self._books: dict[str, str] = json.loads(bookkeeping) if bookkeeping else {}

    @property
    def bookkeeping(self) -> bytes:
        """What must outlive the micro-batch."""
        return json.dumps(self._books, sort_keys=True).encode()

    def run(self, rows: Iterable[Any]) -> tuple[list[Packed], list[Parcel]]:
        """Run the stages on what has arrived; returns what only passes through, and what the stages send."""
        packed = sorted((Packed(*row) for row in rows), key=lambda item: item.origin)
        crash_point("batch.before_state")
        parcels = self._run([item.parcel() for item in packed if item.stage in self._stages])
        crash_point("batch.after_state")
        return [item for item in packed if item.stage not in self._stages], parcels

    def _run(self, arrivals: list[Parcel]) -> list[Parcel]:
        job = self._job
        shard = ShardStages(
            job.unit(),
            self._pages,
            {stage: book.encode() for stage in self._stages if (book := self._books.get(str(stage)))},
            policy=job.policy,
            page_policy=job.page_policy,
            order=job.order,
            share=(self._shard, job.shards),
        )
        leaving = run_stages([shard], self._stages, arrivals, due=self._due)
        self._books.update({str(stage): book.decode() for stage, book in shard.books.items()})
        return leaving

    def _due(self, stage: int) -> Migration | None:
        """The conversion of the stage's state, unless it was done; from now on it was."""
        migration, name = self._job.migration, f"{stage} migrated"
        if migration is None or self._books.get(name) == migration.mark:
            return None
        self._books[name] = migration.mark
        return migration

    def onward(self, passing: list[Packed], parcels: list[Parcel]) -> Iterator[dict[str, Any]]:
        """Rows for the next stage."""
        sent = pack(parcels, shards=self._job.shards, sender=self._shard, home=self._shard)
        return (item.__dict__ for item in (*passing, *sent))

    def report(self, passing: list[Packed], parcels: list[Parcel]) -> str:
        """Stage what leaves the unit, so that the driver only has to publish it; says what was staged and counted."""
        job = self._job
        parts: dict[int, list[pl.DataFrame]] = {RECORDS: [], DEAD_LETTERS: [], COUNTS: []}
        for parcel in (*(item.parcel() for item in passing), *parcels):
            if parcel.stage == OUT and parcel.node != MARKS and parcel.frame.height:
                parts.setdefault(parcel.port, []).append(parcel.frame)
        staged: list[Staged] = []
        if parts[RECORDS] and job.target:
            more = owner_read(job.log(), job.unit()) if job.own_sources else ()
            records = addressed(
                pl.concat(parts[RECORDS]),
                job.partitions,
                job.service,
                job.generation,
                turn=self._shard,
                more=more,
                windows=job.unit().output.windows,
            )
            staged += job.log().stage_all(job.target, records)
        if parts[DEAD_LETTERS]:
            letters = dead_letter_records(job.unit(), pl.concat(parts[DEAD_LETTERS]))
            staged += job.log().stage_all(job.dead_letters, letters)
        for place, (side, (topic, partitions)) in enumerate(zip(job.unit().sides, job.sides, strict=True)):
            if topic and (found := parts.get(SIDES + place)):
                aside = side_records(side, pl.concat(found), partitions, job.service, job.generation, turn=self._shard)
                staged += job.log().stage_all(topic, aside)
        counts: dict[str, int] = {}
        for frame in parts[COUNTS]:
            for name, count in frame.iter_rows():
                counts[name] = counts.get(name, 0) + count
        unit, books = job.unit(), {int(stage): book.encode() for stage, book in self._books.items() if stage.isdigit()}
        times = stream_times(unit, books) if unit.hears_all else {}
        parts_of = [asdict(part) for part in staged]
        return json.dumps({"shard": self._shard, "staged": parts_of, "counts": counts, "times": times})
