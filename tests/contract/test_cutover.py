"""One generation takes the place of another: in one step, under both leases, on topics that have not moved."""

from __future__ import annotations

from dataclasses import replace

import pytest

from everstate.errors import CommitConflictError, FencedError
from everstate.log import Cutover

BUILT = "__everstate.g2"


@pytest.fixture
def tables(bench):
    bench.topic("totals", compact=True, partitions=2)
    bench.topic(BUILT, compact=True, partitions=2)
    bench.publish({"totals": [("a", "1"), ("b", "1")]}, 0)
    return bench


def closed(tables, content, batch_id, build):
    batch, staged = tables.batch(content, batch_id, generation="g2", query_id="q2")
    return tables.log.commit(replace(batch, kind="closed", lease=build.name, token=build.token), staged)


def request(tables, content, *leases, **changes):
    batch, staged = tables.batch(content, 0, generation="g2", query_id="q2")
    expected = tables.log.end_offsets(["totals"])
    given = {"commit": replace(batch, kind="cutover"), "leases": leases, "expected": expected, **changes}
    return Cutover(**given), staged


def test_closed_batches_are_invisible_and_leave_the_active_generation_alone(tables):
    build = tables.log.acquire("service:build")
    assert closed(tables, {BUILT: [("a", "2")]}, 0, build).status == "committed"
    assert closed(tables, {BUILT: [("a", "2")]}, 0, build).status == "skipped"
    assert tables.table("totals") == {"a": "1", "b": "1"}
    assert tables.table(BUILT) == {"a": "2"}
    assert tables.log.last_commit("service", "output").generation == "g1"
    assert tables.log.last_commit("service", "output", "g2").kind == "closed"
    assert tables.publish({"totals": [("a", "3")]}, 1).status == "committed"


def test_cutover_publishes_the_difference_and_the_documents_and_goes_on_from_there(tables):
    build = tables.log.acquire("service:build")
    closed(tables, {BUILT: [("a", "2")]}, 0, build)
    asked, staged = request(
        tables,
        {"totals": [("a", "2"), ("b", None)]},
        tables.lease,
        build,
        documents={"registry": "g2"},
        copies={"__everstate.g1": tables.copy("totals")},
        drops=(BUILT,),
    )
    assert tables.log.cutover(asked, staged).status == "committed"
    assert tables.table("totals") == {"a": "2"}
    assert tables.table("__everstate.g1") == {"a": "1", "b": "1"}
    assert tables.log.get_meta("service", "registry") == "g2"
    assert tables.log.topics() == ["totals"]
    batch, staged = tables.batch({"totals": [("c", "1")]}, 1, generation="g2", query_id="q2")
    assert tables.log.commit(batch, staged).status == "committed"
    with pytest.raises(CommitConflictError):
        tables.publish({"totals": [("z", "1")]}, 1)


def test_cutover_batch_that_comes_again_is_skipped(tables):
    build = tables.log.acquire("service:build")
    closed(tables, {BUILT: [("a", "2")]}, 0, build)
    tables.log.cutover(*request(tables, {"totals": [("a", "2")]}, tables.lease, build))
    batch, staged = tables.batch({"totals": [("a", "2")]}, 0, generation="g2", query_id="q2")
    assert tables.log.commit(batch, staged).status == "skipped"
    assert [value for part in (0, 1) for _, value in tables.values("totals", part)].count("2") == 1


def test_cutover_to_a_topic_that_has_grown_does_nothing(tables):
    build = tables.log.acquire("service:build")
    asked, staged = request(tables, {"totals": [("a", "2")]}, tables.lease, build, documents={"registry": "g2"})
    tables.send("totals", ("x", "1"))
    assert tables.log.cutover(asked, staged) is None
    assert tables.table("totals") == {"a": "1", "b": "1", "x": "1"}
    assert tables.log.get_meta("service", "registry") is None


def test_cutover_without_one_of_the_leases_is_refused(tables):
    build = tables.log.acquire("service:build")
    asked, staged = request(tables, {"totals": [("a", "2")]}, tables.lease, build)
    tables.log.acquire("service:build", take_over=True)
    with pytest.raises(FencedError):
        tables.log.cutover(asked, staged)
    assert tables.table("totals") == {"a": "1", "b": "1"}


def test_copy_of_a_topic_outlives_changes_and_deletion_of_the_original(tables):
    build = tables.log.acquire("service:build")
    kept = {"__everstate.g1": tables.copy("totals")}
    tables.log.cutover(*request(tables, {}, tables.lease, build, copies=kept))
    tables.send("totals", ("a", "9"), ("b", None))
    assert tables.table("__everstate.g1") == {"a": "1", "b": "1"}
    tables.log.delete_topic("totals")
    assert tables.table("__everstate.g1") == {"a": "1", "b": "1"}


@pytest.mark.needs("clock", "compact")
def test_copy_of_a_topic_outlives_compaction_and_deletion_of_the_original(tables):
    build = tables.log.acquire("service:build")
    tables.log.cutover(*request(tables, {}, tables.lease, build, copies={"__everstate.g1": tables.copy("totals")}))
    tables.send("totals", ("a", "9"), ("b", None))
    tables.log.compact("totals")
    tables.clock.advance(10**9)
    tables.log.compact("totals")
    assert tables.table("__everstate.g1") == {"a": "1", "b": "1"}
    tables.log.delete_topic("totals")
    assert tables.table("__everstate.g1") == {"a": "1", "b": "1"}
    tables.log.compact("__everstate.g1")
    assert tables.table("__everstate.g1") == {"a": "1", "b": "1"}


def test_document_under_a_lost_lease_is_refused(bench):
    lease = bench.log.acquire("service:build")
    bench.log.set_meta("service", "registry", "1", leases=[lease])
    bench.log.acquire("service:build", take_over=True)
    with pytest.raises(FencedError):
        bench.log.set_meta("service", "registry", "2", leases=[lease])
    assert bench.log.metas("service") == {"registry": "1"}


def test_order_lists_published_batches_and_what_a_cutover_added(tables):
    build = tables.log.acquire("service:build")
    for number in range(3):
        closed(tables, {}, number, build)
    assert tables.log.order("service", "output", ["source"]) == [{"source": {0: 10, 1: 0}}]
    batch, staged = tables.batch({}, 2, generation="g2", query_id="q2")
    expected = tables.log.end_offsets(["totals"])
    asked = Cutover(commit=replace(batch, kind="cutover"), leases=(tables.lease, build), expected=expected)
    tables.log.cutover(asked, staged)
    assert [vector["source"][0] for vector in tables.log.order("service", "output", ["source"])] == [10, 20, 30]


@pytest.mark.needs("clock", "compact", "dense")
def test_order_in_a_topic_that_was_not_read_goes_by_the_time_of_its_records(tables):
    other = tables.topic("other", partitions=2)
    for number in (1, 2, 3):
        tables.clock.advance(1_000)
        tables.send(other, (None, "x"), (None, "y"), partition=[0, 0])
        tables.clock.advance(1_000)
        tables.publish({}, number)
    tables.send(other, (None, "z"), partition=[1])
    order = tables.log.order("service", "output", ["other", "source"])
    assert [vector["other"] for vector in order] == [{0: 0, 1: 0}, {0: 2, 1: 0}, {0: 4, 1: 0}, {0: 6, 1: 1}]
    assert [vector["source"][0] for vector in order] == [10, 20, 30, 40]
    tables.log.compact(other)
    assert tables.log.order("service", "output", ["other", "source"]) == order
    unknown = tables.log.order("service", "output", ["nowhere"])
    assert [vector["nowhere"] for vector in unknown] == [{}, {}, {}, {}]
