"""One output as a Spark streaming query: source, stage 0, the stateful stages, sink."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from everstate.engine.jvm.session import query_session
from everstate.engine.query.packing import ROWS
from everstate.engine.query.processor import REPORT, StageProcessor
from everstate.engine.query.shard_numbers import stage_groups
from everstate.engine.query.source import FORMAT, SourceOptions
from everstate.engine.query.source_task import reading

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from everstate.engine.query.job import Job
    from everstate.engine.query.sink import Sink
    from everstate.generations.deploy.settings import Settings
    from everstate.log.archive.reading import Past
    from everstate.log.descriptions import Vector
    from everstate.log.planning import Timing


@dataclass(frozen=True, kw_only=True)
class QueryPlan:
    """Everything that a query needs.

    Attributes:
        job: What its tasks know.
        topics: Its source topics.
        depth: Its last stage.
        checkpoint: Spark's folder.
        initial: Where in its sources a new query begins.
        max_records: The most records of a micro-batch.
        order: Service and output whose order log its batches follow; empty if they follow none.
        recorded: So many of it count.
        timing: What it has to do with time; None for nothing.
        live: Partitions may be found quiet.
        end: Where it stops reading; None for never.
        past: Where records are that its topics no longer have.
        ids: The ids of the source topics that it has read so far, by name.
        tables: Source topics whose rows it keeps until they are deleted there.
        checked_ms: When it was last known that it had missed none of these deletions.
    """

    job: Job
    topics: tuple[str, ...]
    depth: int
    checkpoint: Path
    initial: Vector
    max_records: int
    order: tuple[str, ...] = ()
    recorded: int = 0
    timing: Timing | None = None
    live: bool = True
    end: Vector | None = None
    past: Past | None = None
    ids: dict[str, str] = field(default_factory=dict)
    tables: tuple[str, ...] = ()
    checked_ms: int = 0


def start_query(
    session: SparkSession, plan: QueryPlan, sink: Sink, settings: Settings, *, tasks: int, once: bool
) -> StreamingQuery:
    """Start the query; with `once` it ends when it has read what is there. So many tasks share a batch."""
    job = plan.job
    own = query_session(session, job.shards)
    options = SourceOptions(
        url=job.url,
        topics=plan.topics,
        initial=plan.initial,
        order=plan.order,
        end=plan.end,
        max_records=plan.max_records,
        tasks=tasks,
        ids=plan.ids,
        tables=plan.tables,
        checked_ms=plan.checked_ms,
        recorded=plan.recorded,
        timing=None if plan.timing is None else plan.timing.to_document(),
        live=plan.live,
        owner=(job.service, job.output, job.generation),
        past=None if plan.past is None else plan.past.to_document(),
    )
    frame = own.readStream.format(FORMAT).options(**options.to_spark()).load().mapInArrow(reading(job), ROWS)
    groups = stage_groups(plan.depth, job.shards)
    for place, stages in enumerate(groups):
        last = place == len(groups) - 1
        processor = StageProcessor(job, stages, last=last)
        frame = frame.groupBy("shard").transformWithState(processor, REPORT if last else ROWS, "Append", "None")
    writer = (
        frame.writeStream.foreachBatch(sink)
        .outputMode("append")
        .queryName(f"{job.service}/{job.output}")
        .option("checkpointLocation", str(plan.checkpoint))
    )
    writer = (
        writer.trigger(availableNow=True)
        if once
        else writer.trigger(processingTime=f"{int(settings.trigger * 1000)} milliseconds")
    )
    # Queries of one service share the cores evenly instead of in the order in which they asked.
    own.sparkContext.setLocalProperty("spark.scheduler.pool", job.output)
    return writer.start()
