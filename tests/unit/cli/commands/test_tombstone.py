from __future__ import annotations

import time

import pytest

from everstate.engine.commands import removing
from everstate.errors import ConfigurationError, LeaseHeldError, LogError, TopicNotFoundError
from everstate.generations.removals import service_name
from everstate.log import EmbeddedLog

ROWS = "".join(f'{{"key": "k{n}", "value": {{"n": {n}}}, "timestamp": {1000 * n}}}\n' for n in range(15))


def test_tombstone_dry_run_says_what_would_go_and_changes_nothing(everstate):
    everstate("produce", "owners", "--create", "--compact", stdin=ROWS)
    found = everstate("tombstone", "owners", "--after", "2s", "--dry-run").stdout.splitlines()
    assert found[0] == "owners: 13 keys would be removed, 2 would stay"
    assert [line.split()[0] for line in found[1:4]] == ["KEY", "k0", "k1"]
    assert found[-1] == "  and 3 more"
    assert everstate("topic", "list").stdout.count("owners") == 1
    assert len(everstate.records("owners", "--from-beginning")) == 15


def test_tombstone_dry_run_of_keys_that_came_back_counts_them_as_they_are_now(everstate):
    everstate("produce", "owners", "--create", "--compact", "--partitions", "2", stdin=ROWS)
    again = '{"key": "k1", "value": {}, "timestamp": 14000}\n{"key": "k0", "value": null, "timestamp": 14000}\n'
    everstate("produce", "owners", stdin=again)
    told = everstate("tombstone", "owners", "--after", "1h", "--dry-run").stdout
    assert told == "owners: 0 keys would be removed, 14 would stay\n"


def test_tombstone_dry_run_by_the_wall_clock_compares_with_now(everstate):
    now = time.time_ns() // 1_000_000
    rows = f'{{"key": "\\u00fc", "value": 1, "timestamp": {now - 3_600_000}}}\n{{"key": "b", "value": 1}}\n'
    everstate("produce", "owners", "--create", "--compact", "--partitions", "3", stdin=rows)
    found = everstate("tombstone", "owners", "--after", "30m", "--clock", "wall", "--dry-run").stdout
    assert found.startswith("owners: 1 key would be removed, 1 would stay")
    assert "\u00fc" in found


@pytest.mark.parametrize(
    ("words", "error", "says"),
    [
        (["nothing"], TopicNotFoundError, "topic 'nothing' does not exist"),
        (["events"], LogError, "topic 'events' is not compacted: it holds a stream"),
        (["owners", "events"], LogError, "topic 'events' is not compacted"),
        (["o" * 242], LogError, "is too long"),
        (["owners.removed"], LogError, "belongs to Everstate itself"),
        (["owners", "--after", "0s"], ConfigurationError, "would remove every key"),
        (["owners", "--after", "9223372036854775807ms"], ConfigurationError, "is longer than ten million years"),
        (["owners", "--after", "soon"], ConfigurationError, "'soon' is not a duration"),
    ],
)
def test_tombstone_of_what_cannot_be_is_refused_by_name_with_what_helps(everstate, words, error, says):
    for name in ("owners", "owners.removed", "o" * 242):
        everstate("topic", "create", name, "--compact")
    everstate("topic", "create", "events")
    with pytest.raises(error, match=says) as refused:
        everstate("tombstone", "--after", "7d", *words)
    assert refused.value.hint


def test_tombstone_dry_run_passes_over_partitions_that_never_had_a_record(everstate):
    everstate("topic", "create", "owners", "--compact", "--partitions", "20")
    everstate("produce", "owners", stdin=ROWS)
    assert everstate("tombstone", "owners", "--after", "1ms", "--dry-run").stdout.startswith("owners: 1 key would be")


def test_tombstone_beside_another_one_is_refused_by_name(everstate, monkeypatch):
    everstate("produce", "owners", "--create", "--compact", stdin=ROWS)
    log = EmbeddedLog(everstate.path / "log")
    lease = log.acquire(service_name("owners"))

    def refused(self, *, once):
        del self, once
        raise LeaseHeldError("the lease is held", hint="Wait.")

    monkeypatch.setattr(removing.Runner, "run", refused)
    with pytest.raises(LeaseHeldError, match="another tombstone service removes the keys of topic 'owners'") as found:
        everstate("tombstone", "owners", "--after", "7d", "--once", "--quiet")
    assert "--take-over" in (found.value.hint or "")
    log.release(lease)


def test_name_of_a_service_for_a_long_topic_is_short_and_its_own():
    one, other = service_name("t" * 200), service_name("t" * 201)
    assert len(one) <= 100
    assert one != other
