"""A service on a standalone cluster of two workers, and Kafka."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long]


def test_service_on_two_workers_gives_what_a_plain_calculation_gives_and_is_changed_there(world):
    world.send(3000)
    world.run(1)
    assert world.outputs() == world.expected(1)
    world.send(1000)
    world.run(2)
    assert world.outputs() == world.expected(2)
