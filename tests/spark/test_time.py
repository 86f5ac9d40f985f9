"""Every step that goes by time on Spark: one shard and three, cut in two ways, against the driver and the plain models.

The models are those of `tests/equivalence`. A run of the service is one micro-batch of each output, so that steps which
depend on how records arrive have known batches.
"""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from typing import Any, NamedTuple

import polars as pl
import pytest

import everstate as es
from everstate import col
from everstate.log.descriptions import TopicConfig
from everstate.testing.schemas import Schemas
from tests.equivalence import (
    test_dedup,
    test_expire,
    test_process,
    test_stream_joins,
    test_suppress,
    test_table_windows,
    test_windows,
)
from tests.figures import PLAYED

pytestmark = [pytest.mark.spark, pytest.mark.long]

ROUNDS = 4
ROWS = 60
PARTITIONS = 3
SENT = {"key": pl.Binary, "value": pl.Binary, "ts": pl.Int64, "partition": pl.Int32}
STREAMS = ("join-inner", "join-left", "join-outer", "first", "processed", "beside")


class Record(NamedTuple):
    """What is sent."""

    topic: str
    key: Any
    value: Any
    ts: int
    partition: int | None


class History:
    """Random rows of every family, round by round, and what must come of them.

    Args:
        seed: Another history each.
    """

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.windows: list[list[test_windows.Row]] = []
        self.sold: list[list[tuple[str, Any]]] = []
        self.sides: list[list[test_stream_joins.Row]] = []
        self.ids: list[list[test_dedup.Row]] = []
        self.rows: list[list[test_expire.Row]] = []
        self.does: list[list[test_process.Row]] = []
        now = 0
        for number in range(ROUNDS):
            steps = [(number * ROWS + place, now := now + self.chance.randint(0, 3)) for place in range(ROWS)]
            self._add_streams(steps)
            self._add_tables(steps)

    def _add_streams(self, steps: list[tuple[int, int]]) -> None:
        chance = self.chance

        def late(now: int) -> int:
            return max(0, now - chance.choice([0, 0, 0, 2, 6, 15, 40]))

        def lane() -> int:
            return chance.randrange(PARTITIONS)

        amounts = [None, *range(-3, 10)]
        self.windows.append(
            [test_windows.Row(lane(), chance.choice("abcd"), late(now), chance.choice(amounts)) for _, now in steps]
        )
        self.sides.append(
            [
                test_stream_joins.Row(chance.randrange(2), lane(), chance.choice(["a", "b", "c", None]), late(now), n)
                for n, now in steps
            ]
        )
        self.ids.append(
            [
                test_dedup.Row(
                    lane(), chance.choice(["a", "b", None]), chance.choice(["x", "y", "z", None]), late(now), n
                )
                for n, now in steps
            ]
        )
        self.does.append(
            [
                test_process.Row(lane(), chance.choice(["k", "l", None]), late(now), n, self._actions())
                for n, now in steps
            ]
        )

    def _actions(self) -> tuple[str, ...]:
        chance, few = self.chance, range(4)
        words = [
            *("show", "aside", "forget", "fail", "result"),
            f"set {chance.choice(few)}",
            f"append {chance.choice(few)}",
            f"put {chance.choice('xyz')} {chance.choice(few)}",
            f"remove {chance.choice('xyz')}",
            *(f"timer {chance.choice(test_process.NAMES)} {chance.randint(-4, 25)}" for _ in range(3)),
            f"cancel {chance.choice(test_process.NAMES)}",
        ]
        return tuple(chance.choices(words, k=chance.randint(0, 4)))

    def _add_tables(self, steps: list[tuple[int, int]]) -> None:
        chance = self.chance
        keys = "pqrstuvw"
        self.sold.append(
            [
                (chance.choice(keys), chance.choice([None, test_table_windows.Sold(chance.choice("ab"), now // 3, 5)]))
                for _, now in steps
            ]
        )
        self.rows.append(
            [
                test_expire.Row(chance.choice("abcdef"), chance.choice([None, 1, 2, 3]), max(0, now - 3))
                for _, now in steps
            ]
        )

    def records(self, number: int) -> list[Record]:
        """What is sent in a round."""
        found = []
        for place, row in enumerate(self.windows[number], number * ROWS):
            value = b"{" if row.amount is None else {"g": row.group, "amount": row.amount, "at": row.ts}
            found.append(Record("w", f"{row.group}{place}", value, 5000 - row.ts, row.partition))
        for key, sold in self.sold[number]:
            value = None if sold is None else {"g": sold.group, "at": sold.at, "amount": sold.amount}
            found.append(Record("t", key, value, 1000 + len(found), None))
        for row in self.sides[number]:
            value = {f"n{row.side}": row.number, "at": row.ts}
            found.append(Record(f"j{row.side}", row.key, value, 5000 - row.ts, row.partition))
        for row in self.ids[number]:
            value = {"id": row.id, "n": row.number, "at": row.ts}
            found.append(Record("d", row.key, value, 5000 - row.ts, row.partition))
        for row in self.rows[number]:
            value = None if row.n is None else {"n": row.n, "kind": row.group}
            found.append(Record("e", row.key, value, row.ts, test_expire.lane(row.key, PARTITIONS)))
        for row in self.does[number]:
            value = {"does": list(row.does), "n": row.number, "at": row.ts}
            found.append(Record("p", row.key, value, 9000 - row.ts, row.partition))
        return found


WINDOWS = {
    "tumbling": {"size": 10, "advance": 10, "grace": 7, "keep": 40, "final": False},
    "hopping": {"size": 10, "advance": 4, "grace": 0, "keep": None, "final": True},
    "session": {"size": 4, "advance": 4, "grace": 7, "keep": None, "final": True},
    "sliding": {"size": 5, "advance": 5, "grace": 1, "keep": 20, "final": False},
}
AFTER, UNTIL, MOST = 20, 12, 2
WITHIN = (3, 6)


def window_case(history: History, shape: str) -> test_windows.Case:
    rows = [row for part in history.windows for row in part]
    return test_windows.Case(rows, PARTITIONS, shape, **WINDOWS[shape])


def service(history: History, shards: int) -> es.Service:
    app = es.Service(f"time-{shards}", shards=shards)
    rows = app.stream("w", key="id", schema={"g": str, "amount": int, "at": int}, time=col("at"))
    summed = {"n": es.count(), "total": col("amount").sum(), "least": col("amount").min()}
    for shape in WINDOWS:
        case = window_case(history, shape)
        by_group = rows.group_by("g")
        by_group.window(test_windows.window(case), **test_windows.options(case)).agg(**summed).to(f"{shards}-{shape}")
    case = window_case(history, "tumbling")
    kept = rows.group_by("g").window(test_windows.window(case), late_to=f"{shards}-late", **test_windows.options(case))
    kept.agg(n=es.count(), last=col("amount").last(), all=es.collect("amount")).to(f"{shards}-kept")
    held = rows.group_by("g").window(test_windows.window(window_case(history, "hopping"))).agg(**summed)
    held.suppress(until="close").to(f"{shards}-closed")
    add_tables(app, shards)
    add_streams(app, shards)
    return app


def add_tables(app: es.Service, shards: int) -> None:
    sold = app.table("t", key="id", schema={"id": str, "g": str, "at": int | None, "amount": int})
    for kind in (es.hopping("10ms", "4ms"), es.session("4ms")):
        windowed = sold.group_by("g").window(kind, time=col("at"))
        windowed.agg(n=es.count(), last=col("amount").last()).to(f"{shards}-table-{kind.shape}")
    table = app.table("e", key="k", schema={"n": int, "kind": str})
    table.select("n").expire(after=f"{AFTER}ms").to(f"{shards}-alive")
    table.select("n").suppress(until=f"{UNTIL}ms").to(f"{shards}-held")
    if shards == 1:
        table.select("n").suppress(max_keys=MOST).to("1-crowded")


def add_streams(app: es.Service, shards: int) -> None:
    sides = [app.stream(f"j{side}", key="k", schema={f"n{side}": int, "at": int}, time="at") for side in (0, 1)]
    within = tuple(f"{each}ms" for each in WITHIN)
    for how in ("inner", "left", "outer"):
        sides[0].join(sides[1], within=within, grace="2ms", how=how).to(f"{shards}-join-{how}")
    ids = app.stream("d", key="k", schema={"id": str | None, "n": int, "at": int}, time="at")
    ids.dedup("id", within="10ms").to(f"{shards}-first")
    does = app.stream("p", key="k", schema={"does": list[str], "n": int, "at": int}, time="at")
    sides_ = {"side": test_process.SHOWN}
    made = does.process(
        test_process.act,
        on_timer=test_process.ring,
        schema=test_process.SHOWN,
        sides=sides_,
        states=test_process.STATES,
    )
    made.to(f"{shards}-processed", sides={"side": f"{shards}-beside"})


class Published:
    """What a service has published, on whatever."""

    def __init__(self, app: es.Service, shards: int, rows: dict[str, list[tuple[bytes | None, bytes | None]]]) -> None:
        schemas = Schemas()
        schemas.learn(app.units())
        self._shards = shards
        self._rows = {
            topic: [(schemas.key(topic, key), schemas.value(topic, value)) for key, value in found]
            for topic, found in rows.items()
        }

    def table(self, topic: str) -> dict[Any, Any]:
        """The latest value of every key."""
        latest = dict(self._rows[f"{self._shards}-{topic}"])
        return {key: value for key, value in latest.items() if value is not None}

    def stream(self, topic: str) -> dict[Any, list[Any]]:
        """The values of each key, in order."""
        found = defaultdict(list)
        for key, value in self._rows[f"{self._shards}-{topic}"]:
            found[key].append(value)
        return dict(found)

    def same(self, topic: str) -> Any:
        """What must be the same wherever the service ran."""
        name = topic.partition("-")[2]
        if name.startswith("join") or name == "first":  # rows without a key have no order among each other
            return Counter(json.dumps(row, default=str) for row in self._rows[topic])
        return self.stream(name) if name in STREAMS else self.table(name)


def compare(found: Published, history: History, shards: int, rounds: list[list[int]]) -> None:
    """Everything against its model; of steps that go by arrival the batches are the runs."""
    for shape in WINDOWS:
        case = window_case(history, shape)
        table, _, late = test_windows.expected(case)
        assert found.table(shape) == {k: {n: v[n] for n in ("n", "total", "least")} for k, v in table.items()}, shape
        if shape == "tumbling":
            assert found.table("kept") == {k: {n: v[n] for n in ("n", "last", "all")} for k, v in table.items()}
            letters = Counter(letter["key"] for letter in found.table("late").values())
            assert letters == Counter(f"{case.rows[number].group}{number}" for number in late)
        if shape == "hopping":
            assert found.table("closed") == found.table("hopping")
        assert table, shape
    for shape, size in (("hopping", 10), ("session", 4)):
        records = [record for part in history.sold for record in part]
        table = test_table_windows.expected(test_table_windows.Case(records, size, 4), shape)
        assert found.table(f"table-{shape}") == {k: {n: v[n] for n in ("n", "last")} for k, v in table.items()}, shape
    compare_tables(found, history, shards, rounds)
    compare_streams(found, history, rounds)


def compare_tables(found: Published, history: History, shards: int, rounds: list[list[int]]) -> None:
    alive = test_expire.Model(PARTITIONS)
    for row in (row for part in history.rows for row in part):
        alive.take(row)
    assert found.table("alive") == alive.tables(AFTER, 1)["alive"]
    for topic, until, most in (("held", UNTIL, None), ("crowded", None, MOST)):
        if topic == "crowded" and shards > 1:
            continue
        model = test_suppress.Model(test_suppress.Case([], PARTITIONS, shards, until, most))
        for part in rounds:
            model.take([test_suppress.Row(row.key, row.n, row.ts) for number in part for row in history.rows[number]])
        assert found.table(topic) == {key: {"n": n} for key, n in model.shown.items()}, topic


def compare_streams(found: Published, history: History, rounds: list[list[int]]) -> None:
    for how in ("inner", "left", "outer"):
        rows = [row for part in history.sides for row in part]
        wanted, _, _ = test_stream_joins.expected(test_stream_joins.Case(rows, PARTITIONS, how, *WITHIN, 2))
        joined = found.stream(f"join-{how}")
        assert Counter((k, v["n0"], v["n1"]) for k, values in joined.items() for v in values) == wanted, how
    batches = [[row for number in part for row in history.ids[number]] for part in rounds]
    passed, _ = test_dedup.expected(test_dedup.Case(batches, PARTITIONS, "column", 10))
    assert Counter((k, v["n"]) for k, values in found.stream("first").items() for v in values) == passed
    case = test_process.Case([[row for number in part for row in history.does[number]] for part in rounds], PARTITIONS)
    model = test_process.Model(case)
    for topic, wanted in (("processed", model.out), ("beside", model.beside)):
        assert {k: [v["text"] for v in values] for k, values in found.stream(topic).items()} == dict(wanted), topic


def send(log: Any, schemas: Schemas, records: list[Record]) -> None:
    parts = defaultdict(list)
    for record in records:
        key, value = schemas.written(record.topic, record.key, record.value)
        parts[record.topic].append((key, value, record.ts, record.partition))
    for topic, rows in parts.items():
        frame = pl.DataFrame(rows, schema=SENT, orient="row")
        log.append(topic, frame if frame["partition"].null_count() == 0 else frame.drop("partition"))


def on_driver(app: es.Service, history: History, shards: int, rounds: list[list[int]]) -> Published:
    driver = es.testing.Driver(app, partitions=PARTITIONS, shards=shards)
    for part in rounds:
        with driver.batch():
            for record in (record for number in part for record in history.records(number)):
                driver.send(*record)
    topics = driver._deployment.topics
    return Published(app, shards, {t: [(r.key, r.value) for r in topics.all(t)] for t in published(app)})


def published(app: es.Service) -> list[str]:
    return [topic for unit in app.units() for topic in (unit.output.topic, *(side.topic for side in unit.sides))]


def on_log(app: es.Service, shards: int, log: Any) -> Published:
    rows = {}
    for topic in published(app):
        parts = range(log.describe(topic).config.partitions)
        rows[topic] = [row for part in parts for row in log.read(topic, part, 0).select("key", "value").rows()]
    return Published(app, shards, rows)


@pytest.mark.parametrize("seed", [3])
def test_steps_that_go_by_time_on_spark_equal_the_driver_and_the_models(seed, log, run) -> None:
    history = History(seed)
    runs = {1: [[number] for number in range(ROUNDS)], 3: [[0, 1, 2], [3]]}
    apps = {shards: service(history, shards) for shards in runs}
    schemas = Schemas()
    schemas.learn(apps[1].units())
    for topic in sorted({topic for unit in apps[1].units() for topic in unit.topics}):
        log.create_topic(topic, TopicConfig(partitions=PARTITIONS, compact=topic in "te"))
    for number in range(ROUNDS):
        send(log, schemas, history.records(number))
        for shards, rounds in runs.items():
            if any(part[-1] == number for part in rounds):
                run(apps[shards])
    for shards, rounds in runs.items():
        driven = on_driver(service(history, shards), history, shards, rounds)
        compare(driven, history, shards, rounds)
        found = on_log(apps[shards], shards, log)
        compare(found, history, shards, rounds)
        for topic in published(apps[shards]):
            assert found.same(topic) == driven.same(topic), topic
            PLAYED["time on Spark"] += 1
