"""Kills at random moments around a cutover, several in a row: what comes out is as if there had been none."""

from __future__ import annotations

import random
import time

import pytest

from everstate.generations.registry import Registry
from tests.recovery.test_generation_crash import World

pytestmark = [pytest.mark.spark, pytest.mark.recovery, pytest.mark.long]

SEED = 4
CUTOVERS = 5
OUTPUTS = ("balances", "even")
#: Of a way back that needs no Spark: from the start of the process to its end.
FLIP_S = 4.0


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    world.log.close()


def statuses(world):
    registry = Registry(world.log, "changing")
    return {generation.status.value for output in OUTPUTS for generation in registry.read(output).generations}


def kill(process, world, moment, delay):
    """Kill a deployment some time after it has got somewhere, or after a time if it does not."""
    deadline = time.monotonic() + FLIP_S
    while process.poll() is None and time.monotonic() < deadline and moment not in statuses(world):
        time.sleep(0.002)
    time.sleep(delay)
    process.kill()
    process.communicate()


def require_no_litter(world):
    for output in OUTPUTS:
        known = {generation.name for generation in Registry(world.log, "changing").read(output).generations}
        folders = (world.log.path / "state" / "changing" / output).iterdir()
        assert {folder.name for folder in folders if folder.is_dir()} <= known


def test_deployments_killed_at_random_moments_end_as_undisturbed_ones(world):
    chance = random.Random(SEED)
    world.send(60)
    for version in (1, 2):
        world.deployed(version)
        world.check(version)
    for number in range(CUTOVERS):
        version = 1 + number % 2
        if chance.random() < 0.25:
            world.send(chance.randrange(1, 8))
        for _ in range(chance.randrange(1, 5)):
            moment = chance.choice(["recalculating", "ready", "publishing", "never"])
            process = world.start(version, *chance.choice([(), ("--once",)]))
            kill(process, world, moment, chance.choice([0.0, 0.02 * chance.random(), 0.3 * chance.random()]))
        world.deployed(version)
        world.check(version)
        require_no_litter(world)
