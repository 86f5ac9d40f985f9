"""Records expire, and a new version needs them: from the archive, or not at all unless the loss is accepted."""

from __future__ import annotations

import pytest

import everstate as es
from everstate import col
from everstate.errors import ApprovalNeededError, HistoryTruncatedError
from everstate.generations.deploy.options import Wishes
from everstate.log import EmbeddedLog, TopicConfig
from everstate.log.archive.reading import named

pytestmark = [pytest.mark.spark, pytest.mark.long]

DAY_MS = 86_400_000
ORDER = {"customer": str, "amount": int}


def totals(least=0, *, keep):
    app = es.Service("shop", shards=2)
    rows = app.stream("orders", key="id", schema=ORDER, keep_history=keep)
    rows.filter(col("amount") >= least).group_by("customer").agg(total=col("amount").sum(), n=es.count()).to("totals")
    return app


def expected(sent, least=0):
    found = {}
    for _, order in sent:
        if order["amount"] >= least:
            entry = found.setdefault(order["customer"], {"total": 0, "n": 0})
            entry["total"] += order["amount"]
            entry["n"] += 1
    return found


def orders(first, count):
    """Uneven: half of all orders are one customer's, and every batch has a customer of its own."""
    numbers = range(first, first + count)
    customers = ("big" if n % 2 else f"c{n % 5}" if n % 3 else f"only-{first}" for n in numbers)
    return [(f"o{n}", {"customer": name, "amount": n * 7 % 50}) for n, name in zip(numbers, customers, strict=True)]


def expire(world, topic="orders"):
    """Two days later; the records, which are older than anyone, go."""
    for half_days in range(1, 5):  # a clock that jumps by days at once is not believed
        later = EmbeddedLog(
            world.log.path, clock=lambda ahead=half_days * DAY_MS // 2: world.log._store.clock() + ahead
        )
        later.compact(topic)
        later.close()
    info = world.log.describe(topic)
    assert info.start == info.end


@pytest.fixture
def shop(world):
    world.log.create_topic("orders", TopicConfig(partitions=3, retention_ms=DAY_MS))
    return world


def lives(shop, *, keep):
    """Version 1 runs, everything so far expires, then more comes; returns all that was ever sent."""
    sent = orders(0, 60)
    shop.topics.send("orders", sent)
    shop.deploy(totals(keep=keep))
    expire(shop)
    more = orders(60, 20)
    shop.topics.send("orders", more)
    return [*sent, *more]


def test_history_kept_recalculation_equals_a_run_over_everything_ever_sent(shop):
    sent = lives(shop, keep=True)
    before = shop.table("totals")
    written = shop.deploy(totals(45, keep=True), recalculation_records=17)
    after = expected(sent, least=45)
    assert shop.table("totals") == after
    stale = set(before) - set(after)
    assert {key for key, value in written["totals"] if value is None} == stale != set()
    # What version 2 archived before it ended is read by version 3, also when all is gone from the topic.
    expire(shop)
    shop.deploy(totals(10, keep=True), recalculation_records=17)
    assert shop.table("totals") == expected(sent, least=10)
    archive = named(shop.log, "shop", "orders")
    assert sum(part.records for part in archive.partitions.values()) == 80


def test_history_gone_is_refused_and_nothing_is_tombstoned(shop):
    sent = lives(shop, keep=False)
    before = shop.table("totals")
    with pytest.raises(HistoryTruncatedError, match="topic orders has lost 60 records to retention"):
        shop.deploy(totals(20, keep=False))
    assert shop.table("totals") == before == expected(sent[:60])
    # The active version goes on, and it is as if nobody had asked.
    shop.deploy(totals(keep=False))
    assert shop.table("totals") == expected(sent)


def test_history_gone_and_accepted_goes_on_but_tombstones_wait_for_approval(shop):
    sent = lives(shop, keep=False)
    before = shop.table("totals")
    accepted = Wishes(accept_truncated=("orders",))
    with pytest.raises(ApprovalNeededError, match="perhaps only because orders lost"):
        shop.deploy(totals(20, keep=False), wishes=accepted)
    assert shop.table("totals") == before
    # What was built waits: it need not be accepted again.
    written = shop.deploy(totals(20, keep=False), wishes=Wishes(approve=True))
    assert shop.table("totals") == expected(sent[60:], least=20)
    assert "only-0" in {key for key, value in written["totals"] if value is None}


def test_history_of_a_compacted_topic_has_what_an_order_sensitive_step_needs(world):
    def version(factor):
        def steps(row, state):
            last = state.get("last", 0)
            state.set("last", row["amount"])
            return (row["amount"] - last) * factor

        app = es.Service("shop", shards=2)
        rows = app.stream("prices", key="id", schema={"amount": int}, keep_history=True)
        rows.apply(steps, stateful=True, schema=int).group_by("id").agg(moves=es.collect(col("value"))).to("moves")
        return app

    world.log.create_topic("prices", TopicConfig(partitions=3, compact=True))
    for turn in range(4):
        world.topics.send("prices", [(f"p{n}", {"amount": n + turn * turn}) for n in range(12)], ts=turn * 100)
    world.deploy(version(1))
    world.log.compact("prices")
    assert world.log.describe("prices").records == 12
    world.topics.send("prices", [("p3", {"amount": 100})], ts=1000)
    world.deploy(version(10))
    table = world.table("moves")
    assert table["p0"] == {"moves": [0, 10, 30, 50]}
    assert table["p3"] == {"moves": [30, 10, 30, 50, 880]}
