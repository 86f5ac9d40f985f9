"""Windows whose results are kept for a time, and what reads them as a table."""

from __future__ import annotations

from typing import Any

import pytest
from polars import col

import everstate as es

WINDOWS = [es.tumbling("5ms"), es.hopping("6ms", "3ms"), es.sliding("5ms"), es.session("4ms")]


def service(window: es.Window, emit: Any) -> es.Service:
    app = es.Service("kept")
    rows = app.stream("rows", key="k", schema={"k": str, "n": int})
    kept = rows.group_by("k").window(window, emit=emit, keep="10ms").agg(n=col("n").max(), all=es.collect("n"))
    kept.group_by("k").agg(most=col("n").max(), all=es.collect("n"), windows=es.count()).to("again")
    merged = rows.group_by("k").window(window, emit=emit, keep="10ms").agg(n=col("n").sum())
    merged.group_by("k").agg(most=col("n").max(), first=col("window_start").min()).to("merged")
    opened = rows.group_by("k").window(window, emit=emit, keep="10ms")
    merge = {"merge": lambda one, other: one + other} if window == es.session("4ms") else {}
    folded = opened.aggregate(lambda: 0, lambda total, row: total + row["n"], schema=int, **merge)
    folded.group_by("k").agg(most=col("value").max(), windows=es.count()).to("folded")
    return app


@pytest.mark.parametrize("emit", ["update", "final"])
@pytest.mark.parametrize("window", WINDOWS, ids=lambda window: type(window).__name__)
@pytest.mark.parametrize("already", [[], [("b", 1, 0)], [("a", 1, 1)]], ids=["new", "its slice is there", "changed"])
def test_window_that_comes_and_goes_in_one_batch_leaves_nothing_behind(window, emit, already):
    sent = [("a", 9, 0), ("a", 8, 2), ("b", 7, 3), ("a", 5, 17), ("b", 2, 40), ("a", 3, 41), ("c", 1, 54)]
    singly, together = (es.testing.Driver(service(window, emit)) for _ in range(2))
    for driver in (singly, together):
        for key, number, ts in already:
            driver.send("rows", key, {"n": number}, ts=ts)
    for key, number, ts in sent:
        singly.send("rows", key, {"n": number}, ts=ts)
    with together.batch():
        for key, number, ts in sent:
            together.send("rows", key, {"n": number}, ts=ts)
    assert together.table("again") == singly.table("again")
    assert together.table("merged") == singly.table("merged")
    assert together.table("folded") == singly.table("folded")
    assert set(singly.table("again")) <= {"a", "b", "c"}
    assert all(row["most"] <= 3 for row in singly.table("again").values())
