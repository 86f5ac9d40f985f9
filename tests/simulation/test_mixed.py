"""Random schedules of a service of windows, joins, timers, lifetimes and chains: edits, crashes, takeovers, ways back.

A failure names its seed; `EVERSTATE_SIMULATION_SEED=N pytest tests/simulation/test_mixed.py` plays it again.
"""

from __future__ import annotations

import os
import random

import pytest

from everstate.log.crash import CRASH_POINTS
from tests.figures import SIMULATED
from tests.simulation.mixed import OUTPUTS, Mixed, Version, changed
from tests.simulation.test_crash_points import ELSEWHERE
from tests.simulation.world import go_back

pytestmark = pytest.mark.slow

POINTS = [name for name in CRASH_POINTS if not name.startswith(ELSEWHERE)]
ONE = os.environ.get("EVERSTATE_SIMULATION_SEED")


def play(seed: int) -> Mixed:
    """One schedule, with all that must hold after each step."""
    rng = random.Random(seed)
    declared = tuple(rng.sample(OUTPUTS, rng.choice((1, 2, 3))))
    earlier = [Version(declared, *(rng.randrange(3) for _ in range(8)), shards=rng.choice((1, 1, 2)))]
    world = Mixed()
    world.send(rng, rng.choice((0, 4, 9)))
    for _ in range(rng.randrange(2, 6)):
        version = edited(rng, earlier)
        if step(world, rng, version, earlier) == "done":
            world.check(version)
        world.check_always()
        world.send(rng, rng.choice((0, 2, 6)))
    version = earlier[-1]
    assert world.deploy(version, take_over=True) == "done"
    world.check(version)
    world.let_time_pass()
    assert world.deploy(version) == "done"
    world.check(version)
    world.check_all_over(version)
    return world


def edited(rng: random.Random, earlier: list[Version]) -> Version:
    """The same version again, an earlier one, or one that differs in something."""
    kind = rng.choice(("same", "earlier", "changed", "changed", "changed"))
    version = rng.choice(earlier) if kind == "earlier" else earlier[-1]
    earlier.append(changed(rng, version, earlier[0].outputs) if kind == "changed" else version)
    return earlier[-1]


def step(world: Mixed, rng: random.Random, version: Version, earlier: list[Version]) -> str:
    """One process, and perhaps others while it stands still."""
    kind = rng.choice(("undisturbed", "crash", "crash", "zombie", "zombie", "back"))
    point = (rng.choice(POINTS), rng.choice((1, 1, 2, 3)))
    asked = rng.choice(((), (), version.outputs[:1]))
    if kind == "undisturbed":
        return world.deploy(version)
    if kind == "crash":
        return world.deploy(version, point, recalculate=asked)
    act = None
    if kind == "back":
        world.deploy(version)
        act = go_back
        if rng.random() < 0.5:
            world.deploy(version, rng.choice((None, point)), act=act)
            return "unknown"
    other, count = rng.choice((version, edited(rng, earlier))), rng.randrange(3)
    take_over = rng.choice((True, True, False))
    # Nobody gets in between the beginning of a transaction and its end.
    point = (point[0].replace("inside_transaction", "before_transaction"), point[1])

    def meanwhile() -> None:
        world.send(rng, count)
        if world.deploy(other, take_over=take_over, act=rng.choice((None, None, None, go_back))) == "done":
            world.check_always()

    world.deploy(version, point, meanwhile, act=act, recalculate=asked if act is None else ())
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
        SIMULATED["random schedules of many kinds of steps"] += 1


@pytest.mark.parametrize("block", seeds(6, 6), ids=str)
def test_schedules_of_many_kinds_of_steps_converge_and_never_publish_twice(block):
    played(range(int(ONE), int(ONE) + 1) if ONE else block)


@pytest.mark.long
@pytest.mark.parametrize("block", seeds(300, 150), ids=str)
def test_hundreds_of_schedules_of_many_kinds_of_steps_converge_and_never_publish_twice(block):
    played(block)
