"""Batches that several publishers send: killed between them, replaced, repeated, and by another number of them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest

from everstate.errors import CommitConflictError, FencedError, LogError
from everstate.kernels.records.numbers import write
from everstate.log import Copy, Cutover, TopicConfig
from everstate.log.crash import VARIABLE, Crash, crash_at, intercepted
from everstate.log.kafka import shares
from everstate.log.kafka.clients import Clients
from everstate.log.kafka.staging import Place
from tests.kafka.conftest import batch, frame, table
from tests.kafka.points import SHARES

pytestmark = [pytest.mark.kafka]

PARTITIONS = 4
CRASHES = [(point, hit) for point, hits in SHARES.items() for hit in range(1, hits + 1)]
ROWS = [(f"k{number}", "1") for number in range(40)]


@pytest.fixture(autouse=True)
def _worth(monkeypatch):
    monkeypatch.setattr(shares, "WORTH", 2)


@pytest.fixture
def process(opened):
    """A process with the lease, that sends by so many publishers."""

    def started(publishers):
        log = opened()
        if publishers > 1:
            log.spread(publishers, lambda parts: [log.send(part) for part in parts])
        if not log.has_topic("totals"):
            log.create_topic("totals", TopicConfig(partitions=PARTITIONS, compact=True))
            log.create_topic("events", TopicConfig(partitions=PARTITIONS))
        return log, log.acquire("service", take_over=True)

    return started


def published(log, topic):
    """How often each pair of key and value is there."""
    ends = log.end_offsets([topic])[topic]
    frames = [log.read(topic, number, 0) for number in ends]
    return Counter((key, value) for frame in frames for key, value in frame.select("key", "value").iter_rows())


def pairs(rows):
    return Counter((key.encode(), value.encode()) for key, value in rows)


def shares_of(log, lease, number, publishers=2):
    """A batch that was decided, and what its publishers are about to send."""
    made, staged = batch(log, lease, {"totals": ROWS, "events": ROWS}, number)
    taken = []

    def take(parts):
        taken.extend(parts)
        raise Crash("before anything is sent")

    log.spread(publishers, take)
    with pytest.raises(Crash):
        log.commit(made, staged)
    log.spread(publishers, lambda parts: [log.send(part) for part in parts])
    return taken, (made, staged)


def test_batch_of_several_publishers_is_there_once_and_comes_again_as_the_same(process):
    log, lease = process(3)
    for number in range(3):
        rows = [(key, str(number)) for key, _ in ROWS]
        assert log.commit(*batch(log, lease, {"totals": rows, "events": rows}, number)).status == "committed"
        assert log.commit(*batch(log, lease, {"totals": rows, "events": rows}, number)).status == "skipped"
    # One that is small is sent by one.
    assert log.commit(*batch(log, lease, {"events": [("k", "last")]}, 3)).status == "committed"
    assert table(log, "totals") == {key: "2" for key, _ in ROWS}
    expected = [(key, str(number)) for key, _ in ROWS for number in range(3)]
    assert published(log, "events") == pairs([*expected, ("k", "last")])
    assert log.last_commit("service", "output").batch_id == 3
    assert not list((log.staging / "staged").glob("*"))


@pytest.mark.parametrize(
    ("crash", "then"),
    [
        pytest.param(crash, then, marks=() if (crash[1], then) == (2, 3) else pytest.mark.long)
        for crash in CRASHES
        for then in (1, 2, 3)
    ],
)
def test_process_that_dies_between_publishers_is_followed_by_one_that_sends_what_is_left(process, crash, then):
    log, lease = process(2)
    log.commit(*batch(log, lease, {"totals": ROWS, "events": ROWS}, 0))
    more = [(key, "2") for key, _ in ROWS]
    with intercepted(crash_at(*crash)), pytest.raises(Crash):
        log.commit(*batch(log, lease, {"totals": more, "events": more}, 1))
    log.close()
    log, lease = process(then)
    log.commit(*batch(log, lease, {"totals": more, "events": more}, 1))
    log.commit(*batch(log, lease, {"totals": ROWS, "events": ROWS}, 2))
    expected = pairs(ROWS) + pairs(more) + pairs(ROWS)
    assert published(log, "events") == published(log, "totals") == expected
    assert log.last_commit("service", "output").batch_id == 2


@pytest.mark.parametrize("hit", [pytest.param(1, marks=pytest.mark.long), 2])
def test_batch_that_comes_again_with_other_content_when_a_part_was_sent_is_corrected(process, hit):
    log, lease = process(2)
    log.commit(*batch(log, lease, {"totals": ROWS}, 0))
    more = [(key, "2") for key, _ in ROWS]
    with intercepted(crash_at("kafka.share.after_transaction", hit)), pytest.raises(Crash):
        log.commit(*batch(log, lease, {"totals": more}, 1))
    log.close()
    log, lease = process(2)
    # Half of the keys are no longer in the batch, and keep what they had before it.
    other = [(key, "3") for key, _ in ROWS[:20]]
    assert log.commit(*batch(log, lease, {"totals": other}, 1)).status == "corrected"
    assert table(log, "totals") == dict([*ROWS, *other])
    assert log.commit(*batch(log, lease, {"totals": other}, 1)).status == "skipped"
    assert log.commit(*batch(log, lease, {"totals": more}, 2)).status == "committed"
    assert table(log, "totals") == dict(more)


@pytest.mark.long
def test_stream_of_which_a_part_was_sent_takes_other_content_only_where_nothing_was(process):
    log, lease = process(2)
    with intercepted(crash_at("kafka.share.after_transaction")), pytest.raises(Crash):
        log.commit(*batch(log, lease, {"events": ROWS}, 0))
    there = set(published(log, "events"))
    same = [(key, value) for key, value in ROWS if (key.encode(), value.encode()) in there]
    other = [(key, "2") for key, value in ROWS if (key, value) not in same]
    log.close()
    log, lease = process(2)
    with pytest.raises(CommitConflictError, match="published to the stream 'events' with different content"):
        log.commit(*batch(log, lease, {"events": other}, 0))
    assert log.commit(*batch(log, lease, {"events": same + other}, 0)).status == "corrected"
    assert published(log, "events") == pairs(same + other)


def cut_over(log, lease, topic):
    """Another generation takes over, and asks again as long as the topic grows."""
    for _ in range(3):
        made, staged = batch(log, lease, {}, 0, generation="g2", query_id="q2", kind="cutover")
        kept = {"__everstate.g1": Copy(topic, log.latest(topic))}
        ends = log.end_offsets([topic])
        cutover = Cutover(commit=made, leases=(lease,), expected=ends, documents={"registry": "g2"}, copies=kept)
        found = log.cutover(cutover, staged)
        if found is not None:
            return found
    raise AssertionError("the topic grows and grows")


def test_generation_that_takes_over_from_one_that_died_between_publishers_finishes_its_batch(process):
    log, lease = process(2)
    with intercepted(crash_at("kafka.share.after_transaction")), pytest.raises(Crash):
        log.commit(*batch(log, lease, {"events": ROWS}, 0))
    log.close()
    log, lease = process(1)
    assert published(log, "events") < pairs(ROWS)
    assert cut_over(log, lease, "events").status == "committed"
    assert published(log, "events") == pairs(ROWS)


@pytest.mark.parametrize("topic", ["events", pytest.param("totals", marks=pytest.mark.long)])
def test_rest_of_a_batch_whose_files_are_gone_stops_a_stream_and_is_compared_for_a_table(process, topic):
    log, lease = process(2)
    with intercepted(crash_at("kafka.share.after_transaction")), pytest.raises(Crash):
        log.commit(*batch(log, lease, {topic: ROWS}, 0))
    for path in (log.staging / "staged").glob("*"):
        path.unlink()
    log.close()
    log, lease = process(1)
    if topic == "totals":
        assert cut_over(log, lease, topic).status == "committed"
        return
    with pytest.raises(LogError, match="batch 0 of output 'output' was not sent to all partitions of events"):
        cut_over(log, lease, topic)
    # The version that made it makes it again.
    assert log.commit(*batch(log, lease, {topic: ROWS}, 0)).status == "committed"
    assert published(log, topic) == pairs(ROWS)


def test_share_that_is_sent_by_several_tasks_at_once_is_there_once(process, opened):
    log, lease = process(2)
    taken, again = shares_of(log, lease, 0)
    others = [opened() for _ in range(3)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda work: work[0].send(work[1]), [(other, share) for other in others for share in taken]))
    assert log.commit(*again).status in {"committed", "skipped"}
    assert published(log, "events") == published(log, "totals") == pairs(ROWS)


def test_task_of_a_process_that_was_replaced_sends_nothing_however_late_it_is(process, opened):
    log, lease = process(2)
    taken, again = shares_of(log, lease, 0)
    warm = opened()
    warm.send(taken[0])
    # The one that has its producer open, and one that opens it last.
    successor, successors = process(2)
    for late in (warm, opened()):
        with pytest.raises(FencedError):
            late.send(taken[1])
    assert published(successor, "events") < pairs(ROWS)
    made = batch(successor, successors, {"totals": ROWS, "events": ROWS}, 0)
    assert successor.commit(*made).status == "committed"
    assert published(successor, "events") == pairs(ROWS)
    del again


def test_task_that_is_replaced_in_the_middle_of_its_transaction_sends_nothing(process, opened):
    log, lease = process(2)
    taken, _ = shares_of(log, lease, 0)
    successors = []

    def replace(point):
        if point == "kafka.share.inside_transaction" and not successors:
            successors.append(process(2))

    with intercepted(replace), pytest.raises(FencedError):
        opened().send(taken[0])
    successor, lease = successors[0]
    assert not published(successor, "events")
    assert successor.commit(*batch(successor, lease, {"totals": ROWS, "events": ROWS}, 0)).status == "committed"
    assert published(successor, "events") == pairs(ROWS)


@pytest.mark.long
def test_task_of_a_batch_that_was_corrected_meanwhile_sends_nothing(process, opened):
    log, lease = process(2)
    taken, _ = shares_of(log, lease, 0)
    other = [(key, "2") for key, _ in ROWS]
    assert log.commit(*batch(log, lease, {"totals": other, "events": other}, 0)).status == "corrected"
    assert opened().send(taken[0]) == {}
    assert published(log, "events") == pairs(other)


@pytest.mark.long
def test_share_that_takes_too_long_is_undone_by_the_broker_and_sent_again(process, monkeypatch):
    made = Clients.producer
    monkeypatch.setattr(Clients, "producer", lambda self, name=None: made(self, name, timeout_ms=2_000))
    log, lease = process(2)
    slow = []

    def wait(point):
        if point == "kafka.share.inside_transaction" and not slow:
            slow.append(point)
            threading.Event().wait(6)

    with intercepted(wait):
        assert log.commit(*batch(log, lease, {"totals": ROWS, "events": ROWS}, 0)).status == "committed"
    assert published(log, "events") == published(log, "totals") == pairs(ROWS)


@pytest.mark.long
def test_files_that_are_still_to_be_sent_are_kept_however_old_they_are(process, monkeypatch):
    log, lease = process(2)
    _, (_, staged) = shares_of(log, lease, 0)
    monkeypatch.setattr("everstate.log.kafka.staging._LITTER_S", -1.0)
    lost = log.stage("events", 0, frame(("lost", "1")))
    process(2)
    assert all(Path(Place.of(part).file).exists() for part in staged)
    assert not Path(Place.of(lost).file).exists()


@pytest.mark.long
@pytest.mark.spark
def test_service_whose_publishers_are_tasks_is_killed_among_them_and_publishes_everything_once(log, servers, tmp_path):
    count = 60_000
    log.create_topic("orders", TopicConfig(partitions=2, compact=True))
    log.create_topic("customers", TopicConfig(partitions=PARTITIONS, compact=True))

    def send(amount):
        numbers = pl.DataFrame({"number": pl.int_range(count, eager=True)})
        value = pl.concat_str(pl.lit('{"customer":'), "number", pl.lit(f',"amount":{amount}}}')).cast(pl.Binary)
        key = write(numbers["number"], "int32")
        log.append("orders", numbers.select(key=key, value=value, ts=pl.lit(1_700_000_000_000)))

    def run(crash=None):
        words = ("--once", "--memory", "1g", "--log", f"kafka://{servers}", "--state-dir", str(tmp_path / "state"))
        service = str(Path(__file__).with_name("numbers_service.py"))
        command = [sys.executable, "-m", "everstate.cli.main", "run", service, *words, "--publishers", "2"]
        known = {**os.environ, "EVERSTATE_RESTARTS": "0", **({VARIABLE: crash} if crash else {})}
        done = subprocess.run(command, env=known, capture_output=True, text=True, timeout=280, check=False)
        assert (done.returncode == 0) == (crash is None), done.stdout + done.stderr

    def check(amounts):
        found = published(log, "customers")
        expected = [write(pl.Series([number]), "int32")[0] for number in range(count)]
        assert found == Counter((key, b'{"total":%d}' % amount) for key in expected for amount in amounts)

    # A worker between its records and its marker, one that has committed, the driver before and after. Both workers may
    # have committed before they are killed, so the driver is killed in another batch.
    for amount, points in (
        (1, ("share.inside_transaction", "share.after_transaction")),
        (2, ("shares.before", "shares.after")),
    ):
        send(amount)
        for point in points:
            run(f"kafka.{point}")
        run()
        check(range(1, amount + 1))
