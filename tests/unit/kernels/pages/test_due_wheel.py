"""The index of when keys are due: nothing is lost, nothing comes early, and little is read."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from everstate.kernels.pages.addressing import POLICY
from everstate.kernels.pages.due_wheel import DueWheel
from everstate.kernels.pages.page_store import MemoryPages
from everstate.kernels.pages.slices import Slices

TIMES = st.one_of(st.integers(0, 3_000), st.integers(0, 10**7), st.integers(0, 10**11))
STEPS = st.lists(st.tuples(st.lists(TIMES, max_size=5), TIMES), max_size=8)


@given(STEPS)
def test_wheel_gives_each_key_when_it_is_due_and_not_before(steps):
    pages, known = MemoryPages(), None
    waiting, now, number = {}, 0, 0
    for times, later in steps:
        wheel = DueWheel(slices := Slices(pages, 0, POLICY, known))
        added = {f"k{number + place}".encode(): time for place, time in enumerate(times)}
        number += len(times)
        waiting |= added
        if added:
            wheel.add(pl.DataFrame({"$key": list(added), "$due": list(added.values())}), now)
        now = max(now, later)
        due = {key for key, time in waiting.items() if time <= now}
        assert set(wheel.pop(now)) == due
        waiting = {key: time for key, time in waiting.items() if key not in due}
        known = slices.close()
    assert len(Slices(pages, 0, POLICY, known).numbers) <= max(1, len(waiting))


def test_wheel_keeps_the_earlier_of_two_times_of_a_key_in_a_slice():
    wheel = DueWheel(Slices(MemoryPages(), 0, POLICY))
    for due in (700, 200, 900):
        wheel.add(pl.DataFrame({"$key": [b"a"], "$due": [due]}), 0)
    assert wheel.pop(199).to_list() == []
    assert wheel.pop(200).to_list() == [b"a"]


def test_wheel_reads_nothing_before_something_is_due_and_not_all_when_it_is():
    pages = MemoryPages()
    slices = Slices(pages, 0, POLICY)
    count = 50_000
    times = [number * 86_400_000 // count for number in range(count)]
    DueWheel(slices).add(pl.DataFrame({"$key": [b"%d" % n for n in range(count)], "$due": times}), 0)
    known = slices.close()
    slices = Slices(pages, 0, POLICY, known)
    pages.reset_counts()
    assert len(DueWheel(slices).pop(-1)) == 0
    assert pages.gets == 0
    assert len(DueWheel(slices).pop(2_000)) == 2
    assert pages.gets <= 2
