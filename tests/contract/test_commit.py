from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from everstate.errors import CommitConflictError, FencedError, LogError, TopicNotFoundError


@pytest.fixture
def tables(bench):
    bench.topic("totals", compact=True, partitions=2)
    bench.topic("totals.dlq", compact=True)
    bench.topic("events")
    return bench


def test_stage_records_are_invisible_until_the_commit(tables):
    batch, staged = tables.batch({"totals": [("a", "1")], "events": [("x", "1")]})
    assert tables.table("totals") == {}
    assert tables.count("events") == 0
    result = tables.log.commit(batch, pickle.loads(pickle.dumps(staged)))
    assert result.status == "committed"
    assert result.offsets is None or result.offsets["events"] == {0: (0, 1)}
    assert tables.table("totals") == {"a": "1"}
    assert tables.values("events") == [("x", "1")]


def test_stage_one_partition_goes_where_it_was_told(tables):
    batch, _ = tables.batch({})
    staged = [tables.log.stage("totals", 1, tables.frame(("a", "1"))), tables.log.stage("totals", 0, tables.frame())]
    tables.log.commit(batch, staged)
    assert [tables.values("totals", number) for number in (0, 1)] == [[], [("a", "1")]]


def test_commit_several_parts_of_a_partition_follow_each_other(tables):
    batch, first = tables.batch({"events": [("x", "1"), ("x", "2")]})
    _, second = tables.batch({"events": [("x", "3")]})
    result = tables.log.commit(batch, [*first, *second])
    assert result.offsets in (None, {"events": {0: (0, 3)}})
    assert tables.values("events") == [("x", "1"), ("x", "2"), ("x", "3")]


def test_commit_is_remembered_with_all_that_identifies_it(tables):
    batch, staged = tables.batch({"totals": [("a", "1")]})
    assert tables.log.last_commit("service", "output") is None
    began = tables.clock()
    tables.log.commit(batch, staged)
    found = tables.log.last_commit("service", "output")
    assert found == batch
    assert began <= found.committed_ms <= tables.clock()


def test_commit_is_remembered_with_the_times_that_partitions_have_reached_and_the_clock(tables):
    batch, staged = tables.batch({"totals": [("a", "1")]})
    end = {**batch.end, "$clock": {0: 1_700_000_000_000}, "$time:orders": {3: 5}}
    batch = replace(batch, end=end, times={"orders": {0: 7, 3: -1}})
    tables.log.commit(batch, staged)
    found = tables.log.last_commit("service", "output")
    assert (found.end, found.times, found.batch.times) == (end, batch.times, batch.times)
    assert tables.log.order("service", "output", ["orders"])[0]["$clock"] == {0: 1_700_000_000_000}
    assert tables.log.order("service", "output", ["orders"])[0]["$time:orders"] == {3: 5}
    assert "$time:orders" not in tables.log.order("service", "output", ["people"])[0]


def test_commit_without_records_is_remembered_too(tables):
    assert tables.publish({}, 0).status == "committed"
    assert tables.publish({"totals": [("a", "1")]}, 1).status == "committed"


def test_commit_same_batch_again_is_skipped(tables):
    first = tables.publish({"totals": [("a", "1"), ("b", "1")], "events": [("x", "1")]})
    again = tables.publish({"events": [("x", "1")], "totals": [("b", "1"), ("a", "1")]})
    assert again.status == "skipped"
    assert again.offsets == first.offsets
    assert tables.count("events") == 1


def test_commit_same_staged_records_again_is_skipped_and_they_stay(tables):
    batch, staged = tables.batch({"totals": [("a", "1")]})
    tables.log.commit(batch, staged)
    assert tables.log.commit(batch, staged).status == "skipped"
    assert tables.table("totals") == {"a": "1"}


def test_commit_same_batch_under_a_new_lease_is_skipped(tables):
    tables.publish({"totals": [("a", "1")]})
    tables.log.release(tables.lease)
    tables.lease = tables.log.acquire("service")
    assert tables.publish({"totals": [("a", "1")]}).status == "skipped"


def test_commit_other_content_on_a_table_publishes_the_difference(tables):
    tables.publish({"totals": [("kept", "1"), ("changed", "1"), ("gone", "1")]}, 0)
    tables.publish({"totals": [("kept", "2"), ("changed", "2"), ("gone", "2"), ("only", "2")]}, 1)
    before = tables.count("totals")
    result = tables.publish({"totals": [("kept", "2"), ("changed", "3"), ("new", "3")]}, 1)
    assert result.status == "corrected"
    assert tables.table("totals") == {"kept": "2", "changed": "3", "gone": "1", "new": "3"}
    assert tables.count("totals") == before + 4
    assert tables.publish({"totals": [("kept", "2"), ("changed", "3"), ("new", "3")]}, 1).status == "skipped"


def test_commit_corrected_twice_goes_back_to_the_first_content(tables):
    tables.publish({"totals": [("a", "0")]}, 0)
    for content in ([("a", "1"), ("b", "1")], [("b", "2")], [("a", "1"), ("b", "1")]):
        tables.publish({"totals": content}, 1)
    assert tables.table("totals") == {"a": "1", "b": "1"}
    assert tables.publish({"totals": [("a", "2")]}, 2).status == "committed"
    assert tables.table("totals") == {"a": "2", "b": "1"}


def test_commit_corrected_tombstone_of_the_batch_gives_the_value_back(tables):
    tables.publish({"totals": [("a", "1")]}, 0)
    tables.publish({"totals": [("a", None)]}, 1)
    tables.publish({"totals": []}, 1)
    assert tables.table("totals") == {"a": "1"}


def test_commit_other_content_on_a_stream_is_a_conflict_that_names_the_cure(tables):
    tables.publish({"events": [("x", "1")], "totals.dlq": []})
    with pytest.raises(
        CommitConflictError, match=r"stream 'events' with different content(?s:.*)everstate clear SERVICE.py"
    ):
        tables.publish({"events": [("x", "2")], "totals.dlq": [("d", "1")]})
    assert tables.values("events") == [("x", "1")]
    assert tables.table("totals.dlq") == {}


def test_commit_same_stream_and_other_dead_letters_corrects_only_these(tables):
    tables.publish({"events": [("x", "1")], "totals.dlq": [("d", "1")]})
    assert tables.publish({"events": [("x", "1")], "totals.dlq": []}).status == "corrected"
    assert tables.values("events") == [("x", "1")]
    assert tables.table("totals.dlq") == {}


@pytest.mark.parametrize(
    ("batch_id", "changes", "reason"),
    [
        (1, {"query_id": "q2"}, "the log was written by query q1, but this is query q2"),
        (2, {"query_id": "q2"}, "the log was written by query q1, but this is query q2"),
        (2, {"generation": "g2"}, "the log was written by generation g1, but this is g2"),
        (0, {}, "the last batch in the log is 1, so the next is 2"),
        (3, {}, "the last batch in the log is 1, so the next is 2"),
        (2, {"start": {"source": {0: 19, 1: 0}}}, "it begins at .* but the batch before ended at"),
        (2, {"start": {"source": {0: 20}}}, "it begins at"),
        (1, {"end": {"source": {0: 21, 1: 0}}}, "the log has this batch from"),
    ],
)
def test_commit_that_does_not_follow_is_a_conflict_and_publishes_nothing(tables, batch_id, changes, reason):
    tables.publish({"totals": [("a", "1")]}, 0)
    tables.publish({"totals": [("a", "2")]}, 1)
    with pytest.raises(CommitConflictError, match=reason):
        tables.publish({"totals": [("a", "3")]}, batch_id, **changes)
    assert tables.table("totals") == {"a": "2"}
    assert tables.publish({"totals": [("a", "3")]}, 2).status == "committed"


def test_commit_first_batch_of_an_output_may_have_any_number(tables):
    assert tables.publish({"totals": [("a", "1")]}, 7).status == "committed"


def test_commit_outputs_of_one_service_count_on_their_own(tables):
    tables.publish({"totals": [("a", "1")]}, 0)
    assert tables.publish({"events": [("x", "1")]}, 0, output="other").status == "committed"


def test_commit_with_an_old_token_is_fenced_and_publishes_nothing(tables):
    batch, staged = tables.batch({"totals": [("a", "1")]})
    tables.log.acquire("service", take_over=True)
    with pytest.raises(FencedError, match="has been taken over by process"):
        tables.log.commit(batch, staged)
    assert tables.table("totals") == {}


def test_commit_correction_with_an_old_token_is_fenced(tables):
    tables.publish({"totals": [("a", "1")]})
    batch, staged = tables.batch({"totals": [("a", "2")]})
    tables.log.acquire("service", take_over=True)
    with pytest.raises(FencedError):
        tables.log.commit(batch, staged)
    assert tables.table("totals") == {"a": "1"}


def test_commit_without_a_lease_is_refused(tables):
    batch, staged = tables.batch({"totals": [("a", "1")]})
    with pytest.raises(FencedError, match="nobody holds the lease 'other'"):
        tables.log.commit(replace(batch, lease="other"), staged)


def test_commit_one_topic_is_gone_publishes_to_none(tables):
    batch, staged = tables.batch({"totals": [("a", "1")], "events": [("x", "1")]})
    tables.log.delete_topic("events")
    tables.topic("events")
    with pytest.raises((TopicNotFoundError, LogError)):
        tables.log.commit(batch, staged)
    assert tables.table("totals") == {}
    assert tables.log.last_commit("service", "output") is None


def test_abort_staged_records_cannot_be_committed_any_more(tables):
    batch, staged = tables.batch({"totals": [("a", "1")]})
    tables.log.abort(staged)
    with pytest.raises(LogError, match="Nothing was published"):
        tables.log.commit(batch, staged)


def test_abort_after_the_commit_deletes_nothing(tables):
    batch, staged = tables.batch({"totals": [("a", "1"), ("b", "1")]})
    tables.log.commit(batch, staged)
    tables.log.abort(staged)
    assert tables.table("totals") == {"a": "1", "b": "1"}


def test_forget_service_may_start_anew_and_its_topics_stay(tables):
    tables.publish({"totals": [("a", "1")]}, 5)
    tables.publish({"totals": [("a", "1")]}, 5, service="other", lease="service")
    tables.log.set_meta("service", "x", "1")
    tables.log.forget("service")
    assert tables.log.last_commit("service", "output") is None
    assert tables.log.last_commit("other", "output") is not None
    assert tables.log.get_meta("service", "x") is None
    assert tables.publish({"totals": [("a", "2")]}, 0, query_id="q2").status == "committed"
    assert tables.table("totals") == {"a": "2"}


def test_order_batches_that_are_not_ordered_are_left_out_and_still_known(bench):
    bench.topic("source", partitions=2)
    bench.topic("table", compact=True)
    bench.publish({"table": [("a", "1")]}, 0, ordered=False)
    bench.publish({"table": [("a", "2")]}, 1)
    assert list(bench.log.order("service", "output", ["source"])) == [{"source": {0: 20, 1: 0}}]
    assert bench.log.last_commit("service", "output").batch_id == 1
    assert bench.publish({"table": [("a", "2")]}, 1).status == "skipped"


@pytest.mark.needs("clock")
def test_order_clock_that_is_set_back_after_a_topic_was_created_loses_no_batch(bench):
    bench.topic("source", partitions=2)
    bench.topic("table", compact=True)
    bench.clock.advance(-3_600_000)
    for number in range(2):
        bench.publish({"table": [("a", str(number))]}, number)
    assert list(bench.log.order("service", "output", ["source"])) == [
        {"source": {0: 10, 1: 0}},
        {"source": {0: 20, 1: 0}},
    ]


@pytest.mark.needs("clock")
@pytest.mark.parametrize("passed_ms", [-3_600_000, 0, 3_600_000])
def test_order_topic_that_was_created_again_has_none_of_the_batches_before(bench, passed_ms):
    bench.topic("source", partitions=2)
    bench.topic("table", compact=True)
    bench.publish({"table": [("a", "1")]}, 0)
    bench.clock.advance(passed_ms)
    bench.log.delete_topic("source")
    bench.topic("source", partitions=2)
    assert list(bench.log.order("service", "output", ["source"])) in ([], [{"source": {0: 0, 1: 0}}])
    bench.publish({"table": [("a", "2")]}, 1)
    assert list(bench.log.order("service", "output", ["source"]))[-1] == {"source": {0: 20, 1: 0}}


def test_last_commit_of_a_replaced_generation_stays_known(bench):
    bench.topic("table", compact=True)
    for number in range(3):
        bench.publish({"table": [("a", str(number))]}, number)
        bench.publish({"table": []}, number, generation="g2", query_id="q2", kind="closed")
    assert bench.log.last_commit("service", "output").generation == "g1"
    assert [bench.log.last_commit("service", "output", g).batch_id for g in ("g1", "g2")] == [2, 2]


def test_commit_leaves_out_keys_that_have_got_records_since_it_looked(tables):
    tables.topic("owners", compact=True, partitions=2)
    tables.send("owners", ("a", "1"), ("b", "1"), ("c", "1"))
    seen = {"owners": tables.log.end_offsets(["owners"])["owners"]}
    tables.send("owners", ("b", "2"))
    content = {
        "owners": [("a", None), ("b", None), ("c", None)],
        "totals": [("a", "gone"), ("b", "gone"), ("c", "gone")],
        "events": [("b", "told")],
    }
    result = tables.publish(content, output="totals", seen=seen)
    assert (result.status, result.left_out, result.buried) == ("committed", 1, 0)
    assert tables.table("owners") == {"b": "2"}
    assert tables.table("totals") == {"a": "gone", "c": "gone"}
    assert tables.values("events") == [("b", "told")]


def test_commit_that_left_keys_out_is_skipped_when_it_comes_again(tables):
    tables.topic("owners", compact=True)
    tables.send("owners", ("a", "1"))
    seen = {"owners": tables.log.end_offsets(["owners"])["owners"]}
    tables.send("owners", ("a", "2"))
    content = {"owners": [("a", None)], "totals": [("a", "gone")]}
    assert tables.publish(content, output="totals", seen=seen).left_out == 1
    assert tables.publish(content, output="totals", seen=seen).status == "skipped"
    assert (tables.table("owners"), tables.table("totals")) == ({"a": "2"}, {})


def test_commit_of_keys_that_nobody_has_touched_is_published_whole(tables):
    tables.topic("owners", compact=True)
    tables.send("owners", ("a", "1"), ("b", "1"))
    seen = {"owners": tables.log.end_offsets(["owners"])["owners"]}
    tables.send("owners", ("c", "1"))
    result = tables.publish({"owners": [("a", None), ("b", None)]}, output="totals", seen=seen)
    assert (result.status, result.left_out) == ("committed", 0)
    assert tables.table("owners") == {"c": "1"}
