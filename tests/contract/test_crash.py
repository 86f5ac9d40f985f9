"""An operation that ends at a crash point has happened as a whole or not at all, and can be tried again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from everstate.log import Cutover, TopicConfig
from everstate.log.crash import Crash, crash_at, intercepted

pytestmark = pytest.mark.slow

#: From here on, the operation counts.
DONE = {
    "log.append.after_transaction",
    "log.commit.after_transaction",
    "log.cutover.after_transaction",
    "log.compact.after_swap",
    "log.delete.after_transaction",
    "log.garbage.before_unlink",
    "log.garbage.after_unlink",
}


def prepared(bench):
    """Two batches of a table and a stream, a generation that is built, and superseded records."""
    bench.topic("totals", compact=True)
    bench.topic("events")
    bench.topic("old", compact=True)
    bench.topic("__everstate.g2", compact=True)
    bench.send("old", ("a", "1"), ("a", "2"), ("b", "1"))
    bench.publish({"totals": [("a", "1"), ("b", "1")], "events": [("x", "1")]}, 0)
    bench.publish({"totals": [("a", "2")], "events": [("x", "2")]}, 1)
    bench.publish({"__everstate.g2": [("a", "3")]}, 0, generation="g2", query_id="q2", kind="closed")
    return bench


def append(bench):
    frame = bench.frame(("c", "1"), ("d", "1"))
    return lambda: bench.log.append("old", frame)


def commit(bench):
    made = bench.batch({"totals": [("a", "4"), ("c", "1")], "events": [("x", "3")]}, 2)
    return lambda: bench.log.commit(*made)


def correction(bench):
    made = bench.batch({"totals": [("b", "7")], "events": [("x", "2")]}, 1)
    return lambda: bench.log.commit(*made)


def repetition(bench):
    made = bench.batch({"totals": [("a", "2")], "events": [("x", "2")]}, 1)
    return lambda: bench.log.commit(*made)


def cutover(bench):
    batch, staged = bench.batch({"totals": [("a", "3"), ("b", None)]}, 0, generation="g2", query_id="q2")
    asked = Cutover(
        commit=replace(batch, kind="cutover"),
        leases=(bench.lease,),
        expected=bench.log.end_offsets(["totals"]),
        documents={"registry": "g2"},
        copies={"__everstate.g1": bench.copy("totals")},
        drops=("__everstate.g2",),
    )
    return lambda: bench.log.cutover(asked, staged)


def compaction(bench):
    return lambda: bench.log.compact("old")


def deletion(bench):
    return lambda: bench.log.delete_topic("old")


OPERATIONS = [
    *(append, commit, correction, repetition, cutover, deletion),
    pytest.param(compaction, marks=pytest.mark.needs("compact")),
]


def image(bench):
    """All that can be seen of a log."""
    log = bench.log
    names = ["__everstate.g1", "__everstate.g2", "events", "old", "totals"]
    return (
        log.topics(),
        {name: bench.content(name) for name in names if log.has_topic(name)},
        [log.last_commit("service", "output", generation) for generation in (None, "g1", "g2")],
        list(log.order("service", "output", ["source"])),
        log.metas("service"),
        log.holder("service"),
    )


def met(bench, operation):
    """The crash points that an operation meets, with the image before and after it."""
    names = []
    call = operation(prepared(bench))
    before = image(bench)
    with intercepted(names.append):
        call()
    return names, before, image(bench)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_crash_at_every_point_of_an_operation_leaves_it_whole_or_undone(new_bench, operation):
    names, before, after = met(new_bench(), operation)
    assert names
    for place, name in enumerate(names):
        bench = new_bench()
        call = operation(prepared(bench))
        with intercepted(crash_at(name, hit=names[: place + 1].count(name))), pytest.raises(Crash, match=name):
            call()
        assert image(bench) == (after if DONE & set(names[: place + 1]) else before), f"{name}, {place}"
        bench.log.close()


@pytest.mark.parametrize("operation", [commit, correction, cutover])
def test_crash_inside_a_transaction_the_operation_can_be_tried_again(new_bench, operation):
    _, _, after = met(new_bench(), operation)
    bench = new_bench()
    call = operation(prepared(bench))
    point = "log.cutover.inside_transaction" if operation is cutover else "log.commit.inside_transaction"
    with intercepted(crash_at(point)), pytest.raises(Crash):
        call()
    call()
    assert image(bench) == after
    bench.log.close()


@pytest.mark.parametrize(("operation", "kind"), [(append, "append"), (commit, "commit"), (cutover, "cutover")])
def test_crash_points_of_publishing_are_met_in_their_order(new_bench, operation, kind):
    names = [name for name in met(new_bench(), operation)[0] if f".{kind}." in name]
    assert names == [f"log.{kind}.{at}" for at in ("before_transaction", "inside_transaction", "after_transaction")]


def test_create_topic_that_is_refused_leaves_the_log_as_it_was(bench):
    prepared(bench)
    before = image(bench)
    with pytest.raises(Exception, match="already exists"):
        bench.log.create_topic("old", TopicConfig(partitions=3))
    assert image(bench) == before
