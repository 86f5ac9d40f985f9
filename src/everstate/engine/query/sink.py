"""The end of a micro-batch: what the shards have staged becomes part of the topics, in one commit, once."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from everstate.engine.checkpoint.checkpoint import batch_vectors
from everstate.generations.deploy.executor import Tally
from everstate.generations.state.topic_marks import require_ids
from everstate.log import vectors
from everstate.log.crash import crash_point
from everstate.log.descriptions import Batch, Commit, Staged
from everstate.log.waiting import waits_for

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame

    from everstate.engine.query.job import Job
    from everstate.log.descriptions import CommitKind, CommitResult, Lease, Vector
    from everstate.log.planning import Timing
    from everstate.log.protocol import Log


logger = logging.getLogger("everstate")

#: By these names in an error's text Spark knows that a query was stopped.
_INTERRUPTIONS: Final = (
    "java.lang.InterruptedException",
    "java.io.InterruptedIOException",
    "java.nio.channels.ClosedByInterruptException",
)
_LONGEST: Final = 500


class FailedBatchError(Exception):
    """What Spark hears of a batch that failed; what is said of it to people comes from the error itself."""


def told(error: BaseException) -> str:
    """What Spark is told of an error: enough to see whether somebody has only stopped the query.

    Example:
        >>> told(ValueError("x" * 1000)) == "ValueError: " + "x" * 500
        True
    """
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - an error of Java's asks Java for its text, which may be gone
        text = ""
    interrupted = next((name for name in _INTERRUPTIONS if name in text), None)
    if interrupted is not None:
        return f"py4j.protocol.Py4JJavaError: An error occurred while calling the sink.\n: {interrupted}\n"
    return f"{type(error).__name__}: {text[:_LONGEST]}"


class Sink:
    """Publishes the micro-batches of one output; Spark calls it once for each.

    Args:
        job: The query.
        log: The log.
        lease: Under which it commits.
        checkpoint: Spark's checkpoint, which knows where batches begin and end.
        initial: Where the first batch begins.
        kind: "open" if it publishes, "closed" while its generation is built.
        timing: What the output has to do with time.
        topics: Ids of the topics that the batches read and write.
    """

    def __init__(
        self,
        *,
        job: Job,
        log: Log,
        lease: Lease,
        checkpoint: Path,
        initial: Vector,
        kind: CommitKind,
        timing: Timing,
        topics: Mapping[str, str],
    ) -> None:
        self._topics = topics
        self._job = job
        self._log = log
        self._lease = lease
        self._checkpoint = checkpoint
        self._initial = initial
        self._kind = kind
        self._timing = timing
        self._waiting: tuple[str, int] | None = None
        self._passed: dict[tuple[str, int], int] = {}
        self._query_id: str | None = None
        self.tally = Tally()
        self.failure: BaseException | None = None
        self.stopping = threading.Event()
        self.began_after_stop = False

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Run the batch and publish what it gives."""
        self.began_after_stop = self.stopping.is_set()
        try:
            self._publish(frame, batch_id)
        except Exception as error:  # noqa: BLE001 - kept, and named by who looks at the query
            # Spark passes on the text of an error only, and looks at that with an expression that a long one overflows.
            self.failure = error
            raise FailedBatchError(told(error)) from None
        except BaseException as error:
            self.failure = error
            raise

    def _publish(self, frame: DataFrame, batch_id: int) -> None:
        began = time.monotonic()
        reports = [json.loads(row[0]) for row in frame.collect()]
        start, end = batch_vectors(self._checkpoint, batch_id, self._initial)
        staged = [Staged(**part) for report in _in_order(reports) for part in report["staged"]]
        require_ids(self._topics, self._log)
        crash_point("sink.before_commit")
        # Every shard has heard the same.
        times = vectors.from_offsets(reports[0]["times"]) if reports else {}
        result = self._log.commit(self._commit(batch_id, start, end, staged, times), staged)
        crash_point("sink.after_commit")
        self._count(reports, staged, start, end, result)
        self._tell(start, end, times)
        self.tally.last_ms = (time.monotonic() - began) * 1000

    def _commit(self, batch_id: int, start: Vector, end: Vector, staged: list[Staged], times: Vector) -> Commit:
        if self._query_id is None:
            self._query_id = json.loads((self._checkpoint / "metadata").read_bytes())["id"]
        return Commit.of(
            Batch(self._query_id, batch_id, start, end, times),
            staged,
            self._lease,
            service=self._job.service,
            output=self._job.output,
            generation=self._job.generation,
            kind=self._kind,
            ordered=self._timing.noted(start, end),
        ).having_seen(self._job.own_sources if self._kind == "open" else ())

    def _tell(self, start: Vector, end: Vector, times: Vector) -> None:
        """Say which partition time waits for, and which it no longer waits for, once each."""
        self.tally.times = times
        waiting = waits_for(times)
        place = None if waiting is None else (waiting.topic, waiting.partition)
        if waiting is not None and place != self._waiting:
            logger.info("Output %s waits for %s", self._job.output, waiting)
        self._waiting = place
        for name, given in vectors.given_times(end).items():
            topic = vectors.topic_of(name)
            for partition, reached in given.items():
                offset = vectors.offset_at(end, topic, partition)
                if start.get(name, {}).get(partition) != reached and self._passed.get((topic, partition)) != offset:
                    self._passed[topic, partition] = offset
                    told = "Output %s no longer waits for partition %d of %s: later records count as of %d ms or more"
                    logger.info(told, self._job.output, partition, topic, reached)

    def _count(
        self, reports: list[dict[str, Any]], staged: list[Staged], start: Vector, end: Vector, result: CommitResult
    ) -> None:
        tally = self.tally
        tally.batches += 1
        tally.read += vectors.lag(start, end)
        tally.written += sum(part.rows for part in staged if part.topic == self._job.target) - result.left_out
        tally.position = end
        counts: Counter[str] = Counter()
        for report in reports:
            counts.update(report["counts"])
        found = result.counted(counts)
        if self._job.own_sources and found.get("removed"):
            logger.info("Removed %d keys of %s", found["removed"], ", ".join(self._job.own_sources))
        for name, count in found.items():
            tally.counts[name] = tally.counts.get(name, 0) + count


def _in_order(reports: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """By shard, so that a replay publishes in the same order."""
    return sorted(reports, key=lambda report: int(report["shard"]))
