"""What only a log in memory has: processes that are made up, copies, and chunks that are merged."""

from __future__ import annotations

import pickle

import polars as pl
import pytest

from everstate.errors import FencedError, LeaseHeldError, LogError
from everstate.log import Commit, Holder, MemoryLog, TopicConfig, combined_digest, open_log
from everstate.log.crash import Crash, intercepted

FIRST, SECOND = Holder("here", 1, 1.0), Holder("here", 2, 2.0)


@pytest.fixture
def log():
    made = MemoryLog(clock=lambda: 1_700_000_000_000)
    made.create_topic("orders", TopicConfig(compact=True))
    return made


def frame(*values, key=b"k"):
    return pl.DataFrame({"key": [key] * len(values), "value": [str(value).encode() for value in values]})


def values(log, start=0, **options):
    return [int(value) for value in log.read("orders", 0, start, **options)["value"]]


def publish(log, lease, number):
    staged = log.stage_all("orders", frame(number))
    vectors = {"start": {"s": {0: number}}, "end": {"s": {0: number + 1}}}
    identity = {"service": "s", "output": "o", "generation": "g", "query_id": "q", "batch_id": number}
    return log.commit(Commit(**identity, **vectors, digest=combined_digest(staged), token=lease.token), staged)


def test_process_that_runs_keeps_its_lease_and_one_that_has_ended_loses_it_at_once(log):
    first, second = log.process(FIRST), log.process(SECOND)
    lease = first.acquire("s")
    with pytest.raises(LeaseHeldError, match="process 1 on here"):
        second.acquire("s")
    assert second.holder("s") == FIRST
    first.end()
    assert second.holder("s") is None
    assert not second.lives(FIRST)
    assert second.acquire("s").token > lease.token


def test_process_that_was_replaced_while_it_ran_is_fenced(log):
    zombie, heir = log.process(FIRST), log.process(SECOND)
    lease = zombie.acquire("s")
    publish(zombie, lease, 0)
    publish(heir, heir.acquire("s", take_over=True), 1)
    with pytest.raises(FencedError, match="taken over by process 2"):
        publish(zombie, lease, 2)
    with pytest.raises(FencedError):
        zombie.set_meta("s", "registry", "zombie", leases=[lease])
    assert values(log) == [0, 1]


@pytest.mark.parametrize(
    "operation",
    [
        lambda log, lease: log.release(lease),
        lambda log, lease: log.heartbeat(lease),
        lambda log, lease: log.set_meta("s", "x", "1"),
        lambda log, lease: log.append("orders", frame(9)),
        lambda log, lease: log.delete_topic("orders"),
        lambda log, lease: publish(log, lease, 9),
        lambda log, lease: log.read("orders", 0, 0),
        lambda log, lease: log.acquire("other"),
    ],
)
def test_process_that_has_ended_does_nothing_more_not_even_tidy_up(log, operation):
    dead = log.process(FIRST)
    lease = dead.acquire("s")
    publish(dead, lease, 0)
    before = log.copy()
    dead.end()
    with pytest.raises(Crash):
        operation(dead, lease)
    for field in ("topics", "staged", "commits", "leases", "documents"):
        assert getattr(log._store.state, field) == getattr(before._store.state, field)


def test_crash_passes_handlers_of_errors_and_lets_the_process_end_with_its_lease(log):
    dying, heir = log.process(FIRST), log.process(SECOND)
    lease = dying.acquire("s")

    def crash(name):
        if name == "log.commit.inside_transaction":
            dying.end()
            raise Crash(name)

    def run():
        try:
            try:
                publish(dying, lease, 0)
            except Exception:  # noqa: BLE001 - the subject
                pytest.fail("a process that is dead has handled an error")
        finally:
            dying.release(lease)

    with intercepted(crash), pytest.raises(Crash):
        run()
    assert heir.last_commit("s", "o") is None
    assert publish(heir, heir.acquire("s"), 0).status == "committed"


def test_copy_what_happens_to_one_does_not_show_in_the_other(log):
    lease = log.process(FIRST).acquire("s")
    publish(log, lease, 0)
    other = log.copy()
    publish(other, lease, 1)
    other.append("orders", frame(5))
    other.create_topic("more")
    other.set_meta("s", "x", "1")
    publish(log, lease, 1)
    log.append("orders", frame(6, 7))
    assert (values(log), values(other)) == ([0, 1, 6, 7], [0, 1, 5])
    assert log.topics() == ["orders"]
    assert log.get_meta("s", "x") is None
    assert other.id == log.id
    assert other.url != log.url


def test_read_frame_stays_as_it_is_when_the_topic_goes_on(log):
    log.append("orders", frame(1, 2))
    found = log.read("orders", 0, 0)
    log.append("orders", frame(3))
    log.compact("orders")
    assert found["value"].to_list() == [b"1", b"2"]


def test_append_frame_that_its_owner_changes_afterwards_stays_as_it_was(log):
    mine = frame(1)
    log.append("orders", mine)
    mine.vstack(frame(2), in_place=True)
    assert values(log) == [1]


def test_commit_vectors_that_their_owner_changes_afterwards_stay_as_they_were(log):
    publish(log, log.acquire("s"), 0)
    log.last_commit("s", "o").end["s"][0] = 99
    assert log.last_commit("s", "o").end == {"s": {0: 1}}


@pytest.mark.parametrize("retention_ms", [None, 10**9])
def test_append_thousands_of_times_every_record_is_found_at_its_offset(retention_ms):
    log = MemoryLog(clock=iter(range(1_700_000_000_000, 1_800_000_000_000)).__next__)
    log.create_topic("orders", TopicConfig(retention_ms=retention_ms))
    for number in range(5_000):
        log.append("orders", frame(number))
    partition = log._store.state.topic("orders").partition(0)
    assert retention_ms is not None or len(partition.chunks) < 70
    assert values(log) == list(range(5_000))
    assert values(log, 4_321, limit=3) == [4_321, 4_322, 4_323]
    appended = log.read("orders", 0, 0, appended=True)["appended"]
    assert appended.is_sorted()
    assert appended.n_unique() == 5_000
    parts = log.splits("orders", 0, 100, 5_000, max_records=700)
    assert [value for part in parts for value in log.read_split(part)["offset"]] == list(range(100, 5_000))


def test_open_log_memory_opens_a_new_one_and_its_url_the_same_again():
    log = open_log("memory:")
    log.create_topic("orders")
    assert open_log(log.url).topics() == ["orders"]
    assert open_log("memory:").topics() == []
    assert pickle.loads(pickle.dumps(log)).topics() == ["orders"]


def test_open_log_memory_that_is_not_of_this_process_is_refused_by_name():
    with pytest.raises(LogError, match="there is no log memory:elsewhere in this process"):
        open_log("memory:elsewhere")
