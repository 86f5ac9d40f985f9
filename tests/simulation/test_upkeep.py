"""Retention and compaction while a version is recalculated: its result is whole, or nothing of it is published."""

from __future__ import annotations

from collections import Counter

import pytest

from everstate.errors import HistoryTruncatedError, OffsetOutOfRangeError
from everstate.log.descriptions import TopicConfig
from everstate.log.memory import MemoryLog
from tests import effort
from tests.simulation.world import World

pytestmark = [pytest.mark.slow, pytest.mark.hypothesis]  # the long run takes every moment, others some

DAY_MS = 86_400_000
KINDS = {"retention": {"retention_ms": 10 * DAY_MS}, "compaction": {"compact": True}}


class Cleared:
    """A world whose source a first version has read; it can be cleared of all that is old or superseded."""

    def __init__(self, config: dict) -> None:
        self.now_ms = 1_700_000_000_000
        log = MemoryLog(clock=lambda: self.now_ms)
        log.create_topic("payments", TopicConfig(partitions=2, **config))
        self.world = World(("balances", "moved"), log=log)
        self.world.send(20)
        self.now_ms += DAY_MS
        assert self.world.deploy(1) == "done"
        self.published = self.world.written()

    def clear(self) -> None:
        for _ in range(30):
            self.now_ms += DAY_MS // 2
            self.world.log.maintain("payments")
        if self.world.log.describe("payments").config.compact:
            self.world.log.compact("payments")


def moments(config: dict) -> list[tuple[str, int]]:
    """Every crash point of a recalculation but those that nobody gets into, each time that it is met."""
    world = Cleared(config).world
    world.met.clear()
    assert world.deploy(3) == "done"
    return [(at, n + 1) for at, times in Counter(world.met).items() if "inside" not in at for n in range(times)]


@pytest.mark.parametrize("kind", KINDS)
def test_source_cleared_at_any_moment_of_a_recalculation_gives_all_or_nothing(kind):
    config, outcomes = KINDS[kind], Counter()
    for moment in moments(config)[:: 1 if effort.LEVEL == "full" else 8]:
        source = Cleared(config)
        try:
            assert source.world.deploy(3, moment, source.clear) == "done"
        except OffsetOutOfRangeError:
            outcomes["refused"] += 1
            assert source.world.written() == source.published, moment
            with pytest.raises(HistoryTruncatedError, match=f"to {kind}"):
                source.world.deploy(3, take_over=True)
            assert source.world.written() == source.published, moment
        else:
            outcomes["whole"] += 1
            source.world.check(3)
    assert min(outcomes["refused"], outcomes["whole"]) > 1, outcomes


def test_records_that_went_before_they_were_read_are_named_with_the_command_that_goes_on_without_them():
    source = Cleared(KINDS["retention"])
    source.world.send(5)
    source.clear()
    with pytest.raises(OffsetOutOfRangeError, match="are gone: retention has deleted them") as lost:
        source.world.deploy(1)
    assert "--recalculate OUTPUT --accept-truncated payments" in lost.value.hint
    assert source.world.written() == source.published
    source.world.send(6)
    again = {"recalculate": ("balances", "moved"), "accept_truncated": ("payments",)}
    assert source.world.deploy(1, take_over=True, **again) == "done"
    assert source.world.written() != source.published
    assert source.world.deploy(1) == "done"
