"""Kafka Streams' published semantics on Spark: many cases side by side in one service, an output each.

pytest tests/conformance/test_on_spark.py --cases DIR

How the records of a case are cut decides about `suppress` alone, so its cases are played record by record; all others
in two parts. `test_conformance.py` looks at each record of each case, on the driver.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any

import polars as pl
import pytest

import everstate as es
from everstate.log.descriptions import TopicConfig
from everstate.testing.schemas import Schemas
from tests.conformance.expectations import final_table, tables_after, waits
from tests.conformance.services import OUTPUT, operation
from tests.figures import PLAYED

pytestmark = [pytest.mark.spark, pytest.mark.long]

#: Outputs of a service that one run is for.
PACK = 36
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

    @property
    def parts(self) -> list[list[dict[str, Any]]]:
        """The records, as they are cut."""
        inputs = self.case["inputs"]
        if self.case["operator"].startswith("suppress"):
            return [[record] for record in inputs]
        middle = len(inputs) // 2
        parts = [inputs[:middle], inputs[middle:]]
        if waits(self.case):  # a row without a key is in no session, but moves time
            last = max(inputs, key=lambda record: record["ts"])
            parts[1] = [*parts[1], {**last, "key": None, "ts": last["ts"] + waits(self.case)}]
        return parts

    def check(self, rows: list[tuple[Any, Any]]) -> None:
        """What came out is what the case says.

        Args:
            rows: Keys and values of the output, in order.
        """
        if self.case["result_kind"] == "stream":
            late = self.case.get("late_inputs") or ()
            stated = enumerate(self.case["expected_per_record"])
            wanted = [(number in late, (o["key"], o["value"])) for number, given in stated for o in given]
            found = Counter(rows)
            assert not found - Counter(row for _, row in wanted), self.case["name"]
            assert not Counter(row for is_late, row in wanted if not is_late) - found, self.case["name"]
            return
        final = final_table(self.case)
        if final is None:
            final = (tables_after(self.case) or [])[-1]
        assert {key: value for key, value in dict(rows).items() if value is not None} == final, self.case["name"]


def packs(cases: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The cases of each service: those that are played record by record are in the last."""
    single = [case for case in cases if case["operator"].startswith("suppress")]
    rest = [case for case in cases if not case["operator"].startswith("suppress")]
    return [part[first : first + PACK] for part in (rest, single) for first in range(0, len(part), PACK)]


def test_cases_on_spark_give_what_they_say(built_cases, log, run) -> None:
    for number, pack in enumerate(packs(built_cases)):
        app = es.Service(f"conformance-{number}", shards=1 + number % 2)
        played = [Apart(app, 100 * number + place, case) for place, case in enumerate(pack)]
        schemas = Schemas()
        schemas.learn(app.units())
        for unit in app.units():
            for source in unit.sources:
                compact = source.kind == "table"
                log.create_topic(source.topic, TopicConfig(partitions=1, compact=compact), exist_ok=True)
        for turn in range(max(len(each.parts) for each in played)):
            for each in played:
                for record in each.parts[turn] if turn < len(each.parts) else ():
                    topic = each.topic(record["topic"])
                    key, value = schemas.written(topic, record["key"], record["value"])
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
