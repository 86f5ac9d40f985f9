"""A service of many kinds of steps in many versions, and what a first run of each of them publishes."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import polars as pl
from polars import col

import everstate as es
from everstate.generations.in_process.executor import InProcessExecutor
from everstate.log.descriptions import TopicConfig
from tests.simulation.world import SERVICE, World

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable

    from everstate.log.descriptions import Record

SCHEMAS: dict[str, dict[str, Any]] = {
    "payments": {"id": int, "group": str, "amount": int},
    "refunds": {"n": int},
    "names": {"name": str},
}
#: What a first run of a version gives at any moment; what waits for time is compared once all of it has passed.
TABLES = ("windowed", "again", "third", "pairs", "once", "active", "folded")
WAITING = ("held", "final")
#: What a first run over everything at once need not give: a row does not see a name that came after it was released.
BY_ARRIVAL = ("named",)
#: Streams in which each row of payments comes once, whatever the versions were.
STREAMS = ("rung", "aside", "plain")
#: What the others are; "again" reads "windowed", and "third" reads "again".
CHAINS = {"again": ("windowed",), "third": ("windowed", "again"), "aside": ("rung",)}
OUTPUTS = ("windowed", "again", "third", "pairs", "once", "active", "folded", "held", "named", "final", "rung", "plain")
#: Keys of the records that let all time pass; they are in both partitions of each topic.
LAST = tuple(f"z{number}" for number in range(12))


@dataclass(frozen=True)
class Version:
    """What an edit may change: each number is the place of a value in the list that stands where it is used."""

    outputs: tuple[str, ...]
    window: int = 0
    size: int = 0
    grace: int = 0
    keep: int = 0
    join: int = 0
    within: int = 0
    lasting: int = 0
    logic: int = 0
    shards: int = 1


@cache
def service(version: Version) -> es.Service:
    """The service; one object for each version, since describing it takes longer than a micro-batch of it."""
    app = es.Service(SERVICE, shards=version.shards)
    wanted = {name for output in version.outputs for name in (output, *CHAINS.get(output, ()))}
    rows = app.stream("payments", key="account", schema=SCHEMAS["payments"])
    rows = rows.filter(col("amount") % 5 != version.logic) if version.logic else rows
    _windows(rows, version, wanted)
    _lasting(rows, version, wanted)
    _functions(rows, version, wanted)
    if "pairs" in wanted:
        other = app.stream("refunds", key="account", schema=SCHEMAS["refunds"])
        before, after = (f"{part}ms" for part in [(0, 5), (5, 5), (9, 0)][version.within])
        how: Any = ["inner", "left", "outer"][version.join]
        joined = rows.join(other, within=(before, after), grace=_grace(version), how=how)
        joined.group_by("account").agg(n=es.count(), ids=col("id").sum(), m=col("n").sum()).to("pairs")
    if "named" in wanted:
        names = app.table("names", key="account", schema=SCHEMAS["names"], history="1h")
        known = rows.join(names, how="left", grace=_grace(version))
        known.group_by("account").agg(n=es.count(), named=col("name").is_not_null().sum()).to("named")
    return app


def _grace(version: Version) -> str:
    return f"{[0, 2, 7][version.grace]}ms"


def _windows(rows: es.Stream, version: Version, wanted: set[str]) -> None:
    size, keep = [4, 6, 10][version.size], [None, None, 8, 30][version.keep]
    shape: Any = [es.tumbling, es.session, es.sliding, es.hopping][version.window]
    window = shape(f"{size}ms", *(["2ms"] if shape is es.hopping else []), grace=_grace(version))
    kept = None if keep is None else f"{keep + 7}ms"
    if "windowed" in wanted:
        read = rows.group_by("group").window(window, keep=kept).agg(n=es.count(), all=col("id").sum())
        flow = read.to("windowed")
        if "again" in wanted:
            flow = flow.filter(col("n") > 1).group_by("window_start").agg(n=col("n").sum()).to("again")
        if "third" in wanted:
            flow.select(twice=col("n") * 2).to("third")
    if "final" in wanted:
        late = rows.group_by("group").window(window, emit="final", keep=kept, late_to="late")
        late.agg(n=es.count(), all=col("id").sum()).to("final")


def _lasting(rows: es.Stream, version: Version, wanted: set[str]) -> None:
    grouped = rows.group_by("account")
    lasting = [5, 15, 60][version.lasting]
    if "once" in wanted:
        once = rows.dedup(["account", "group"], within=f"{lasting}ms")
        once.group_by("account").agg(all=es.collect("id")).to("once")
    if "active" in wanted:
        grouped.agg(n=es.count()).expire(after=f"{lasting}ms").to("active")
    if "held" in wanted:
        grouped.agg(n=es.count(), all=col("id").sum()).suppress(until=f"{lasting}ms").to("held")


def _functions(rows: es.Stream, version: Version, wanted: set[str]) -> None:
    unit, wait = 10**version.logic, [1, 4, 9][version.lasting]

    def add(total: int, row: dict[str, Any]) -> int:
        return total + row["amount"] * unit

    def watch(row: dict[str, Any], ctx: es.Context) -> None:
        ctx.seen.set(ctx.seen.get(0) + 1)
        ctx.timer(str(row["id"]), at=ctx.time + wait)
        ctx.forward({"id": row["id"], "unit": unit}, to="aside")

    def ring(ctx: es.Context) -> dict[str, Any]:
        return {"id": int(ctx.name or 0), "unit": unit}

    if "folded" in wanted:
        rows.group_by("account").aggregate(lambda: 0, add, schema=int).to("folded")
    if "plain" in wanted:
        rows.select("id", unit=es.lit(unit)).to("plain")
    if "rung" in wanted:
        shape = {"id": int, "unit": int}
        states = [es.value("seen", int)]
        rung = rows.process(watch, on_timer=ring, schema=shape, sides={"aside": shape}, states=states)
        rung.to("rung", sides={"aside": "aside"})


@dataclass
class Mixed(World):
    """A world whose records have times, out of order and on two partitions of three topics."""

    executor: type[InProcessExecutor] = InProcessExecutor
    now: int = 0
    known: dict = field(default_factory=dict)

    def __post_init__(self) -> None:
        for topic in SCHEMAS:
            self.log.create_topic(topic, TopicConfig(partitions=2), exist_ok=True)

    def version(self, version: Version) -> Version:
        return version

    def service(self, version: Version) -> es.Service:
        return service(version)

    def send(self, rng: random.Random, count: int) -> None:
        """Some records of payments, and fewer of the others."""
        for number in range(len(self.sent), len(self.sent) + count):
            topic = rng.choice(("payments", "payments", "payments", "refunds", "names"))
            self.now += rng.randrange(7)
            values = {
                "payments": {"id": number, "group": rng.choice("xy"), "amount": number * 7 % 10},
                "refunds": {"n": number},
                "names": {"name": f"n{number}"},
            }
            self._append(topic, f"a{rng.randrange(4)}", values[topic], max(0, self.now - rng.choice((0, 0, 1, 4, 15))))

    def let_time_pass(self) -> None:
        """Records of keys of their own, so late that nothing waits any longer."""
        for turn in (1, 2, 3):
            for key in LAST:
                for topic, value in (("payments", {"id": -1, "group": "z", "amount": 9}), ("refunds", {"n": 0})):
                    self._append(topic, key, value, self.now + 100_000 * turn)
                self._append("names", key, {"name": ""}, self.now + 100_000 * turn)

    def _append(self, topic: str, key: str, value: dict[str, Any], ts: int) -> None:
        self.sent.append((topic, key, value, ts))
        frame = pl.DataFrame({"key": [key.encode()], "value": [json.dumps(value).encode()], "ts": [ts]})
        self.log.append(topic, frame)

    # -- what must hold -----------------------------------------------------------------------------------------------

    def first_run(self, version: Version) -> dict[str, dict[str, Any]]:
        """The tables of a first run of a version over all that was sent."""
        driver = es.testing.Driver(service(version), partitions=2)
        read = {topic for unit in service(version).units() for topic in unit.topics}
        with driver.batch():
            for topic, key, value, ts in self.sent:
                if topic in read:
                    driver.send(topic, key, value, ts=ts)
        return {output: _table(driver._all(output)) for output in names_of(version)}

    def check(self, version: Version) -> None:
        """I1 to I5 after a deployment that got to its end."""
        declared, first = names_of(version), self.first_run(version)
        for output in TABLES:
            assert self.table(output) == first.get(output, {}), output
        self.check_always()
        self.check_generations(declared)

    def check_all_over(self, version: Version) -> None:
        """The same of what waits for time, after all of it has passed; a recalculation finds nothing else."""
        declared, first = names_of(version), self.first_run(version)
        for output in WAITING:
            assert _ours(self.table(output)) == _ours(first.get(output, {})), output
        # What is held back of the last keys is published: whatever is being built holds nothing back.
        before = {topic: self.our_records(topic) for topic in (*OUTPUTS, "late", "aside")}
        again = tuple(output for output in OUTPUTS if output in declared)
        assert self.deploy(version, recalculate=again) == "done"
        assert {topic: self.our_records(topic) for topic in before} == before

    def our_records(self, topic: str) -> int:
        """How many records a topic has but for keys that let time pass."""
        return sum(b"z" not in record.key for record in self.records(topic))

    def check_always(self) -> None:
        """What holds at any moment: nothing is written twice in a row, and rows of streams come once."""
        for output in (*TABLES, *WAITING, *BY_ARRIVAL):
            last: dict[bytes, bytes | None] = {}
            for record in self.records(output):
                assert last.get(record.key) != record.value, (output, record.key, record.value)
                last[record.key] = record.value
        for stream in STREAMS:
            found = Counter(json.loads(record.value)["id"] for record in self.records(stream))
            del found[-1]
            assert max(found.values(), default=1) == 1, (stream, found)


def names_of(version: Version) -> set[str]:
    """The outputs that a version declares."""
    return {unit.output.topic for unit in service(version).units()}


def _table(records: Iterable[Record]) -> dict[str, Any]:
    latest = {record.key: record.value for record in records}
    return {key.decode(): json.loads(value) for key, value in latest.items() if value is not None}


def _ours(table: dict[str, Any]) -> dict[str, Any]:
    return {key: row for key, row in table.items() if "z" not in key}


def changed(rng: random.Random, version: Version, declared: tuple[str, ...]) -> Version:
    """An edit of one thing."""
    values = {"window": 4, "size": 3, "grace": 3, "keep": 4, "join": 3, "within": 3, "lasting": 3, "logic": 3}
    name = rng.choice(sorted(values))
    kind = rng.random()
    if kind < 0.15:
        return replace(version, outputs=tuple(rng.sample(declared, rng.randrange(1, len(declared) + 1))))
    if kind < 0.25:
        return replace(version, shards=3 - version.shards)
    return replace(version, **{name: rng.randrange(values[name])})
