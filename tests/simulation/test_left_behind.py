"""What processes that died or were replaced have left of generations that are no more is gone after the next start."""

from __future__ import annotations

import pytest

from tests.simulation.world import World


def deployed(outputs: tuple[str, ...] = ("balances",)) -> World:
    world = World(outputs)
    world.send(9)
    assert world.deploy(1) == "done"
    world.send(3)
    return world


def test_folder_of_a_generation_that_died_before_it_was_known_is_not_left_behind():
    world = deployed()
    assert world.deploy(2, ("registry.planned.before", 1)) == "died"
    assert world.deploy(1) == "done"
    world.check(1)


def test_folder_of_a_first_generation_that_died_before_it_was_known_is_not_left_behind():
    world = World(("balances", "even"))
    assert world.deploy(1, ("registry.active.before", 1)) == "died"
    assert world.deploy(2) == "done"
    world.check(2)


@pytest.mark.parametrize("point", ["registry.planned.after", "registry.recalculating.after", "batch.before_state"])
def test_replaced_process_that_goes_on_with_a_discarded_generation_leaves_nothing_behind(point):
    world = deployed()

    def meanwhile() -> None:
        assert world.deploy(3, take_over=True) == "done"

    assert world.deploy(2, (point, 1), meanwhile) == "fenced"
    assert world.deploy(3) == "done"
    world.check(3)


def test_half_planned_migration_is_planned_again_as_one():
    world = World(("moved",))
    for _ in range(3):
        world.send(9)
        assert world.deploy(0) == "done"
    assert world.deploy(1, ("registry.planned.after", 1)) == "died"
    world.met.clear()
    assert world.deploy(1) == "done"
    assert "migration.after_clone" in world.met
    world.check(1)


def test_process_that_wakes_up_after_a_way_back_leaves_the_topics_of_its_generation():
    world = World(("balances",))
    world.send(6)
    for _ in range(2):  # so that the next one has an old generation to forget, and sweeps after it
        assert world.deploy(1, recalculate=("balances",)) == "done"

    def way_back() -> None:
        world.send(2)
        assert world.deploy(1, take_over=True) == "done"

    world.deploy(3, ("registry.forgotten.after", 1), way_back)
    world.send(3)
    assert world.deploy(3, take_over=True) == "done"
    world.check(3)
