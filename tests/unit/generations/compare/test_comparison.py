from __future__ import annotations

import time
from dataclasses import replace

import everstate as es

DAY = 86_400_000


def counts(minutes):
    app = es.Service("shop")
    orders = app.stream("orders", key="id", schema={"customer": str})
    orders.group_by("customer").window(es.tumbling(f"{minutes}m")).agg(n=es.count()).to("per-window")
    return app


def driver(now, retention_ms):
    """Windows of long ago and of yesterday, on a topic that somebody has made for them."""
    found = es.testing.Driver(counts(5))
    state = found._deployment.topics._state
    topic = state.topics["per-window"]
    state.topics["per-window"] = replace(topic, config=replace(topic.config, retention_ms=retention_ms))
    for number, ts in enumerate((now - 40 * DAY, now - DAY)):
        found.send("orders", f"o{number}", {"customer": "ada"}, ts=ts)
    return found


def written(records):
    """Windows that a cutover wrote: whether they are of yesterday, and whether they are gone."""
    return sorted(
        (record.key[1].timestamp() * 1000 > time.time() * 1000 - 30 * DAY, record.value is None) for record in records
    )


def test_windows_older_than_what_their_topic_keeps_are_neither_removed_nor_brought_back():
    now = int(time.time() * 1000) // 3_600_000 * 3_600_000 + 600_000  # no window of an hour begins there
    for retention_ms, expected in (
        (None, [(False, False), (False, True), (True, False), (True, True)]),
        (30 * DAY, [(True, False), (True, True)]),
    ):
        upgraded = driver(now, retention_ms).upgrade(counts(60))
        assert written(upgraded.records) == expected
