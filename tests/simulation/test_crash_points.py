"""A deployment that dies at any numbered point, and again during its recovery, ends as an undisturbed one does."""

from __future__ import annotations

from functools import cache

import pytest

from everstate.log.crash import CRASH_POINTS
from tests.simulation.world import World

pytestmark = pytest.mark.slow

#: Services that meet all points between them; the chain is one that is built in two levels.
WORLDS = [("balances", "doubled"), ("even",), ("moved",)]
#: What an edit never comes to in one process: disks, archives, a live process that is replaced, a first deployment, a
#: way back that is given up. The random schedules have the last three.
ELSEWHERE = (
    "log.append",
    "log.stage",
    "log.create",
    "log.compact",
    "log.retention",
    "log.merge",
    "log.garbage",
    "history.",
)
SCHEDULED = ("deployment.", "registry.active", "registry.retired")


@cache
def deployed(outputs: tuple[str, ...]) -> World:
    """Two versions, of which the third will delete the first one's state, and records that only that one will see."""
    world = World(outputs)
    for version in (0, 0, 1):
        world.send(8)
        assert world.deploy(version) == "done"
    world.send(3)
    return world


@cache
def points(outputs: tuple[str, ...], *, every: bool) -> list[tuple[str, int]]:
    """The crash points that a deployment of version 2 meets: each time that it does, or once by name."""
    world = deployed(outputs).copy()
    assert world.deploy(2) == "done"
    world.check(2)
    times = {name: world.met.count(name) if every else 1 for name in world.met}
    return [(name, hit + 1) for name, count in times.items() for hit in range(count)]


@pytest.mark.parametrize("outputs", WORLDS, ids="-".join)
def test_deployment_that_dies_at_any_point_is_finished_by_the_next_process(outputs):
    for point in points(outputs, every=True):
        world = deployed(outputs).copy()
        assert world.deploy(2, point) == "died", point
        world.check_always()
        world.send(3)
        assert world.deploy(2) == "done", point
        world.check(2)


@pytest.mark.long
@pytest.mark.parametrize("outputs", WORLDS, ids="-".join)
def test_deployment_that_dies_twice_at_any_two_points_is_finished_by_the_third_process(outputs):
    for first in points(outputs, every=False):
        dead = deployed(outputs).copy()
        assert dead.deploy(2, first) == "died", first
        for second in points(outputs, every=False)[::4]:
            world = dead.copy()
            world.send(2)
            assert world.deploy(2, second) in {"died", "done"}, (first, second)
            world.check_always()
            assert world.deploy(2) == "done", (first, second)
            world.check(2)


def test_simulation_meets_all_points_of_a_deployment():
    met = {name for outputs in WORLDS for name, _ in points(outputs, every=False)}
    assert {name for name in CRASH_POINTS if not name.startswith((*ELSEWHERE, *SCHEDULED))} - met == set()
