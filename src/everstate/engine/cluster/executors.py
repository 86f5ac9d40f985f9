"""The executors that a cluster has given to this application."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark import cloudpickle

from everstate.engine.cluster import probe
from everstate.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark import SparkContext

logger = logging.getLogger(__name__)

_DRIVER: Final = "driver"
_LOOK_S: Final = 0.2
#: How long a cluster may take to give the first executor, and how long to give the rest.
FIRST_S: Final = 60.0
REST_S: Final = 30.0
#: Where the number was not asked for, the last one has come when no other does for so long.
QUIET_S: Final = 4.0


@dataclass(frozen=True)
class Executors:
    """What there is.

    Attributes:
        cores: Their cores, by executor.
    """

    cores: dict[str, int]

    @property
    def total(self) -> int:
        """All cores."""
        return sum(self.cores.values())


def registered(context: SparkContext) -> Executors:
    """The executors of this moment."""
    listed = context._jsc.sc().statusStore().executorList(True)  # noqa: SLF001 - not in PySpark
    found = [listed.apply(place) for place in range(listed.size())]
    return Executors({str(one.id()): int(one.totalCores()) for one in found if str(one.id()) != _DRIVER})


def awaited(
    look: Callable[[], Executors],
    wanted: int | None,
    master: str,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Executors:
    """Wait for executors: shards that all begin on the first one would stay there, where their state is.

    Args:
        look: Gives those of the moment.
        wanted: How many cores were asked for; None for all that there are.
        master: The cluster, for messages.
        clock: Gives seconds.
        sleep: Waits for some.

    Raises:
        EngineError: If there is none in a minute.
    """
    began = changed = clock()
    last = look()
    while True:
        found, now = look(), clock()
        if found != last:
            last, changed = found, now
        if wanted is not None and found.total >= wanted:
            return found
        if found.total and wanted is None and now - changed >= QUIET_S:
            return found
        if found.total and now - began >= REST_S:
            if wanted is not None:
                logger.warning("The cluster %s has given %d of %d cores so far.", master, found.total, wanted)
            return found
        if now - began >= FIRST_S:
            raise EngineError(
                f"the cluster {master} has given this service no executor in {FIRST_S:.0f} s",
                hint="Its page says why: no worker is there, all cores are in use, or none has that much memory "
                "(--memory). A worker that cannot reach this machine gives none either: --driver-host.",
            )
        sleep(_LOOK_S)


def asked(context: SparkContext, question: dict[str, Any], tasks: int) -> list[dict[str, Any]]:
    """The answer of each executor: so many tasks that begin together, as many as there are cores, leave none out."""

    def each(_: Iterator[int]) -> Iterator[dict[str, Any]]:
        from pyspark import BarrierTaskContext  # noqa: PLC0415 - in the worker

        BarrierTaskContext.get().barrier()
        yield probe.answer(question)

    cloudpickle.register_pickle_by_value(probe)
    try:
        found = context.parallelize(range(tasks), tasks).barrier().mapPartitions(each).collect()
    finally:
        cloudpickle.unregister_pickle_by_value(probe)
    return list({(one["host"], one["wrote"]): one for one in found}.values())
