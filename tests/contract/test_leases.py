from __future__ import annotations

import threading
from dataclasses import replace

import psutil
import pytest

from everstate.errors import FencedError, LeaseHeldError
from everstate.log import Holder, leasing

ELSEWHERE = Holder("another-machine", 4711, 1.0)


def test_acquire_while_the_holder_lives_is_refused_by_name(bench):
    bench.log.acquire("service")
    with pytest.raises(LeaseHeldError, match="'service' is in use by process"):
        bench.log.acquire("service")


def test_acquire_tokens_only_rise_also_after_a_release(bench):
    tokens = []
    for _ in range(3):
        lease = bench.log.acquire("service")
        tokens.append(lease.token)
        bench.log.release(lease)
    assert tokens == sorted(set(tokens))


def test_acquire_names_do_not_touch_each_other(bench):
    bench.log.acquire("a")
    bench.log.acquire("b")


def test_acquire_with_take_over_fences_the_holder(bench):
    old = bench.log.acquire("service")
    new = bench.log.acquire("service", take_over=True)
    assert new.token > old.token
    with pytest.raises(FencedError, match="taken over"):
        bench.log.heartbeat(old)
    bench.log.heartbeat(new)


def test_acquire_dead_process_of_this_machine_is_replaced_at_once(bench):
    lease = bench.log.acquire("probe")
    dead = replace(lease.holder, pid=2**22 + 12345)
    bench.log.acquire("service", holder=dead)
    assert bench.log.acquire("service").holder == lease.holder


def test_acquire_other_process_with_the_same_number_is_replaced_at_once(bench):
    me = bench.log.acquire("probe").holder
    bench.log.acquire("service", holder=replace(me, started=me.started - 1000))
    bench.log.acquire("service")


@pytest.mark.needs("clock")
def test_acquire_holder_on_another_machine_counts_as_dead_after_its_last_heartbeat(bench, monkeypatch):
    monkeypatch.setattr(leasing, "WATCH_S", 0.3)
    lease = bench.log.acquire("service", holder=ELSEWHERE)
    bench.clock.advance(20_000)
    bench.log.heartbeat(lease)
    bench.clock.advance(29_999)
    with pytest.raises(LeaseHeldError, match="process 4711 on another-machine"):
        bench.log.acquire("service")
    bench.clock.advance(1)
    assert bench.log.acquire("service").token > lease.token


@pytest.mark.needs("clock")
@pytest.mark.parametrize("hours", [-1, 1, 100])
def test_acquire_from_a_live_holder_whose_machine_has_another_time_is_refused(bench, monkeypatch, hours):
    monkeypatch.setattr(leasing, "WATCH_S", 5.0)
    lease = bench.log.acquire("service", holder=ELSEWHERE)
    asking = bench.with_clock(lambda: bench.clock() + hours * 3_600_000)

    def live():
        while not ended.wait(0.05):
            bench.clock.advance(3_000)
            bench.log.heartbeat(lease)

    ended = threading.Event()
    living = threading.Thread(target=live)
    living.start()
    try:
        with pytest.raises(LeaseHeldError, match="another-machine"):
            asking.acquire("service")
    finally:
        ended.set()
        living.join()
        asking.close()
    bench.log.heartbeat(lease)


@pytest.mark.needs("clock")
def test_acquire_while_a_machine_with_another_time_takes_the_lease_is_refused(bench, monkeypatch):
    looked = leasing.watched

    def slowly(look, asking, now_ms):
        seen = looked(look, asking, now_ms)
        if asking != ELSEWHERE:
            bench.clock.advance(-3_600_000)
            taken.append(bench.log.acquire("service", holder=ELSEWHERE))
            bench.clock.advance(3_600_000)
        return seen

    taken = []
    monkeypatch.setattr(leasing, "watched", slowly)
    with pytest.raises(LeaseHeldError, match="another-machine"):
        bench.log.acquire("service")
    bench.log.heartbeat(taken[0])


def test_acquire_from_a_machine_of_the_same_name_is_refused(bench, monkeypatch, tmp_path):
    other = tmp_path / "boot_id"
    other.write_text("0b5d7c1e-another-start\n")
    with monkeypatch.context() as there:
        there.setattr(leasing, "_BOOT_FILE", other)
        leasing._host.cache_clear()
        # Numbers of processes there mean nothing here, and this one is no process here.
        holder = replace(leasing.this_process(), pid=2**22 + 12345)
    leasing._host.cache_clear()
    lease = bench.log.acquire("service", holder=holder)
    with pytest.raises(LeaseHeldError):
        bench.log.acquire("service")
    bench.log.heartbeat(lease)


@pytest.mark.needs("clock")
def test_acquire_from_a_live_process_after_the_clock_was_set_is_refused(bench, monkeypatch):
    bench.log.acquire("service")
    created = psutil.Process.create_time
    monkeypatch.setattr(psutil.Process, "create_time", lambda process: created(process) + 3_600)
    bench.clock.advance(3_600_000)
    with pytest.raises(LeaseHeldError):
        bench.log.acquire("service")


def test_heartbeat_after_a_release_is_fenced(bench):
    lease = bench.log.acquire("service")
    bench.log.release(lease)
    with pytest.raises(FencedError, match="was released"):
        bench.log.heartbeat(lease)


def test_release_of_a_lease_that_was_taken_over_leaves_the_new_one(bench):
    old = bench.log.acquire("service")
    new = bench.log.acquire("service", take_over=True)
    bench.log.release(old)
    bench.log.heartbeat(new)


def test_tenure_says_what_is_known_of_a_lease_also_after_its_release(bench):
    assert bench.log.tenure("service") is None
    lease = bench.log.acquire("service")
    bench.pause(500)
    later = bench.clock()
    bench.log.heartbeat(lease)
    tenure = bench.log.tenure("service")
    assert (tenure.token, tenure.holder, tenure.held) == (lease.token, lease.holder, True)
    assert later <= tenure.heartbeat_ms <= bench.clock()
    bench.log.release(lease)
    assert bench.log.tenure("service").held is False
