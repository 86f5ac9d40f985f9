"""Steps of Spark's own in plans: a function that has changed is told, or refused, and no output depends on it."""

import functools
from pathlib import Path

import pytest

import everstate as es
from everstate.errors import DeploymentError
from everstate.fingerprints import print_unit
from everstate.fingerprints.spark_steps import step_digest
from everstate.generations.state.spark_steps import (
    StepState,
    create_fed_topics,
    lease_name,
    read_state,
    require_same_feeds,
    warnings,
    write_state,
)
from everstate.log import MemoryLog

PATH = "/data/orders"


def service(read, write, **options):
    app = es.Service("shop")
    orders = app.stream("orders", key="id", schema={"id": str, "amount": int}).from_spark(read, partitions=2, **options)
    orders.group_by("id").agg(total=es.col("amount").sum()).to("totals").to_spark(write, **options)
    return app


def read_files(spark):
    return spark.readStream.schema("id string, amount long").json(PATH)


def read_other_files(spark):
    return spark.readStream.schema("id string, amount long").json(PATH + "/2")


def read_files_written_otherwise(spark):
    """The same in other words."""
    source = spark.readStream
    return source.schema("id string, amount long").json("/data/orders")


def write(frame, batch_id):
    with Path("/tmp/seen").open("a") as file:
        file.write(str(batch_id))
    frame.write.parquet("/data/out")


def write_elsewhere(frame, batch_id):
    with Path("/tmp/seen").open("a") as file:
        file.write(str(batch_id))
    frame.write.parquet("/data/elsewhere")


def digests(app):
    steps = app.spark_steps
    return [step_digest(step) for step in (*steps.feeds.values(), *steps.deliveries.values())]


def printed(app):
    (unit,) = app.units()
    return print_unit(unit, policy="dead-letter", settings={}).fingerprint


def test_digest_goes_by_meaning_and_no_effect_is_refused():
    first = digests(service(read_files, write))
    assert digests(service(read_files_written_otherwise, write)) == first
    changed = digests(service(read_other_files, write_elsewhere))
    assert changed[0] != first[0]
    assert changed[1] != first[1]


def test_fingerprint_of_an_output_does_not_depend_on_steps_of_spark():
    assert printed(service(read_files, write)) == printed(service(read_other_files, write_elsewhere))


def started(log, app):
    create_fed_topics(app.spark_steps, log)
    for step in (*app.spark_steps.feeds.values(), *app.spark_steps.deliveries.values()):
        lease = log.acquire(lease_name("shop", step))
        write_state(log, "shop", step, StepState(step_digest(step), "id"), lease)
        log.release(lease)


def told(log, app):
    (unit,) = app.units()
    return warnings("shop", unit, app.spark_steps, log)


def test_fed_topics_are_created_and_states_kept():
    log, app = MemoryLog(), service(read_files, write)
    started(log, app)
    assert log.describe("orders").config.partitions == 2
    feed = app.spark_steps.feeds["orders"]
    assert read_state(log, "shop", feed) == StepState(step_digest(feed), "id")
    assert told(log, app) == []
    require_same_feeds("shop", app.spark_steps, log)


def test_changed_functions_are_told_and_a_changed_source_is_refused_unless_it_continues():
    log = MemoryLog()
    started(log, service(read_files, write))
    app = service(read_other_files, write_elsewhere)
    feed, delivery = told(log, app)
    assert "from_spark(read_other_files) has changed" in feed
    assert delivery == "to_spark(write_elsewhere) has changed: it gets all records"
    with pytest.raises(DeploymentError, match="came from the earlier function") as refused:
        require_same_feeds("shop", app.spark_steps, log)
    assert refused.value.location.file == __file__
    assert 'on_change="continue"' in refused.value.hint
    goes_on = service(read_other_files, write_elsewhere, on_change="continue")
    require_same_feeds("shop", goes_on.spark_steps, log)
    assert [text.rpartition(": ")[2].rpartition("; ")[2] for text in told(log, goes_on)] == [
        "rows from now on go through the new one",
        "it gets what has not been delivered yet",
    ]


def test_what_cannot_be_seen_is_refused_by_the_name_of_the_step():
    app = service(functools.partial(read_files), write)
    assert step_digest(app.spark_steps.feeds["orders"])
