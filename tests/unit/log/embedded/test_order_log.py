from __future__ import annotations

import pytest

from everstate.log import Commit, combined_digest
from everstate.log.embedded import order_log


def committed(log, held, number, **changes):
    identity = {
        "service": "s",
        "output": "o",
        "generation": "1",
        "query_id": "q",
        "batch_id": number,
        "start": {"t": {0: number}},
        "end": {"t": {0: number + 1}},
        "digest": combined_digest([]),
        "token": held.token,
    }
    log.commit(Commit(**{**identity, **changes}), [])


def rows(log, table):
    with log._store.manifest.reading() as database:
        return database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def ends(log):
    return [vector["t"][0] for vector in log.order("s", "o", ["t"])]


@pytest.fixture
def folding(monkeypatch):
    monkeypatch.setattr(order_log, "FOLD", 4)


def test_order_log_many_commits_leave_few_rows_and_every_vector(log, folding):
    log.topic("t")
    lease = log.acquire("s")
    for number in range(70):
        committed(log, lease, number)
        assert ends(log) == list(range(1, number + 2))
        assert rows(log, "commits") == 1
        assert rows(log, "stops") <= 3 + 3 + number // 16 + 1
    assert log.last_commit("s", "o").batch_id == 69


def test_order_log_commits_without_order_leave_no_vector(log):
    log.topic("t")
    lease = log.acquire("s")
    for number in range(10):
        committed(log, lease, number, ordered=False)
    assert (rows(log, "commits"), rows(log, "stops")) == (1, 0)
    assert ends(log) == []
    committed(log, lease, 10)
    assert ends(log) == [11]


@pytest.mark.parametrize(("before", "built", "after"), [(3, 2, 3), (9, 23, 30), (30, 0, 5), (0, 7, 1)])
def test_order_log_generation_that_takes_over_puts_its_batches_behind(log, folding, before, built, after):
    log.topic("t")
    lease = log.acquire("s")
    for number in range(before):
        committed(log, lease, number)
    for number in range(built):
        place = {"start": {"t": {0: 2 * number}}, "end": {"t": {0: 2 * number + 2}}}
        committed(log, lease, number, generation="2", query_id="q2", kind="closed", **place)
    committed(log, lease, 0, generation="3", query_id="q3", kind="closed")  # of a build that is given up
    assert ends(log) == list(range(1, before + 1))
    from everstate.log import Cutover

    last = log.last_commit("s", "o", "2")
    commit = Commit(
        service="s",
        output="o",
        generation="2",
        query_id="q2",
        batch_id=last.batch_id if last else -1,
        start=last.start if last else {"t": {0: 0}},
        end=last.end if last else {"t": {0: 0}},
        digest=combined_digest([]),
        token=lease.token,
        kind="cutover",
    )
    assert log.cutover(Cutover(commit=commit, leases=(lease,), expected={}), []) is not None
    with log._store.manifest.reading() as database:
        assert not database.execute("SELECT 1 FROM stops WHERE track <> ''").fetchall()
    done = max(2 * built, 0)
    for number in range(after):
        place = {"start": {"t": {0: done + number}}, "end": {"t": {0: done + number + 1}}}
        committed(log, lease, built + number, generation="2", query_id="q2", **place)
    spliced = [end for end in range(2, 2 * built + 2, 2) if end > before]
    furthest = max([before, *spliced])
    expected = [*range(1, before + 1), *spliced, *range(furthest + 1, done + after + 1)]
    assert [end for end in ends(log) if end] == expected


def test_forget_drops_commits_and_order_of_one_service(log):
    log.topic("t")
    lease = log.acquire("s")
    committed(log, lease, 0)
    committed(log, lease, 0, service="other", lease="s")
    log.forget("s")
    assert log.last_commit("s", "o") is None
    assert ends(log) == []
    assert len(log.order("other", "o", ["t"])) == 1
