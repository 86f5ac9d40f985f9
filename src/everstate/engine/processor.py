"""Later stages as Spark's stateful step: one call a shard a micro-batch, state in pages.

What Spark stores is declared once and for ever: pages by (store, page), and a little bookkeeping. Whatever a service
becomes, Spark never sees another schema.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import polars as pl
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor

from everstate.engine.failures import carried
from everstate.engine.packing import Packed, pack
from everstate.engine.spread import shard_ids
from everstate.kernels.ledger import Ledger
from everstate.kernels.output import dead_letter_records
from everstate.kernels.parcel import COUNTS, DEAD_LETTERS, MARKS, OUT, RECORDS, Parcel
from everstate.kernels.shard import Shard
from everstate.kernels.stage import farewell, run_stage
from everstate.log.crash import crash_point
from everstate.topology.partitioner import partition_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from everstate.engine.job import Job
    from everstate.log.protocol import Staged

#: What the last stage gives: one line of JSON a shard, with what it has staged and counted.
REPORT: Final = "report string"


class SparkPages:
    """Pages in Spark's state store."""

    def __init__(self, state: Any) -> None:
        self._state = state

    def get(self, store: int, page: int) -> bytes | None:
        """A page, or None."""
        value = self._state.getValue((store, page))
        return None if value is None else bytes(value[0])

    def put(self, store: int, page: int, block: bytes) -> None:
        """Store a page."""
        self._state.updateValue((store, page), (block,))

    def delete(self, store: int, page: int) -> None:
        """Delete a page."""
        self._state.removeKey((store, page))


class StageProcessor(StatefulProcessor):
    """Runs stages of a unit on a shard.

    Args:
        job: The query.
        stages: Which stages; with one shard nothing has to move between them, so all run in one call.
        last: No stage follows: what leaves the unit is staged in the log.
    """

    def __init__(self, job: Job, stages: tuple[int, ...], *, last: bool) -> None:
        self._job = job
        self._stages = stages
        self._last = last

    def init(self, handle: Any) -> None:
        """Declare the state."""
        self._pages = handle.getMapState("pages", "store int, page int", "block binary")
        self._bookkeeping = handle.getValueState("bookkeeping", "content binary")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803 - Spark's names
        """One micro-batch of one shard."""
        del timerValues
        with carried():
            crash_point("batch.before_state")
            shard = shard_ids(self._job.shards).index(key[0])
            packed = sorted((Packed(*row) for row in rows), key=lambda item: item.origin)
            parcels = self._run([item.parcel() for item in packed if item.stage in self._stages])
            passing = [item for item in packed if item.stage not in self._stages]
            crash_point("batch.after_state")
            if self._last:
                leaving = [item.parcel() for item in passing] + parcels
                yield Row(report=json.dumps(self._report(shard, leaving)))
            else:
                sent = pack(parcels, shards=self._job.shards, sender=shard, home=shard)
                for item in (*passing, *sent):
                    yield Row(**item.__dict__)

    def close(self) -> None:
        """Nothing to close: Spark owns the state."""

    def _run(self, arrivals: list[Parcel]) -> list[Parcel]:
        """Run the stages; returns what is meant for others."""
        job = self._job
        unit = job.unit()
        stored = self._bookkeeping.get()
        books: dict[str, str] = json.loads(bytes(stored[0])) if stored else {}
        pages = SparkPages(self._pages)
        leaving: list[Parcel] = []
        for stage in self._stages:
            ledger = Ledger(unit.topics, job.policy)
            before = books.get(str(stage))
            shard = Shard(pages, before.encode() if before else None, ledger)
            sent = run_stage(unit, stage, [p for p in arrivals if p.stage == stage], shard) + farewell(unit, ledger)
            books[str(stage)] = shard.close().decode()
            arrivals += [p for p in sent if p.stage in self._stages]
            leaving += [p for p in sent if p.stage not in self._stages]
        self._bookkeeping.update((json.dumps(books, sort_keys=True).encode(),))
        return leaving

    def _report(self, shard: int, leaving: Iterable[Parcel]) -> dict[str, Any]:
        """Stage what leaves the unit, so that the driver only has to publish it."""
        job = self._job
        parts: dict[int, list[pl.DataFrame]] = {RECORDS: [], DEAD_LETTERS: [], COUNTS: []}
        for parcel in leaving:
            if parcel.stage == OUT and parcel.node != MARKS and parcel.frame.height:
                parts[parcel.port].append(parcel.frame)
        staged: list[Staged] = []
        if parts[RECORDS]:
            records = pl.concat(parts[RECORDS])
            staged += job.log().stage_all(job.output, _addressed(records, job, shard))
        if parts[DEAD_LETTERS]:
            letters = dead_letter_records(job.unit(), pl.concat(parts[DEAD_LETTERS]))
            staged += job.log().stage_all(job.dead_letter_topic, letters)
        counts: dict[str, int] = {}
        for frame in parts[COUNTS]:
            for name, count in frame.iter_rows():
                counts[name] = counts.get(name, 0) + count
        return {"shard": shard, "staged": [asdict(part) for part in staged], "counts": counts}


def _addressed(records: pl.DataFrame, job: Job, shard: int) -> pl.DataFrame:
    """Records with their partition and headers.

    A record without a key goes round-robin, and a replay must send it to the same partition: its place decides.
    """
    by_key = partition_of(records["key"], job.partitions).alias("partition")
    in_turn = ((pl.int_range(pl.len(), dtype=pl.Int64) + shard) % job.partitions).cast(pl.Int32)
    headers = [
        {"name": "es-service", "value": job.service.encode()},
        {"name": "es-generation", "value": job.generation.encode()},
    ]
    kind = pl.List(pl.Struct({"name": pl.String, "value": pl.Binary}))
    return records.with_columns(by_key).with_columns(
        pl.col("partition").fill_null(in_turn), pl.lit(pl.Series([headers], dtype=kind)).first().alias("headers")
    )
