"""Kafka Streams' published semantics on Spark: many cases side by side in one service, an output each.

pytest tests/conformance/test_on_spark.py --cases DIR

How the records of a case are cut decides about `suppress`, so its cases are played record by record, and about what
rows of a stream find in a table, so these take turns with its changes; all others are played in two parts. On the
driver `test_conformance.py` looks at each record of each case.
"""

from __future__ import annotations

import os
from collections import Counter
from datetime import datetime
from itertools import pairwise
from typing import Any

import polars as pl
import pytest

import everstate as es
from everstate.log.descriptions import TopicConfig
from everstate.testing.schemas import Schemas
from tests.conformance.expectations import final_table, rows_after, tables_after, waits
from tests.conformance.services import OUTPUT, operation, sent
from tests.figures import PLAYED

pytestmark = [
    pytest.mark.spark,
    pytest.mark.long,
    pytest.mark.skipif("EVERSTATE_LONG_UNTIL" in os.environ, reason="takes a quarter of an hour: make long-spark"),
]

#: Outputs of a service that one run is for.
PACK = 36
#: The key of records that only move time, by the type of keys.
_CLOCK = {str: "clock", int: -424_242, float: -424_242.5}
_CLOCKS = frozenset(_CLOCK.values())
_SENT = {"key": pl.Binary, "value": pl.Binary, "ts": pl.Int64}


class Apart:
    """One case of several that share a service: its topics begin with its place.

    Args:
        app: The service.
        place: Which of its cases.
        case: The case.
    """

    def __init__(self, app: es.Service, place: int, case: dict[str, Any]) -> None:
        self.app = app
        self.case = case
        self.output = f"c{place}-{OUTPUT}"
        self._place = place
        operation(self, case).to(self.output)

    def topic(self, name: str) -> str:
        """A topic of the case."""
        return f"c{self._place}-{name}"

    def stream(self, topic: str, **options: Any) -> es.Stream:
        """As of a service of its own."""
        return self.app.stream(self.topic(topic), **options)

    def table(self, topic: str, **options: Any) -> es.Table:
        """As of a service of its own."""
        return self.app.table(self.topic(topic), **options)

    def global_table(self, topic: str, **options: Any) -> Any:
        """As of a service of its own."""
        return self.app.global_table(self.topic(topic), **options)

    @property
    def parts(self) -> list[list[dict[str, Any]]]:
        """The records, as they are cut.

        Kafka Streams has one stream time for all topics of a task, so a record of one moves the time of the others:
        each gets a record of a key that no case has.
        """
        inputs, topics = self.case["inputs"], sorted({record["topic"] for record in self.case["inputs"]})
        steps, now = [], 0
        for record in inputs:
            now = max(now, record["ts"])
            others = [topic for topic in topics if topic != record["topic"]] if self._timed else []
            steps.append([record, *(self._moving(topic, now) for topic in others)])
        if waits(self.case):
            steps[-1] += [self._moving(topic, now + waits(self.case)) for topic in topics]
        if self.case["operator"].startswith("suppress"):
            return steps
        if _is_lookup(self.case):
            return [[record for step in part for record in step] for part in _in_turns(steps)]
        middle = len(steps) // 2
        return [[record for step in part for record in step] for part in (steps[:middle], steps[middle:])]

    def _moving(self, topic: str, ts: int) -> dict[str, Any]:
        """A record that only moves time."""
        inputs = [record for record in self.case["inputs"] if record["topic"] == topic]
        value = next((record["value"] for record in inputs if record["value"] is not None), None)
        keys = [record["key"] for record in inputs if record["key"] is not None]
        return {"topic": topic, "key": _CLOCK[type(keys[0]) if keys else str], "value": value, "ts": ts}

    @property
    def _timed(self) -> bool:
        return self._waits or any(word in self.case["operator"] for word in ("stream_stream", "window", "suppress"))

    @property
    def _waits(self) -> bool:
        """Whether rows wait for changes of a table; they come out when time has passed, not with the next row."""
        return self.case["operator"] == "stream_table_join" and "grace_ms" in self.case["params"]

    def check(self, rows: list[tuple[Any, Any]]) -> None:
        """What came out is what the case says.

        Args:
            rows: Keys and values of the output, in order.
        """
        rows = [(key, value) for key, value in rows if (key[0] if isinstance(key, tuple) else key) not in _CLOCKS]
        if self.case["result_kind"] == "stream":
            late = self.case.get("late_inputs") or ()
            stated = {} if self._waits else rows_after(self.case)
            stated = stated or {len(self.case["inputs"]): self.case["expected_final"]}
            since = dict(zip(stated, [0, *stated], strict=False))
            excused = {after: any(since[after] <= place < after for place in late) for after in stated}
            wanted = [(excused[after], (o["key"], o["value"])) for after, given in stated.items() for o in given]
            found = Counter(rows)
            assert not found - Counter(row for _, row in wanted), self.case["name"]
            assert not Counter(row for is_late, row in wanted if not is_late) - found, self.case["name"]
            return
        final = final_table(self.case)
        if final is None:
            final = (tables_after(self.case) or [None])[-1]
        if final is None:
            return
        assert {key: value for key, value in dict(rows).items() if value is not None} == final, self.case["name"]


def _is_lookup(case: dict[str, Any]) -> bool:
    """Whether rows of a stream meet what a table has when they arrive."""
    return case["operator"] in ("stream_table_join", "stream_global_join")


def _in_turns(steps: list[list[dict[str, Any]]]) -> list[list[list[dict[str, Any]]]]:
    """Records of tables and then rows of streams, again and again: within a micro-batch tables come first."""
    parts = [[steps[0]]]
    for before, step in pairwise(steps):
        if before[0]["topic"] == "stream" and step[0]["topic"] != "stream":
            parts.append([])
        parts[-1].append(step)
    return parts


def packs(cases: list[dict[str, Any]]) -> list[tuple[int, list[dict[str, Any]]]]:
    """The cases of each service, with its shards: how many keys are held back is a matter of one shard."""
    single = [case for case in cases if case["operator"].startswith("suppress") or _is_lookup(case)]
    rest = [case for case in cases if case not in single]
    found = [(1 + place // PACK % 2, rest[place : place + PACK]) for place in range(0, len(rest), PACK)]
    return [*found, (1, single)] if single else found


def test_cases_on_spark_give_what_they_say(built_cases, log, run) -> None:
    playable = [case for case in built_cases if not case.get("expect_error") and case["inputs"]]
    for number, (shards, pack) in enumerate(packs(playable)):
        app = es.Service(f"conformance-{number}", shards=shards)
        played = [Apart(app, 100 * number + place, case) for place, case in enumerate(pack)]
        schemas = Schemas()
        schemas.learn(app.units())
        keyless = {each.topic(r["topic"]) for each in played for r in each.case["inputs"] if r["key"] is None}
        for unit in app.units():
            for source in unit.sources:
                compact = source.kind == "table" and source.topic not in keyless
                log.create_topic(source.topic, TopicConfig(partitions=1, compact=compact), exist_ok=True)
        for turn in range(max(len(each.parts) for each in played)):
            for each in played:
                for record in each.parts[turn] if turn < len(each.parts) else ():
                    topic = each.topic(record["topic"])
                    key, value = schemas.written(topic, *sent(each.case, record))
                    log.append(topic, pl.DataFrame([(key, value, record["ts"])], schema=_SENT, orient="row"))
            run(app)
        for each in played:
            records = log.read(each.output, 0, 0).select("key", "value").rows()
            each.check([(_key(schemas.key(each.output, k)), _value(schemas.value(each.output, v))) for k, v in records])
            PLAYED["conformance on Spark"] += 1


def _key(key: Any) -> Any:
    """A key as a case writes it: times in milliseconds."""
    if not isinstance(key, tuple):
        return key
    return tuple(round(part.timestamp() * 1000) if isinstance(part, datetime) else part for part in key)


def _value(value: Any) -> Any:
    return value["value"] if isinstance(value, dict) else value
