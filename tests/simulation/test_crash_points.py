"""A deployment that dies at any numbered point, and again during its recovery, ends as an undisturbed one does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from everstate.log.crash import CRASH_POINTS
from tests.figures import SIMULATED
from tests.simulation.scenes import SCENES, died, points, scene

if TYPE_CHECKING:
    from tests.simulation.world import Point

pytestmark = pytest.mark.slow

#: What a deployment never comes to in one process: disks, archives, brokers and Spark's own sources.
ELSEWHERE = (
    "log.append",
    "log.stage.after_note",
    "log.create",
    "log.compact",
    "log.garbage",
    "history.",
    "feed.",
    "delivery.",
    "kafka.",
)
#: Into so many tests the pairs of a scene are divided, for processes that share them.
PARTS = 2


def recovered(name: str, point: Point) -> None:
    """The deployment dies there, and the next process finishes it."""
    version = scene(name)[1]
    world = died(name, point)
    world.send(3)
    assert world.deploy(version) == "done", point
    world.check(version)
    SIMULATED["crashes"] += 1


@pytest.mark.parametrize("name", SCENES)
def test_deployment_that_dies_at_any_point_is_finished_by_the_next_process(name):
    for point, hit in points(name):
        if hit == 1:
            recovered(name, (point, hit))


@pytest.mark.long
@pytest.mark.parametrize("name", SCENES)
def test_deployment_that_dies_when_it_meets_a_point_again_is_finished_by_the_next_process(name):
    for point, hit in points(name):
        if hit > 1:
            recovered(name, (point, hit))


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", SCENES)
def test_deployment_that_dies_twice_at_any_two_points_is_finished_by_the_third_process(name, part):
    version = scene(name)[1]
    for first in sorted({point for point, _ in points(name)})[part::PARTS]:
        dead = died(name, (first, 1))
        dead.send(2)
        recovered = dead.copy()
        assert recovered.deploy(version) == "done", first
        for second in dict.fromkeys(recovered.met):
            world = dead.copy()
            assert world.deploy(version, (second, 1)) == "died", (first, second)
            world.check_always()
            assert world.deploy(version) == "done", (first, second)
            world.check(version)
            SIMULATED["pairs of crashes"] += 1


def test_simulation_meets_all_points_of_a_deployment():
    met = {point for name in SCENES for point, _ in points(name)}
    assert {name for name in CRASH_POINTS if not name.startswith(ELSEWHERE)} - met == set()
