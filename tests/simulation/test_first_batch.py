"""A stream whose first version never got to its first micro-batch."""

from __future__ import annotations

from tests.simulation.world import World


def test_stream_edited_before_its_first_batch_publishes_what_was_there():
    world = World(("even",))
    world.send(9)
    assert world.deploy(1, ("log.commit.before_transaction", 1)) == "died"
    assert world.deploy(2) == "done"
    world.check(2)
