from __future__ import annotations

from everstate.log import leasing
from everstate.log.descriptions import Holder
from everstate.log.embedded import leases
from everstate.log.embedded.manifest import catalogue
from everstate.log.embedded.upkeep import claims, merging


def topic_of(log, name):
    with log._store.manifest.reading() as database:
        return catalogue.topic_named(database, name)


def test_claimed_topic_is_left_alone_until_the_claim_ends(log):
    log.topic("events")
    with claims.claimed(log._store, topic_of(log, "events")) as mine:
        assert mine
        with claims.claimed(log._store, topic_of(log, "events")) as second:
            assert not second
        for number in range(3 * merging.FANOUT):
            log.send("events", (b"k", b"%d" % number))
        assert not log.maintain("events")
    assert log.maintain("events")
    with log._store.manifest.reading() as database:
        assert database.execute("SELECT count(*) FROM leases").fetchone()[0] == 0


def test_claim_of_a_process_that_died_is_taken(log):
    log.topic("events")
    topic = topic_of(log, "events")
    dead = Holder(leasing.this_process().host, 2**22 - 1, 1.0)
    with log._store.manifest.writing() as database:
        leases.acquire(database, f"@tending/{topic.identity}", dead, take_over=False, now_ms=log.now_ms)
    with claims.claimed(log._store, topic) as mine:
        assert mine
