"""The driver's topics: the order of publication, and what cutovers and first micro-batches have published."""

from __future__ import annotations

import pytest

import everstate as es
from everstate.testing.topics import Sent, Topics


@pytest.mark.parametrize("partitions", [1, 3])
def test_topics_records_come_back_in_the_order_in_which_they_were_sent(partitions):
    topics = Topics(partitions)
    sent = [f"key {number * 7 % 20}" for number in range(20)]
    topics.send("t", [Sent(key.encode(), b"1", 0) for key in sent[:12]])
    topics.send("t", [Sent(key.encode(), b"1", 0) for key in sent[12:]])
    assert [record.key.decode() for record in topics.all("t")] == sent


def test_topics_copy_shows_nothing_that_comes_later():
    topics = Topics(2)
    topics.send("t", [Sent(b"a", b"1", 0, 1, {"trace": b"x"})])
    other = topics.copy()
    other.send("t", [Sent(b"b", b"2", 0, 0)])
    topics.send("t", [Sent(b"c", b"3", 0, 0)])
    assert [(record.key, record.partition) for record in topics.all("t")] == [(b"a", 1), (b"c", 0)]
    assert [(record.key, record.headers) for record in other.all("t")] == [(b"a", (("trace", b"x"),)), (b"b", ())]


def test_records_of_a_micro_batch_come_back_by_key_whatever_their_partitions():
    app = es.Service("s")
    app.table("in", key="k", schema={"k": str, "n": int}).to("out")
    driver = es.testing.Driver(app, partitions=4)
    keys = [f"k{number}" for number in range(9)]
    with driver.batch():
        for key in reversed(keys):
            driver.send("in", key, {"n": 1})
    assert [record.key for record in driver.records("in")] == keys[::-1]
    assert [record.key for record in driver.records("out")] == keys
    assert len({record.partition for record in driver.records("out")}) > 1


def test_records_of_an_upgrade_come_back_by_key_whatever_their_partitions():
    def version(factor):
        app = es.Service("s")
        app.table("in", key="k", schema={"k": str, "n": int}).select(n=es.col("n") * factor).to("out")
        return app

    driver = es.testing.Driver(version(1), partitions=4)
    keys = [f"k{number}" for number in range(9)]
    for key in keys:
        driver.send("in", key, {"n": 1})
    upgrade = driver.upgrade(version(2))
    assert [record.key for record in upgrade.records] == keys
    assert [record.key for record in driver.records("out")] == keys * 2
