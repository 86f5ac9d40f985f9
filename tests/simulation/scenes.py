"""Deployments that are about to happen; between them they meet every crash point that one process can come to."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from tests.simulation.shop import Version
from tests.simulation.world import World

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.world import Point


def _edited(*outputs: str) -> tuple[World, Version]:
    """Two versions, of which the third will delete the first one's state, and records that only that one will see."""
    world = World(outputs)
    for logic in (0, 0, 1):
        world.send(8)
        assert world.deploy(logic) == "done"
    world.send(3)
    return world, world.version(2)


def _first() -> tuple[World, Version]:
    world = World(("balances", "even"))
    world.send(8)
    return world, world.version(1)


def _retiring() -> tuple[World, Version]:
    """One output is gone, another one is edited."""
    world, version = _edited("balances", "even", "moved")
    return world, replace(version, outputs=("balances", "even"))


def _giving_up() -> tuple[World, Version]:
    """A version that was active before was on its way back when its process died, and a third one comes."""
    world, version = _edited("balances")
    assert world.deploy(0, ("registry.ready.after", 1)) == "died"
    return world, version


def _replacing() -> tuple[World, Version]:
    """The version before runs in a process of its own, which stands still."""
    world, version = _edited("even")
    world.process(1).site.leases.take_publishing()
    return world, version


SCENES: dict[str, Callable[[], tuple[World, Version]]] = {
    "chain": lambda: _edited("balances", "doubled"),
    "stream": lambda: _edited("even"),
    "migration": lambda: _edited("moved"),
    "first": _first,
    "retiring": _retiring,
    "giving up": _giving_up,
    "replacing": _replacing,
}


@cache
def scene(name: str) -> tuple[World, Version]:
    """The world just before a deployment, and the version that is deployed; take a copy of it."""
    return SCENES[name]()


@cache
def points(name: str) -> tuple[Point, ...]:
    """The crash points that the deployment meets, each time that it does."""
    before, version = scene(name)
    world = before.copy()
    assert world.deploy(version) == "done"
    world.check(version)
    return tuple((point, world.met[: at + 1].count(point)) for at, point in enumerate(world.met))


def died(name: str, point: Point) -> World:
    """The world after the deployment has died there."""
    before, version = scene(name)
    world = before.copy()
    assert world.deploy(version, point) == "died", point
    world.check_always()
    return world
