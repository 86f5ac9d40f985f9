from __future__ import annotations

import polars as pl
import pytest

from everstate.generations.state.reached import EVERY_MS, ReachedNotes, complete_until
from everstate.log import Commit, MemoryLog, TopicConfig

NOW = 1_700_000_000_000


@pytest.fixture
def log():
    log = MemoryLog()
    log.create_topic("rows", TopicConfig(compact=True))
    log.append("rows", pl.DataFrame({"key": [b"a"], "value": [b"1"]}))
    return log


def committed(log, lease, end):
    log.commit(
        Commit(
            service="svc",
            output="copy",
            generation="g1",
            query_id="q",
            batch_id=end,
            start={"rows": {0: end - 1}},
            end={"rows": {0: end}},
            digest=b"",
            token=lease.token,
        ),
        [],
    )
    return log.last_commit("svc", "copy")


def test_output_that_was_seen_at_the_end_is_complete_until_then(log):
    lease = log.acquire("svc")
    last = committed(log, lease, 1)
    notes = ReachedNotes(log, "svc")
    later = (last.committed_ms or 0) + 3 * 86_400_000
    notes.note("copy", ["rows"], lease, later)
    assert complete_until(log, "svc", "copy", last) == later
    notes.note("copy", ["rows"], lease, later + EVERY_MS - 1)
    assert complete_until(log, "svc", "copy", last) == later
    notes.note("copy", ["rows"], lease, later + EVERY_MS)
    assert complete_until(log, "svc", "copy", last) == later + EVERY_MS


def test_output_that_is_behind_is_complete_until_its_last_commit(log):
    lease = log.acquire("svc")
    last = committed(log, lease, 1)
    log.append("rows", pl.DataFrame({"key": [b"a"], "value": [b"2"]}))
    ReachedNotes(log, "svc").note("copy", ["rows"], lease, NOW * 2)
    assert complete_until(log, "svc", "copy", last) == last.committed_ms


def test_state_that_is_older_than_the_note_does_not_profit_from_it(log):
    lease = log.acquire("svc")
    earlier = committed(log, lease, 1)
    log.append("rows", pl.DataFrame({"key": [b"a"], "value": [None]}, schema={"key": pl.Binary, "value": pl.Binary}))
    last = committed(log, lease, 2)
    ReachedNotes(log, "svc").note("copy", ["rows"], lease, NOW * 2)
    assert complete_until(log, "svc", "copy", last) == NOW * 2
    assert complete_until(log, "svc", "copy", earlier) == earlier.committed_ms
