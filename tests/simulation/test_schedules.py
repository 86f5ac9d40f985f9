"""Random schedules of edits, input, crashes, takeovers and processes that wake up after they were replaced.

A failure names its seed; `EVERSTATE_SIMULATION_SEED=N pytest tests/simulation/test_schedules.py` plays it again.
"""

from __future__ import annotations

import os
import random
from dataclasses import replace

import pytest

from everstate.log.crash import CRASH_POINTS
from tests.figures import SIMULATED
from tests.simulation.shop import Version
from tests.simulation.test_crash_points import ELSEWHERE
from tests.simulation.world import World

pytestmark = pytest.mark.slow

#: What a service may declare at its largest; "doubled" needs "balances".
DECLARED = [("balances",), ("even",), ("moved",), ("balances", "doubled"), ("balances", "doubled", "even")]
POINTS = [name for name in CRASH_POINTS if not name.startswith(ELSEWHERE)]
ONE = os.environ.get("EVERSTATE_SIMULATION_SEED")


def play(seed: int) -> World:
    """One schedule, with all that must hold after each step."""
    rng = random.Random(seed)
    declared = rng.choice(DECLARED)
    version = Version(1, declared, shards=rng.choice((1, 1, 2)))
    world, earlier = World(declared), [version]
    world.send(rng.choice((0, 2, 6, 9)))  # a topic may be empty when its first reader comes
    for _ in range(rng.randrange(2, 6)):
        version = edited(rng, earlier)
        if step(world, rng, version, earlier) == "done":
            world.check(version)
        world.check_always()
        world.send(rng.choice((0, 1, 3)))
    assert world.deploy(version, take_over=True) == "done"
    world.check(version)
    return world


def edited(rng: random.Random, earlier: list[Version]) -> Version:
    """The same version again, an earlier one, or one with another logic, configuration, outputs or shards."""
    version, declared = earlier[-1], earlier[0].outputs
    kind = rng.choice(("same", "back", "logic", "logic", "logic", "configuration", "outputs", "shards"))
    if kind == "back":
        version = rng.choice(earlier)
    elif kind == "logic":
        version = replace(version, logic=rng.randrange(1, 5))
    elif kind == "configuration":
        version = replace(version, least=rng.choice((0, 4, 100)))
    elif kind == "outputs":
        version = replace(version, outputs=declared[: rng.randrange(1, len(declared) + 1)])
    elif kind == "shards":
        version = replace(version, shards=3 - version.shards)
    earlier.append(version)
    return version


def step(world: World, rng: random.Random, version: Version, earlier: list[Version]) -> str:
    """One process, and perhaps others while it stands still."""
    kind = rng.choice(("undisturbed", "again", "crash", "crash", "zombie", "zombie"))
    point = (rng.choice(POINTS), rng.choice((1, 1, 2, 3)))
    asked = rng.choice(((), (), version.outputs[:1]))
    if kind == "undisturbed":
        return world.deploy(version)
    if kind == "again":
        return again(world, version)
    if kind == "crash":
        return world.deploy(version, point, recalculate=asked)
    other = rng.choice((version, edited(rng, earlier)))
    take_over, input_meanwhile = rng.choice((True, True, False)), rng.randrange(3)
    # Nobody gets in between the beginning of a transaction and its end.
    point = (point[0].replace("inside_transaction", "before_transaction"), point[1])

    def meanwhile() -> None:
        world.send(input_meanwhile)
        if world.deploy(other, take_over=take_over) == "done":
            world.check_always()

    world.deploy(version, point, meanwhile, recalculate=asked)
    return "unknown"


def again(world: World, version: Version) -> str:
    """A recalculation that nothing has led to publishes nothing."""
    if (outcome := world.deploy(version)) == "done":
        before = world.written()
        assert world.deploy(version, recalculate=version.outputs) == "done"
        assert world.written() == before
    return outcome


def seeds(count: int, block: int) -> list[range]:
    return [range(first, first + block) for first in range(0, count, block)]


def played(block: range) -> None:
    for seed in block:
        try:
            play(seed)
        except BaseException as error:
            error.add_note(f"EVERSTATE_SIMULATION_SEED={seed}")
            raise
        SIMULATED["random schedules"] += 1


@pytest.mark.parametrize("block", seeds(100, 25), ids=str)
def test_random_schedules_converge_and_never_publish_twice(block):
    played(range(int(ONE), int(ONE) + 1) if ONE else block)


@pytest.mark.long
@pytest.mark.parametrize("block", seeds(2_000, 250), ids=str)
def test_thousands_of_random_schedules_converge_and_never_publish_twice(block):
    played(block)
