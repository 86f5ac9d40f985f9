"""Random schedules of edits, input, crashes, takeovers and processes that wake up after they were replaced.

A failure names its seed; `EVERSTATE_SIMULATION_SEED=N pytest tests/simulation/test_schedules.py` plays it again.
"""

from __future__ import annotations

import os
import random

import pytest

from everstate.log.crash import CRASH_POINTS
from tests.simulation.test_crash_points import ELSEWHERE
from tests.simulation.world import World

pytestmark = pytest.mark.slow

WORLDS = [("balances",), ("even",), ("moved",), ("balances", "doubled")]
POINTS = [name for name in CRASH_POINTS if not name.startswith(ELSEWHERE)]
ONE = os.environ.get("EVERSTATE_SIMULATION_SEED")


def play(seed: int) -> None:
    """One schedule, with all that must hold after each step."""
    rng = random.Random(seed)
    world = World(rng.choice(WORLDS), shards=rng.choice((1, 1, 2)))
    world.send(rng.randrange(1, 10))
    version = 1
    for _ in range(rng.randrange(2, 6)):
        version = rng.choice((version, rng.randrange(1, 5)))
        outcome = step(world, rng, version)
        world.check_always()
        if outcome == "done":
            world.check(version)
        world.send(rng.randrange(4))
    assert world.deploy(version, take_over=True) == "done"
    world.check(version)


def step(world: World, rng: random.Random, version: int) -> str:
    kind = rng.choice(("undisturbed", "crash", "crash", "zombie", "zombie"))
    point = (rng.choice(POINTS), rng.choice((1, 1, 2, 3)))
    if kind == "undisturbed":
        return world.deploy(version)
    if kind == "crash":
        return world.deploy(version, point)
    other = rng.choice((version, rng.randrange(1, 5)))
    # Nobody gets in between the beginning of a transaction and its end.
    point = (point[0].replace("inside_transaction", "before_transaction"), point[1])

    def meanwhile() -> None:
        world.send(rng.randrange(3))
        if world.deploy(other, take_over=True) == "done":
            world.check_always()

    world.deploy(version, point, meanwhile)
    return "unknown"


def seeds(count: int, block: int) -> list[range]:
    return [range(first, first + block) for first in range(0, count, block)]


def played(block: range) -> None:
    for seed in block:
        try:
            play(seed)
        except BaseException as error:
            error.add_note(f"EVERSTATE_SIMULATION_SEED={seed}")
            raise


@pytest.mark.parametrize("block", seeds(100, 10), ids=str)
def test_random_schedules_converge_and_never_publish_twice(block):
    played(range(int(ONE), int(ONE) + 1) if ONE else block)


@pytest.mark.long
@pytest.mark.parametrize("block", seeds(250, 50), ids=str)
def test_hundreds_of_random_schedules_converge_and_never_publish_twice(block):
    played(block)
