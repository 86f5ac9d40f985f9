"""Random schedules on a clock: timers, lifetimes and quiet partitions between crashes, takeovers and edits.

Nothing fires twice and nothing is lost, whichever process plans a micro-batch and whichever runs it; a recalculation
finds the times of the live runs, so it publishes nothing.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import polars as pl
import pytest

import everstate as es
from everstate import col
from everstate.generations.in_process.execution import InProcessExecution
from everstate.generations.in_process.executor import InProcessExecutor
from everstate.log.crash import CRASH_POINTS
from everstate.log.descriptions import TopicConfig
from tests.figures import SIMULATED
from tests.simulation.test_crash_points import ELSEWHERE
from tests.simulation.world import World

pytestmark = pytest.mark.slow

POINTS = [name for name in CRASH_POINTS if not name.startswith(ELSEWHERE)]
ONE = os.environ.get("EVERSTATE_SIMULATION_SEED")
OUTPUTS = ("rung", "final", "alive")
AFTER_S, SIZE = 30, 10


@cache
def service(logic: int) -> es.Service:
    app = es.Service("shop")
    rows = app.stream("payments", key="account", schema={"id": int, "wait": int}, idle_after="20s")
    rung = rows.process(watch, on_timer=ring, schema={"account": str, "id": int}, wall_clock=True)
    rung.with_columns(version=es.lit(logic)).to("rung")
    final = rows.group_by("account").window(es.tumbling(f"{SIZE}ms"), emit="final")
    final.agg(n=es.count(), all=es.collect("id")).select("n", "all", unit=es.lit(logic)).to("final")
    alive = rows.group_by("account").agg(last=col("id").max() * logic)
    alive.expire(after=f"{AFTER_S}s", clock="wall").to("alive")
    return app


def watch(row: dict[str, Any], ctx: es.Context) -> None:
    ctx.timer(str(row["id"]), at=ctx.now + row["wait"] * 1000, clock="wall")


def ring(ctx: es.Context) -> dict[str, Any]:
    return {"account": ctx.key, "id": int(ctx.due)}


class Clocked(InProcessExecution):
    """Goes on with what the process before has seen of quiet partitions: it would have lived as long."""

    stood: dict[str, dict[tuple[str, int], tuple[int, int]]]

    def start(self, *, once: bool) -> None:
        """Begin."""
        self._planner._stood = self.stood.setdefault(self.name, {})
        super().start(once=once)


@dataclass
class Timed(World):
    """A world with a clock."""

    now_ms: int = 1_700_000_000_000
    stood: dict = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.executor = self.executor_at
        self.log.create_topic("payments", TopicConfig(partitions=2), exist_ok=True)

    def service(self, version: int) -> es.Service:
        return service(version)

    def executor_at(self, *given: Any) -> InProcessExecutor:
        world = self

        class Executor(InProcessExecutor):
            def execution(self, output: Any, lease: Any, **how: Any) -> InProcessExecution:
                made = super().execution(output, lease, **how)
                if not how.get("closed"):
                    made.__class__, made.stood = Clocked, world.stood
                return made

        return Executor(*given, clock=lambda: self.now_ms)

    def send(self, rng: random.Random, count: int) -> None:
        first = len(self.sent)
        busy = rng.choice(([0], [1], [0, 1]))
        for number in range(first, first + count):
            at = self.now_ms + rng.randrange(-12, 3)
            row = {"account": f"a{number % 3}", "id": number, "at": at, "wait": rng.randrange(1, 25)}
            self.sent.append(row)
            value = json.dumps({"id": number, "wait": row["wait"]}).encode()
            frame = pl.DataFrame({"key": [row["account"].encode()], "value": [value], "ts": [at]})
            place = pl.Series("partition", [rng.choice(busy)], dtype=pl.Int32)
            self.log.append("payments", frame.with_columns(place))

    def rung(self) -> Counter[int]:
        return Counter(json.loads(record.value)["id"] for record in self.records("rung"))

    def check_always(self) -> None:
        assert max(self.rung().values(), default=1) == 1, "a timer has rung twice"
        for topic in ("final", "alive"):
            last: dict[bytes, bytes | None] = {}
            for record in self.records(topic):
                assert last.get(record.key) != record.value, (topic, record.key, record.value)
                last[record.key] = record.value


def play(seed: int) -> None:
    rng = random.Random(seed)
    world, version = Timed(OUTPUTS, shards=rng.choice((1, 1, 2))), 1
    world.send(rng, rng.choice((0, 3, 6)))
    for _ in range(rng.randrange(4, 9)):
        version = rng.choice((version, version, version, 3 - version))
        kind = rng.choice(("undisturbed", "undisturbed", "crash", "crash", "zombie"))
        point = (rng.choice(POINTS), rng.choice((1, 1, 2, 3)))
        if kind == "undisturbed":
            world.deploy(version)
        elif kind == "crash":
            world.deploy(version, point)
        else:
            place = (point[0].replace("inside_transaction", "before_transaction"), point[1])

            def meanwhile(other: int = rng.choice((1, 2))) -> None:
                world.now_ms += rng.randrange(3000)
                world.deploy(other, take_over=True)

            world.deploy(version, place, meanwhile)
        world.check_always()
        world.now_ms += rng.choice((0, 400, 5_000, 25_000))
        if rng.random() < 0.6:
            world.send(rng, rng.choice((1, 1, 3)))
    settled(world, version)


def settled(world: Timed, version: int) -> None:
    """After all that is due, each timer has rung once, and a recalculation finds nothing else."""
    assert world.deploy(version, take_over=True) == "done"
    world.now_ms += 25_000
    assert world.deploy(version) == "done"
    assert world.rung() == Counter(row["id"] for row in world.sent)
    before = {topic: len(world.records(topic)) for topic in OUTPUTS}
    assert world.deploy(version, recalculate=OUTPUTS) == "done"
    assert {topic: len(world.records(topic)) for topic in OUTPUTS} == before
    expected = {row["account"] for row in world.sent if row["at"] + AFTER_S * 1000 > world.now_ms}
    assert set(world.table("alive")) == expected
    world.now_ms += AFTER_S * 1000 + 1000
    assert world.deploy(version) == "done"
    assert world.table("alive") == {}
    world.check_always()


def seeds(count: int, block: int) -> list[range]:
    return [range(first, first + block) for first in range(0, count, block)]


def played(block: range) -> None:
    for seed in block:
        try:
            play(seed)
        except BaseException as error:
            error.add_note(f"EVERSTATE_SIMULATION_SEED={seed}")
            raise
        SIMULATED["random schedules on a clock"] += 1


@pytest.mark.parametrize("block", seeds(10, 10), ids=str)
def test_schedules_on_a_clock_fire_everything_once(block):
    played(range(int(ONE), int(ONE) + 1) if ONE else block)


@pytest.mark.long
@pytest.mark.parametrize("block", seeds(400, 100), ids=str)
def test_hundreds_of_schedules_on_a_clock_fire_everything_once(block):
    played(block)
