from collections.abc import Callable, Sequence
from typing import Any

import pytest

import everstate as es

Record = tuple[str, str | None, Any, int]


@pytest.fixture(scope="session")
def play() -> Callable[..., es.testing.Driver]:
    """Plays a history of (topic, key, value, ts) on a driver, cut into micro-batches of the given lengths."""

    def played(
        service: es.Service, history: Sequence[Record], cuts: Sequence[int] = (), shards: int = 1, partitions: int = 1
    ) -> es.testing.Driver:
        driver = es.testing.Driver(service, partitions=partitions, shards=shards)
        start = 0
        for length in [*cuts, len(history)]:
            with driver.batch():
                for topic, key, value, ts in history[start : start + length]:
                    driver.send(topic, key, value, ts)
            start += length
        return driver

    return played
