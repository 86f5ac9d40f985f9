import polars as pl
import pytest
from polars import col

import everstate as es
from everstate.errors import ConfigurationError, RecordError, TopicNotFoundError
from everstate.schema.partitioner import partition_of

ORDER = {"id": str, "customer": str, "amount": int}


def totals(**options):
    app = es.Service("test", **options)
    orders = app.table("orders", key="id", schema=ORDER)
    orders.group_by("customer").agg(total=col("amount").sum(), n=es.count()).to("totals")
    return app


def passing(schema, **options):
    app = es.Service("test")
    app.stream("in", schema=schema, **options).to("out")
    return app


def order(customer="ada", amount=1):
    return {"customer": customer, "amount": amount}


def _interrupted(driver):
    driver.send("orders", "o1", order(amount=5))
    raise RecordError("interrupted")


def test_driver_record_outside_of_a_batch_is_processed_at_once():
    driver = es.testing.Driver(totals())
    driver.send("orders", "o1", order(amount=5))
    assert driver.table("totals") == {"ada": {"total": 5, "n": 1}}


def test_driver_batch_is_one_micro_batch_and_publishes_one_record_a_key():
    driver = es.testing.Driver(totals())
    with driver.batch():
        driver.send("orders", "o1", order(amount=5))
        driver.send("orders", "o2", order(amount=7))
        assert driver.records("totals") == []
    assert [record.value for record in driver.records("totals")] == [{"total": 12, "n": 2}]


def test_driver_batch_inside_a_batch_ends_with_the_outer_one():
    driver = es.testing.Driver(totals())
    with driver.batch():
        with driver.batch():
            driver.send("orders", "o1", order())
        assert driver.records("totals") == []
    assert len(driver.records("totals")) == 1


def test_driver_batch_that_raises_processes_nothing_until_the_next_record():
    driver = es.testing.Driver(totals())
    with pytest.raises(RecordError), driver.batch():
        _interrupted(driver)
    assert driver.records("totals") == []
    driver.send("orders", "o2", order(amount=7))
    assert driver.table("totals") == {"ada": {"total": 12, "n": 2}}


def test_driver_tombstone_deletes_a_key():
    driver = es.testing.Driver(totals())
    driver.send("orders", "o1", order())
    driver.tombstone("orders", "o1", ts=9)
    assert driver.table("totals") == {}
    assert [(record.value, record.ts) for record in driver.records("totals")] == [({"total": 1, "n": 1}, 0), (None, 9)]


def test_driver_record_without_a_timestamp_takes_the_highest_so_far():
    driver = es.testing.Driver(passing(str))
    driver.send("in", "a", "x")
    driver.send("in", "a", "x", ts=50)
    driver.send("in", "a", "x", ts=20)
    driver.send("in", "a", "x")
    driver.advance(70)
    driver.send("in", "a", "x")
    driver.advance()
    driver.send("in", "a", "x")
    assert [record.ts for record in driver.records("out")] == [0, 50, 20, 50, 70, 70]


def test_driver_keys_lie_where_kafka_puts_them_on_both_sides():
    driver = es.testing.Driver(passing(str), partitions=5)
    keys = [f"key {number}" for number in range(20)]
    for key in keys:
        driver.send("in", key, "x")
    expected = partition_of(pl.Series([key.encode() for key in keys]), 5).to_list()
    for topic in ("in", "out"):
        assert [record.partition for record in driver.records(topic)] == expected


def test_driver_record_with_a_partition_goes_there_and_offsets_count_by_partition():
    driver = es.testing.Driver(passing(str), partitions=2)
    for partition in (1, 1, 0):
        driver.send("in", "a", "x", partition=partition)
    assert [(record.partition, record.offset) for record in driver.records("in")] == [(1, 0), (1, 1), (0, 0)]


def test_driver_records_without_a_key_take_turns():
    driver = es.testing.Driver(passing(str), partitions=3)
    for _ in range(4):
        driver.send("in", None, "x")
    assert [record.partition for record in driver.records("in")] == [0, 1, 2, 0]
    assert [record.key for record in driver.records("out")] == [None] * 4


def test_driver_composite_key_is_a_tuple():
    app = es.Service("test")
    app.table("in", key=["a", "b"], schema={"a": str, "b": int, "x": int}).to("out")
    driver = es.testing.Driver(app)
    driver.send("in", ("k", 1), {"x": 2})
    assert driver.table("out") == {("k", 1): {"x": 2}}


def test_driver_value_that_does_not_fit_is_sent_as_it_is_and_dead_lettered():
    driver = es.testing.Driver(totals())
    driver.send("orders", "o1", {"customer": "ada", "amount": "five"})
    driver.send("orders", "o2", b"{")
    assert [letter.value["offset"] for letter in driver.records("totals.dlq")] == [0, 1]
    assert driver.counts("totals") == {"dead": 2}


def test_driver_policy_fail_raises_and_publishes_nothing_of_the_micro_batch():
    driver = es.testing.Driver(totals(on_error="fail"))
    driver.send("orders", "o1", order())
    with pytest.raises(RecordError, match="orders/0 offset 1"):
        driver.send("orders", "o2", b"{")
    assert len(driver.records("totals")) == 1


def test_driver_micro_batch_that_fails_in_a_later_stage_leaves_the_state_as_it_was():
    refused = [5]

    def total(row) -> int:
        if row["total"] in refused:
            raise ValueError
        return row["total"]

    app = es.Service("test", on_error="fail")
    orders = app.table("orders", key="id", schema=ORDER)
    orders.group_by("customer").agg(total=col("amount").sum()).map(total).to("totals")
    driver = es.testing.Driver(app)
    driver.send("orders", "o1", order(amount=1))
    with pytest.raises(RecordError):
        driver.send("orders", "o2", order(amount=4))
    refused.clear()
    driver.send("orders", "o3", order(amount=10))
    assert driver.table("totals") == {"ada": 15}


def test_driver_policy_skip_counts_only():
    driver = es.testing.Driver(totals(on_error="skip"))
    driver.send("orders", "o1", b"{")
    assert driver.records("totals.dlq") == []
    assert driver.counts("totals") == {"dead": 1}


def test_driver_headers_of_a_source_are_kept_and_outputs_name_the_service():
    driver = es.testing.Driver(passing(str))
    driver.send("in", "a", "x", headers={"trace": b"1"})
    assert driver.records("in")[0].headers == {"trace": b"1"}
    assert driver.records("out")[0].headers == {"es-service": b"test", "es-generation": b"1", "es-st": b"0,0"}


def test_driver_output_that_another_reads_arrives_in_the_same_call():
    app = es.Service("test")
    counts = app.stream("words", schema=str).group_by("value").agg(n=es.count()).to("counts")
    counts.filter(col("n") > 1).to("repeated")
    driver = es.testing.Driver(app)
    driver.send("words", None, "a")
    driver.send("words", None, "a")
    assert driver.table("repeated") == {"a": {"n": 2}}


@pytest.mark.parametrize("shards", [2, 5])
def test_driver_results_do_not_depend_on_shards(shards):
    drivers = [es.testing.Driver(totals(), shards=number) for number in (1, shards)]
    for driver in drivers:
        for number in range(12):
            driver.send("orders", f"o{number % 7}", order(f"c{number % 4}", number))
    assert drivers[0].table("totals") == drivers[1].table("totals")


def test_driver_topic_that_is_no_source_is_refused():
    driver = es.testing.Driver(totals())
    with pytest.raises(TopicNotFoundError, match="'people'"):
        driver.send("people", "a", {})


def test_driver_topic_without_records_is_empty():
    driver = es.testing.Driver(totals())
    assert driver.table("totals") == {}
    assert driver.records("totals.dlq") == []


@pytest.mark.parametrize("options", [{"partitions": 0}, {"shards": 0}])
def test_driver_without_partitions_or_shards_is_refused(options):
    with pytest.raises(ConfigurationError):
        es.testing.Driver(totals(), **options)


def test_driver_advance_moves_the_stream_time_that_rows_are_ordered_by():
    def joined(text, row) -> str:
        return text + row

    app = es.Service("test")
    app.stream("in", key="id", schema=str).group_by("id").aggregate(str, joined, schema=str).to("out")
    found = {}
    for ahead in (None, 100):
        driver = es.testing.Driver(app, partitions=2)
        driver.send("in", "k", "a", ts=1, partition=0)
        if ahead is not None:
            driver.advance(ahead)
        with driver.batch():
            driver.send("in", "k", "b", ts=5, partition=0)
            driver.send("in", "k", "c", ts=3, partition=1)
        found[ahead] = driver.table("out")["k"]
    # Without it the row of the other partition is the earlier one; with it both have the same stream time.
    assert found == {None: "acb", 100: "abc"}


def test_driver_advance_before_the_first_record_is_not_forgotten():
    app = es.Service("test")
    app.stream("in", key="id", schema=str).group_by("id").aggregate(str, lambda text, row: text + row, schema=str).to(
        "out"
    )
    driver = es.testing.Driver(app, partitions=2)
    driver.advance(100)
    with driver.batch():
        driver.send("in", "k", "b", ts=5, partition=0)
        driver.send("in", "k", "c", ts=3, partition=1)
    assert driver.table("out") == {"k": "bc"}


def test_driver_shows_what_was_removed_and_removes_nothing_of_that():
    app = es.Service("test")
    app.table("in", key="id", key_type=int, schema={"n": int}).to("out")
    driver = es.testing.Driver(app)
    for key in (1, 2):
        driver.send("in", key, {"n": 0}, ts=1000 * key)
    assert driver.remove_quiet("out", after="1s") == 1
    assert driver.table("out.removed") == {1: {"partition": 0, "offset": 0}}
    with pytest.raises(ConfigurationError, match=r"'out.removed' says what was removed from 'out'"):
        driver.remove_quiet("out.removed", after="1s")


def test_driver_micro_batch_that_failed_is_repeated_as_it_was_before_the_next():
    refused = [5]

    def checked(row) -> int:
        if row["amount"] in refused:
            raise ValueError
        return row["amount"]

    app = es.Service("test", on_error="fail")
    app.table("orders", key="id", schema=ORDER).map(checked).to("amounts")
    driver = es.testing.Driver(app)
    with pytest.raises(RecordError):
        driver.send("orders", "o1", order(amount=5))
    refused.clear()
    driver.send("orders", "o1", order(amount=6))
    assert [record.value for record in driver.records("amounts")] == [5, 6]
