from __future__ import annotations

import pytest

from everstate.errors import LeaseHeldError
from everstate.log import Holder, leasing
from everstate.log.embedded.upkeep import garbage
from everstate.log.timing import GRACE_MS, JUMP_MS, Sight

pytestmark = pytest.mark.slow

DAY_MS = 86_400_000
YEARS_MS = 70 * 365 * DAY_MS


def values(log, topic="events"):
    begin = log.begin_offsets([topic])[topic][0]
    return log.read(topic, 0, begin)["value"].to_list()


def live(log, days, topic="events"):
    """Something happens every hour."""
    for hour in range(24 * days):
        log.now_ms += DAY_MS // 24
        log.send(topic, (b"k", b"%d" % hour))


def test_retention_clock_that_jumps_ahead_and_is_set_right_deletes_nothing(log):
    log.topic("events", retention_ms=2 * DAY_MS)
    live(log, 1)
    before = values(log)
    log.now_ms += YEARS_MS
    log.send("events", (b"k", b"wrong"))
    log.compact("events")
    log.now_ms += DAY_MS // 2
    log.send("events", (b"k", b"still wrong"))
    log.now_ms -= YEARS_MS + DAY_MS // 2
    log.compact("events")
    assert values(log) == [*before, b"wrong", b"still wrong"]


def test_retention_clock_that_is_corrected_a_little_after_a_jump_is_not_believed_the_sooner(log):
    log.topic("events", retention_ms=2 * DAY_MS)
    live(log, 1)
    before = values(log)
    log.now_ms += YEARS_MS
    log.send("events", (b"k", b"wrong"))
    for step_ms in (-1, -2_000, 5_000, -1):
        log.now_ms += step_ms
        log.send("events", (b"k", b"still wrong"))
        log.compact("events")
    assert values(log)[: len(before)] == before


def test_retention_goes_on_after_the_clock_was_wrong(log):
    log.topic("events", retention_ms=2 * DAY_MS)
    live(log, 1)
    log.now_ms += YEARS_MS
    log.send("events", (b"k", b"wrong"))
    log.now_ms -= YEARS_MS
    live(log, 4)
    log.compact("events")
    assert b"wrong" not in values(log)
    assert len(values(log)) <= 24 * 3


def test_retention_after_a_clock_that_was_years_ahead_and_is_set_right_late_goes_on_a_day_later(log):
    log.topic("events", retention_ms=2 * DAY_MS)
    live(log, 1)
    log.now_ms += DAY_MS * 20 // 24 + YEARS_MS  # it rested, so a day has passed before anybody looks at the clock
    log.send("events", (b"k", b"wrong"))
    log.now_ms += DAY_MS * 8 // 24 - YEARS_MS
    assert len(values(log)) == 25
    live(log, 5)
    assert b"wrong" not in values(log)
    assert len(values(log)) <= 24 * 2 + 12


def test_retention_after_a_rest_of_weeks_goes_on_a_day_later(log):
    log.topic("events", retention_ms=2 * DAY_MS)
    live(log, 1)
    log.now_ms += 30 * DAY_MS
    log.send("events", (b"k", b"again"))
    assert len(values(log)) == 25
    live(log, 2)
    assert len(values(log)) <= 24 * 2 + 12


def test_retention_of_a_log_that_is_used_once_a_week_goes_on(log):
    log.topic("events", retention_ms=2 * DAY_MS)
    for week in range(10):
        log.now_ms += 7 * DAY_MS
        log.send("events", (b"k", b"%d" % week))
    assert len(values(log)) <= 3


def test_retention_record_from_the_future_does_not_keep_what_follows(log):
    import polars as pl

    log.topic("events", retention_ms=DAY_MS)
    log.append("events", pl.DataFrame({"key": [b"k"], "value": [b"2096"], "ts": [log.now_ms + YEARS_MS]}))
    live(log, 3)
    assert b"2096" not in values(log)
    assert len(values(log)) <= 24 + 6
    assert GRACE_MS < DAY_MS


def test_tombstones_stay_when_the_clock_jumps_ahead(log):
    log.topic("table", compact=True, delete_retention_ms=DAY_MS)
    log.send("table", (b"a", b"1"), (b"a", None))
    log.now_ms += YEARS_MS
    log.compact("table")
    assert log.read("table", 0, 0)["value"].to_list() == [None]
    assert log.tombstones_dropped({"table": {0: 1}}, since_ms=0) == {}


def test_collect_files_noted_under_a_wrong_clock_go_all_the_same(log):
    log.topic("table", compact=True)
    log.send("table", (b"a", b"1"))
    log.now_ms += YEARS_MS
    log.send("table", (b"a", b"2"))
    log.compact("table")
    log.now_ms -= YEARS_MS
    garbage.collect(log._store)
    assert len(log.files()) == 1


@pytest.mark.parametrize("ahead", [-1, 1])
def test_lease_of_another_host_with_a_clock_far_off_can_be_taken(log, ahead):
    elsewhere = Holder("elsewhere", 7, 1.0)
    log.acquire("shop", holder=elsewhere)
    log.now_ms += 10_000
    with pytest.raises(LeaseHeldError, match="process 7 on elsewhere"):
        log.acquire("shop")
    log.now_ms += ahead * 2 * leasing.HEARTBEAT_TIMEOUT_MS
    assert log.holder("shop") is None
    assert log.acquire("shop").token == 2


def test_sight_second_jump_before_the_first_is_believed_keeps_the_first_time():
    seen = Sight(1000, 0, 0).at(1000 + 2 * JUMP_MS).at(1000 + 2 * JUMP_MS + JUMP_MS // 2)
    again = seen.at(seen.seen_ms + 3 * JUMP_MS)
    assert again.trusted_ms == seen.seen_ms  # a day had passed since the first one, so that was right
    assert seen.age_clock(seen.seen_ms) == 1000
    assert seen.age_clock(1000 + 3 * JUMP_MS) == 1000 + 3 * JUMP_MS
