"""Large batches are sent by tasks: each is one publisher of the log's.

A task may run twice, or after the batch that it belongs to was given up; the log sends each share once all the same.
Workers stay, and with them their producers: a publisher that meets its own again need not open another one.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any, cast

from everstate.engine.query.opened import opened
from everstate.errors.carrying import carried
from everstate.log.abilities import Spreading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from everstate.log.protocol import Log


def spread(log: Log, publishers: int, session: Callable[[], SparkSession]) -> None:
    """Have a log's large batches sent by so many tasks, if it can.

    Args:
        log: The log.
        publishers: How many.
        session: Gives the session that has the tasks.
    """
    if publishers == 1 or not isinstance(log, Spreading):
        return
    opening = pickle.dumps(log)

    def run(shares: Sequence[Any]) -> list[Any]:
        context = session().sparkContext
        return cast("list[Any]", context.parallelize(shares, len(shares)).mapPartitions(sending(opening)).collect())

    log.spread(publishers, run)


def sending(opening: bytes) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """The function for `mapPartitions`; what it holds may be secret, and is never shown."""

    def send(shares: Iterable[Any]) -> Iterator[Any]:
        with carried():
            log = cast("Spreading", opened(opening))
            for share in shares:
                yield log.send(share)

    return send
