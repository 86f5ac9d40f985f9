"""Later stages as Spark's stateful step: one call a shard a micro-batch, state in pages.

What Spark stores is declared once and for ever: pages by (store, page), and a little bookkeeping. Whatever a service
becomes, Spark never sees another schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor

from everstate.errors.carrying import carried

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everstate.engine.query.job import Job

#: What the last stage gives: one line of JSON a shard, with what it has staged and counted.
REPORT: Final = "report string"

#: How long Spark's state store may take for an answer, in seconds. It takes milliseconds; but the thread that answers
#: may have died, and without a limit the worker would wait for it for ever.
ANSWER_S: Final = 300.0


class StageProcessor(StatefulProcessor):
    """Runs stages of a unit on the shards that Spark hands it.

    Args:
        job: The query.
        stages: Which stages.
        last: No stage follows: what leaves the unit is staged in the log.
    """

    def __init__(self, job: Job, stages: tuple[int, ...], *, last: bool) -> None:
        self._job = job
        self._stages = stages
        self._last = last

    def init(self, handle: Any) -> None:
        """Declare the state."""
        handle._statefulProcessorApiClient._client_socket.settimeout(ANSWER_S)  # noqa: SLF001 - its version is pinned
        self._pages = handle.getMapState("pages", "store int, page int", "block binary")
        self._bookkeeping = handle.getValueState("bookkeeping", "content binary")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803 - Spark's names
        """One micro-batch of one shard."""
        del timerValues
        # Spark also starts a process that only asks what the state is; it should not pay for the kernels.
        from everstate.engine.query.shard_task import ShardTask  # noqa: PLC0415
        from everstate.engine.query.spark_pages import SparkPages  # noqa: PLC0415

        with carried():
            stored = self._bookkeeping.get()
            task = ShardTask(
                self._job, self._stages, key[0], SparkPages(self._pages), bytes(stored[0]) if stored else None
            )
            passing, parcels = task.run(rows)
            self._bookkeeping.update((task.bookkeeping,))
            if self._last:
                yield Row(report=task.report(passing, parcels))
            else:
                for item in task.onward(passing, parcels):
                    yield Row(**item)

    def close(self) -> None:
        """Nothing to close: Spark owns the state."""
