"""What the simulation remembers of a batch is what the batch gives."""

from __future__ import annotations

import pytest

from everstate.generations.in_process.executor import InProcessExecutor
from tests.simulation.remembering import RememberingExecutor
from tests.simulation.shop import OUTPUTS
from tests.simulation.world import World


def published(executor: type[InProcessExecutor]) -> dict:
    world = World(executor=executor)
    for logic in (0, 1, 1, 0, 2):
        world.send(9)
        assert world.deploy(logic) == "done"
    world.check(2)
    records = {output: world.records(output) for output in OUTPUTS}
    return {output: [(r.partition, r.offset, r.key, r.value, r.ts) for r in of] for output, of in records.items()}


@pytest.mark.slow
def test_batches_that_are_remembered_give_what_computed_ones_do():
    first, again = published(RememberingExecutor), published(RememberingExecutor)
    assert first == again == published(InProcessExecutor)
    assert all(first.values())
