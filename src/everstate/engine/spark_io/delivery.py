"""`.to_spark()`: what an output's topic gets is handed to a function of the user's, batch by batch, at least once.

A topic has only what is published: nothing of a generation that is being built, and of a cutover its difference. So a
sink follows every change of the service as any other consumer of the topic does.
"""

from __future__ import annotations

import logging
import pickle
from typing import TYPE_CHECKING, Any, Final

from pyspark import AccumulatorParam
from pyspark.sql import functions

from everstate.engine.checkpoint.checkpoint import numbers
from everstate.engine.query.opened import told
from everstate.engine.query.source import FORMAT, SourceOptions
from everstate.engine.spark_io.columns import delivered_schema
from everstate.engine.spark_io.crossing import Crossing
from everstate.engine.spark_io.tasks import Ends, handing_out
from everstate.errors import TombstonesMissedError
from everstate.kernels.records.typed_rows import OFFSET, DeclaredForm
from everstate.log.crash import crash_point
from everstate.plan.words import counted
from everstate.topology.nodes import Kind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter

    from everstate.errors import EverstateError

logger = logging.getLogger(__name__)

#: Batches of one checkpoint are numbered below this, so that no number ever comes with other records.
_NUMBERS: Final = 10**12


class _Told(AccumulatorParam[list[Any]]):
    """What tasks say of records that they could not read; a task that runs twice says it twice."""

    def zero(self, value: list[Any]) -> list[Any]:
        del value
        return []

    def addInPlace(self, value1: list[Any], value2: Any) -> list[Any]:  # noqa: N802 - Spark's name
        return [*value1, *(value2 if isinstance(value2, list) else [value2])]


class DeliveryCrossing(Crossing):
    """Hands the records of a topic to a function."""

    def _written(self, own: SparkSession) -> DataStreamWriter[Any]:
        topic = self.step.topic
        info = self._log.describe(topic)
        table = self.step.kind is Kind.TABLE
        options = SourceOptions(
            url=self._log.url,
            topics=(topic,),
            initial={topic: info.start},
            end=None,
            max_records=self._settings.max_records,
            tasks=self._settings.used_cores,
            ids={topic: info.id},
            tables=(topic,) if table else (),
            checked_ms=self._delivered_ms(),
            owner=(self._service, topic),
        )
        form = DeclaredForm(self.step.key, self.step.schema, self.step.format)
        arrow, spark = delivered_schema(form)
        ends = Ends(pickle.dumps(self._log), topic, form, info.config.partitions, told())
        self._unreadable = own.sparkContext.accumulator([], _Told())
        self._told = 0
        frame = own.readStream.format(FORMAT).options(**options.to_spark()).load()
        return frame.mapInArrow(handing_out(ends, arrow, self._unreadable), spark).writeStream

    def _delivered_ms(self) -> int:
        """When the last batch was done: until then nothing has been missed."""
        commits = self.checkpoint / "commits"
        done = numbers(commits)
        return int((commits / str(done[-1])).stat().st_mtime * 1000) if done else 0

    def _batch(self, frame: DataFrame, batch_id: int) -> None:
        if self.step.kind is Kind.TABLE:
            names = [f"`{name}`" for name in self.step.key.names]
            columns = [f"`{name}`" for name in frame.columns if name not in self.step.key.names]
            last = functions.max_by(functions.struct(*columns), functions.col(f"`{OFFSET}`")).alias("$last")
            # All records of a key are in one partition, so the highest offset is the last one.
            frame = frame.groupBy(*names).agg(last).select(*names, "`$last`.*")
        crash_point("delivery.before_call")
        self._call(frame, self._run * _NUMBERS + batch_id)
        self._tell()
        crash_point("delivery.after_call")

    def _tell(self) -> None:
        """Name records that do not fit the schema that the output has now: they are of an earlier version of it."""
        found = self._unreadable.value[self._told :]
        self._told += len(found)
        if found:
            count, first = sum(part["count"] for part in found), found[0]["first"][0]
            logger.warning(
                "%s was not given %s of topic %s that an earlier version wrote in a different form: %s",
                self.step.call,
                counted(count, "record"),
                self.step.topic,
                first,
            )

    def _named(self, error: BaseException) -> EverstateError:
        named = super()._named(error)
        if isinstance(named, TombstonesMissedError):
            return TombstonesMissedError(
                f"{self.step.call} was stopped for longer than topic {self.step.topic!r} keeps tombstones, so its sink "
                "may have rows that were deleted",
                location=self.step.location,
                hint=f"Compare the sink with es.read_table({self.step.topic!r}) and remove what is not there; then "
                f"remove {self.checkpoint}, and all records are delivered again.",
            )
        return named

    def _cure(self) -> str:
        return "Nothing is lost: correct the function, or make sure that its sink is available; the batch comes again."
