from __future__ import annotations

from everstate.generations.removals import removal_service
from everstate.log import vectors
from everstate.log.planning import Given, Planner, Timing, Told, suited
from everstate.log.stops import Stops
from everstate.log.waiting import waits_for

CLOCKED = Timing(ordered=True, clocked=True)
WAITING = Timing(waits=(("t",),), idle_ms={"t": 5000})


def test_clock_moves_with_records_and_without_them_every_second():
    planner = Planner(CLOCKED, Stops.of([]))
    start = planner.end({"t": {0: 0}}, {"t": {0: 0}}, 10, 700)
    assert start == {"t": {0: 0}, "$clock": {0: 700}}
    assert planner.end(start, {"t": {0: 0}}, 10, 1600) == start
    assert vectors.clock_of(planner.end(start, {"t": {0: 0}}, 10, 1700)) == 1700
    assert planner.end(start, {"t": {0: 3}}, 10, 800) == {"t": {0: 3}, "$clock": {0: 800}}


def test_clock_that_is_set_back_stands_still():
    end = Planner(CLOCKED, Stops.of([])).end({"t": {0: 0}, "$clock": {0: 900}}, {"t": {0: 1}}, 10, 100)
    assert vectors.clock_of(end) == 900


def test_recalculation_finds_the_recorded_clock_and_that_of_older_commits():
    stops = Stops.of([{"t": {0: 1}}, {"t": {0: 2}, "$clock": {0: 80}}, {"t": {0: 2}, "$clock": {0: 90}}], [70, 85, 95])
    planner = Planner(CLOCKED, stops)
    assert planner.end({"t": {0: 0}}, {"t": {0: 5}}, 1, 500) == {"t": {0: 1}, "$clock": {0: 70}}
    whole = planner.end({"t": {0: 0}}, {"t": {0: 5}}, 2, 500)
    assert whole == {"t": {0: 2}, "$clock": {0: 90}}
    assert planner.told({"t": {0: 0}}, whole) == Told(90, (0, 3), ())
    assert planner.end(whole, {"t": {0: 5}}, 9, 500) == {"t": {0: 5}, "$clock": {0: 500}}


def test_recalculation_of_what_does_not_go_by_the_clock_leaves_ticks_out():
    stops = Stops.of([{"t": {0: 1}, "$clock": {0: 70}}, {"t": {0: 1}, "$clock": {0: 80}}])
    assert list(suited(stops, Timing(ordered=True))) == [{"t": {0: 1}}]


def test_time_goes_no_further_than_a_limit():
    planner = Planner(CLOCKED, Stops.of([]), limit={"t": {0: 2}, "$clock": {0: 60}})
    assert planner.end({"t": {0: 0}}, {"t": {0: 2}}, 10, 500) == {"t": {0: 2}, "$clock": {0: 60}}


def quiet(times, timing=WAITING, **options):
    return Planner(timing, Stops.of([]), times=lambda _: times, **options)


def test_quiet_partition_gets_the_time_of_the_others_once_it_has_stood_still_for_long_enough():
    planner, ends = quiet({"t": {0: 300, 1: 100}}), {"t": {0: 5, 1: 5}}
    assert planner.end(ends, ends, 10, 0) == ends
    ahead = {"t": {0: 6, 1: 5}}
    assert planner.end(ends, ahead, 10, 4999) == ahead
    passed = planner.end(ahead, ahead, 10, 5000)
    assert passed == {**ahead, "$time:t": {1: 300}}
    assert planner.told(ahead, passed).times == (Given("t", 1, 5, 300),)
    assert planner.end(passed, passed, 10, 5001) == passed


def test_partition_with_records_that_are_not_read_is_not_quiet():
    planner, begin, ends = quiet({"t": {0: 300, 1: 100}}), {"t": {0: 5, 1: 5}}, {"t": {0: 6, 1: 7}}
    planner.end(begin, ends, 1, 0)
    assert vectors.given_times(planner.end(begin, {"t": {0: 7, 1: 7}}, 1, 6000)) == {}


def test_time_stands_still_if_all_are_quiet_or_one_that_is_not_has_no_time():
    ends = {"t": {0: 5, 1: 5}}
    for times in ({"t": {0: 300, 1: 100}}, {"t": {0: -1, 1: 100}}):
        planner = quiet(times)
        planner.end(ends, ends, 10, 0)
        assert planner.end(ends, ends, 10, 6000) == ends


def test_partition_that_never_had_a_record_is_passed_over_after_a_minute_anywhere():
    planner = quiet({"t": {0: 300, 1: -1}}, Timing(waits=(("t",),)))
    ends = {"t": {0: 5, 1: 0}}
    assert planner.end(ends, ends, 10, 0) == ends
    assert planner.end(ends, {"t": {0: 6, 1: 0}}, 10, 59_999) == {"t": {0: 6, 1: 0}}
    assert planner.end(ends, ends, 10, 60_000)["$time:t"] == {1: 300}


def test_new_partition_begins_where_the_steps_that_wait_for_its_topic_are():
    timing = Timing(waits=(("t",), ("t", "u")))
    begin = {"t": {0: 5}, "u": {0: 5}}
    planner = quiet({"t": {0: 300}, "u": {0: 7}}, timing)
    end = planner.end(begin, {"t": {0: 5, 1: 2}, "u": {0: 5}}, 10, 0)
    assert end == {"t": {0: 5, 1: 0}, "u": {0: 5}, "$time:t": {1: 300}}
    assert planner.told(begin, end).times == (Given("t", 1, 0, 300),)
    assert planner.end(end, {"t": {0: 5, 1: 2}, "u": {0: 5}}, 10, 0)["t"] == {0: 5, 1: 2}


def test_new_partition_is_not_read_before_the_time_of_the_others_is_known():
    planner = quiet(None)
    assert planner.end({"t": {0: 5}}, {"t": {0: 6, 1: 2}}, 10, 0) == {"t": {0: 6}}


def test_recalculation_gives_recorded_times_where_they_were_given_however_it_is_cut():
    stops = Stops.of([{"t": {0: 9, 1: 4}, "$time:t": {1: 300}}, {"t": {0: 9, 1: 8}, "$time:t": {1: 400}}])
    planner = Planner(WAITING, stops, live=False)
    first = planner.end({"t": {0: 0, 1: 0}}, {"t": {0: 20, 1: 20}}, 10, 0)
    assert first == {"t": {0: 5, 1: 5}, "$time:t": {1: 300}}
    assert planner.told({"t": {0: 0, 1: 0}}, first).times == (Given("t", 1, 4, 300),)
    second = planner.end(first, {"t": {0: 20, 1: 20}}, 40, 0)
    assert planner.told(first, second).times == (Given("t", 1, 8, 400),)


def test_times_given_to_a_topic_that_is_no_longer_passed_over_count_only_where_a_partition_begins():
    stops = Stops.of([{"t": {0: 9, 1: 0}, "$time:t": {1: 300}}, {"t": {0: 9, 1: 8}, "$time:t": {1: 400}}])
    found = suited(stops, Timing(waits=(("t",),)))
    assert [stop["$time:t"] for stop in found] == [{1: 300}, {1: 300}]


def test_what_a_batch_is_told_travels_as_text():
    known = Told(70, (2, 5), (Given("t", 1, 4, 300),))
    assert Told.from_json(known.to_json()) == known
    assert not Told.from_json(Told().to_json())


def test_partition_that_holds_time_up_is_named_if_it_is_far_behind():
    held = waits_for({"t": {0: 1_700_000_100_000, 1: 1_700_000_000_000}, "u": {0: 1_700_000_200_000}})
    assert str(held) == "partition 1 of t, which stands at 2023-11-14 22:13:20; the furthest is 200 s ahead"
    assert waits_for({"t": {0: -1, 1: -1}}) is None


def test_clock_of_the_tombstone_service_moves_as_often_as_its_time_asks_for():
    ticks = {
        after: Timing.of(removal_service("t", after, clock="wall").units()[0]).tick_ms for after in ("5s", "10m", "7d")
    }
    assert ticks == {"5s": 1000, "10m": 6000, "7d": 60_000}
    planner = Planner(Timing(clocked=True, tick_ms=6000), Stops.of([]))
    begin = {"t": {0: 0}, "$clock": {0: 10_000}}
    assert planner.end(begin, {"t": {0: 0}}, 10, 15_999) == begin
    assert planner.end(begin, {"t": {0: 0}}, 10, 16_000)["$clock"] == {0: 16_000}
    assert planner.end(begin, {"t": {0: 1}}, 10, 10_001)["$clock"] == {0: 10_001}
