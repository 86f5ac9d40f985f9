"""`.from_spark()`: each micro-batch of a streaming data frame becomes one commit on the topic, once.

Spark's batch is the identity of the commit: one that comes again after a crash is skipped, and one that comes again
with other rows, from a source that cannot be read twice, is corrected on a table and refused on a stream.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any, Final, cast

from pyspark.sql import DataFrame

from everstate.engine.query.opened import told
from everstate.engine.spark_io.columns import fed_columns
from everstate.engine.spark_io.crossing import Crossing
from everstate.engine.spark_io.tasks import REPORT, Ends, staged_of, staging
from everstate.errors import CommitConflictError, FunctionError, StateError, UnsupportedError
from everstate.kernels.records.typed_rows import DeclaredForm
from everstate.log.crash import crash_point
from everstate.log.descriptions import Batch, Commit
from everstate.log.timing import wall_clock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import DataStreamWriter

    from everstate.topology.spark_steps import Feed

#: What Spark calls steps that keep state, by how their names begin.
_STATEFUL: Final = ("Aggregate", "Deduplicate", "FlatMapGroups", "TransformWithState", "StreamingDeduplicate")
_CURE: Final = (
    "Its rows are on the topic, and without its position all would be read again. Restore {} from a copy of the same "
    "moment, or give the source a new topic, which is filled from the start."
)


class FeedCrossing(Crossing):
    """Brings the rows of a data frame to a topic."""

    @property
    def _feed(self) -> Feed:
        return cast("Feed", self.step)

    @property
    def _output(self) -> str:
        return f"{self.step.name}:{self._run}"

    def check(self) -> None:
        """Make sure that its position and what is on the topic belong together.

        Raises:
            StateError: If they do not.
        """
        last = self._log.last_commit(self._service, self._output)
        if last is not None and not (self.checkpoint / "metadata").exists():
            raise StateError(
                f"the position of {self.step.call}, which feeds topic {self.step.topic!r}, is gone",
                location=self.step.location,
                hint=_CURE.format(self.checkpoint),
            )

    def _written(self, own: SparkSession) -> DataStreamWriter[Any]:
        feed = self._feed
        frame = self._call(own)
        place = feed.function.location or feed.location
        if not isinstance(frame, DataFrame) or not frame.isStreaming:
            what = "a DataFrame that does not stream" if isinstance(frame, DataFrame) else f"a {type(frame).__name__}"
            raise FunctionError(
                f"{feed.call} gave {what}", location=place, hint="Return a streaming one: spark.readStream.load(...)"
            )
        kept = _state_in(cast("Any", frame)._jdf.queryExecution().analyzed())  # noqa: SLF001 - Spark tells nobody else
        if kept:
            raise UnsupportedError(
                f"{feed.call} keeps state in Spark ({kept}), which would not follow when the service changes",
                location=place,
                hint="Only read, decode and select there; group, join and deduplicate in the service.",
            )
        form = DeclaredForm(feed.key, feed.schema, feed.format)
        columns = fed_columns(frame.schema, feed, form)
        partitions = self._log.describe(feed.topic).config.partitions
        self._ends = Ends(pickle.dumps(self._log), feed.topic, form, partitions, told())
        # In backticks, since a name may have a dot in it.
        return frame.select(*(f"`{name}`" for name in columns)).writeStream

    def _batch(self, frame: DataFrame, batch_id: int) -> None:
        reports = frame.mapInArrow(staging(self._ends, wall_clock()), REPORT).collect()
        staged = staged_of(row[0] for row in reports)
        topic = self.step.topic
        batch = Batch(self._query_id(), batch_id, {topic: {0: batch_id}}, {topic: {0: batch_id + 1}})
        commit = Commit.of(
            batch,
            staged,
            self.lease,
            service=self._service,
            output=self._output,
            generation="1",
            kind="open",
            ordered=False,
        )
        crash_point("feed.before_commit")
        try:
            self._log.commit(commit, staged)
        except CommitConflictError as error:
            raise CommitConflictError(
                f"{self.step.call} does not continue where topic {topic!r} is: {error.message}",
                location=self.step.location,
                hint="If its source gives different rows when it is read again, write them to files or Kafka first. "
                + _CURE.format(self.checkpoint),
            ) from error
        crash_point("feed.after_commit")

    def _cure(self) -> str:
        return "Correct the function. What has been read so far stays on the topic, and nothing is read twice."


def _state_in(plan: Any) -> str:
    """The name of a step of a plan that keeps state between batches; empty for none."""
    name = str(plan.nodeName())
    children = plan.children()
    inside = [children.apply(place) for place in range(children.size())]
    if name.startswith(_STATEFUL) and plan.isStreaming():
        return name
    if name == "Join" and all(child.isStreaming() for child in inside):
        return "Join of two streams"
    return next((found for child in inside if (found := _state_in(child))), "")
