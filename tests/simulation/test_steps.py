"""What a plan prints is what is done: the steps of a plan are those that a rollout of it walks, in this order."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest

import everstate as es
from everstate import col
from everstate.errors import FencedError
from everstate.generations.deploy.options import Wishes
from everstate.generations.deploy.run import Run
from everstate.generations.registry import Registry
from everstate.plan.document import to_json
from everstate.plan.steps import Build, CarryOver, Convert, Discard, Publish, Step
from tests.simulation.scenes import SCENES, scene
from tests.simulation.world import SERVICE, Process, Silence, World, drain


def walked(process) -> tuple:
    """The plan of a process before it begins, and what it has done at its end."""
    shown = []

    @contextlib.contextmanager
    def display(changes):
        shown.append(changes)
        yield Silence()

    try:
        printed = process.run.plan().plan
        with process.run.rollout(process.run.begin(), display, lambda: None) as rollout:
            rollout.drain()
    finally:
        with contextlib.suppress(FencedError):
            process.site.leases.release()
    return printed, tuple(shown[0].walked)


def by_output(steps) -> dict[str, list]:
    found: dict[str, list] = {}
    for step in steps:
        found.setdefault(step.output, []).append(step)
    return found


@pytest.mark.parametrize("name", [name for name in SCENES if name != "replacing"])
def test_rollout_walks_the_steps_that_the_plan_prints(name):
    world, version = scene(name)
    printed, done = walked(world.copy().process(version))
    assert done == printed.steps
    assert done


def test_rollout_that_replaces_a_process_walks_the_steps_of_each_output():
    world, version = scene("replacing")
    printed, done = walked(world.copy().process(version))
    assert by_output(done) == by_output(printed.steps)


def test_rollout_takes_every_kind_of_step_somewhere():
    kinds = {type(step) for name in SCENES for step in walked(scene(name)[0].copy().process(scene(name)[1]))[1]}
    world, version = scene("stream")
    again = world.copy()
    assert again.deploy(version) == "done"
    kinds |= {type(step) for step in walked(again.process(1))[1]}
    assert kinds == set(Step.__subclasses__()) - {CarryOver}


def test_rollout_whose_sample_disagrees_walks_the_recalculation_that_the_plan_announces():
    world = World(("moved",))
    for logic in (0, 1, 2):
        world.send(8)
        assert world.deploy(logic) == "done"
    printed, done = walked(world.process(3))
    assert printed.steps == (Convert("moved", 3), Publish("moved"))
    assert "If the sample disagrees, the whole output is recalculated." in printed.actions[0].follows
    assert done == (Convert("moved", 3), Discard("moved", 4), Build("moved", 3), Publish("moved", whole=True))


def counting(world: World, limit: int) -> Process:
    """A process that deploys a version whose changes hold for what comes."""
    app = es.Service(SERVICE, shards=1)
    rows = app.stream("payments", key="account", schema={"id": int, "amount": int}).filter(col("amount") >= limit)
    rows.group_by("account").agg(payments=es.count()).to("balances", on_change="continue")
    process = world.process(0)
    return replace(process, run=Run(app, Wishes()).at(process.site))


def test_rollout_of_a_version_that_goes_on_with_its_state_discards_what_was_being_built():
    world = World(("balances",))
    world.send(8)
    drain(counting(world, 0))
    assert world.deploy(1, ("build.round_ended", 1)) == "died"
    printed, done = walked(counting(world, 5))
    assert done == printed.steps == (Discard("balances", 2), CarryOver("balances", 1))
    assert [g.number for g in Registry(world.log, SERVICE).read("balances").generations] == [1]


def test_plan_document_has_each_step_in_words():
    world, version = scene("retiring")
    document = to_json(world.copy().process(version).run.plan().plan)
    assert '"step": "build",\n          "does": "a new generation is built alongside generation ' in document
