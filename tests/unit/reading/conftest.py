from __future__ import annotations

import json

import polars as pl
import pytest

from everstate.log import EmbeddedLog, MemoryLog, TopicConfig
from everstate.log.records import CONTENT


@pytest.fixture(params=["embedded", "memory"])
def log(request, tmp_path):
    return EmbeddedLog(tmp_path / "log") if request.param == "embedded" else MemoryLog()


@pytest.fixture
def topic(log):
    """Creates a topic with records (key, value, ts, partition); a value that is no bytes is written as JSON."""

    def create(name: str, *records: tuple, partitions: int = 1) -> str:
        log.create_topic(name, TopicConfig(partitions=partitions))
        rows = [
            {
                "key": record[0].encode() if isinstance(record[0], str) else record[0],
                "value": record[1]
                if record[1] is None or isinstance(record[1], bytes)
                else json.dumps(record[1]).encode(),
                "ts": record[2] if len(record) > 2 else place,
                "partition": record[3] if len(record) > 3 else 0,
            }
            for place, record in enumerate(records)
        ]
        kinds = {name: CONTENT[name] for name in ("key", "value", "ts")}
        if rows:
            log.append(name, pl.DataFrame(rows, schema={**kinds, "partition": pl.Int32()}))
        return name

    return create
