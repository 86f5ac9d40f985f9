"""What a batch does at either end, with a stand-in for Spark's data frame: commits, numbers of batches, failures."""

import json
import logging
import pickle
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pyarrow as pa
import pytest

import everstate as es
from everstate.engine.query.by_value import own_copy
from everstate.engine.spark_io.columns import delivered_schema
from everstate.engine.spark_io.crossings import Crossings
from everstate.engine.spark_io.delivery import DeliveryCrossing
from everstate.engine.spark_io.feed import FeedCrossing
from everstate.engine.spark_io.tasks import Ends, handing_out
from everstate.errors import CommitConflictError, EngineError, StateError, UserFunctionError
from everstate.generations.deploy.settings import Settings
from everstate.kernels.records.typed_rows import DeclaredForm
from everstate.log import EmbeddedLog
from everstate.log.descriptions import TopicConfig
from everstate.plan.actions import Begin, Estimate, Keep, Plan, Recalculate

SCHEMA = {"id": str, "n": int}


class Frame:
    """As much of a data frame as a batch uses: parts, each of which a task gets."""

    def __init__(self, *parts):
        self.parts = [pa.RecordBatch.from_pylist(rows) for rows in parts]
        self.columns = ["n", "$offset"]

    def mapInArrow(self, function, schema):  # noqa: N802 - Spark's name
        assert schema == "report string"
        self.given = [row for part in self.parts for batch in function(iter([part])) for row in batch.to_pylist()]
        return self

    def collect(self):
        return [(row["report"],) for row in self.given]


def read(spark):
    return spark


@pytest.fixture
def log(tmp_path):
    log = EmbeddedLog(tmp_path / "log")
    yield log
    log.close()


def feed(log, folder, *, table=False):
    app = es.Service("shop")
    (app.table if table else app.stream)("orders", key="id", schema=SCHEMA).from_spark(read)
    step = app.spark_steps.feeds["orders"]
    log.create_topic("orders", TopicConfig(partitions=2, compact=table), exist_ok=True)
    made = FeedCrossing(
        step, log, log.acquire("shop:from_spark:orders"), folder, run=0, service="shop", settings=Settings()
    )
    made._ends = Ends(pickle.dumps(log), "orders", DeclaredForm(step.key, step.schema, step.format), 2)
    made.checkpoint.mkdir(parents=True, exist_ok=True)
    (made.checkpoint / "metadata").write_text(json.dumps({"id": "query"}))
    return made


def rows(first, last, **changes):
    return [{"id": f"k{n}", "n": n, **changes} for n in range(first, last)]


def values(log):
    return sorted(json.loads(value)["n"] for number in range(2) for value in log.read("orders", number, 0)["value"])


def test_batch_that_comes_again_is_skipped_and_the_next_one_goes_on(log, tmp_path):
    crossing = feed(log, tmp_path / "feed")
    crossing.check()
    crossing._batch(Frame(rows(0, 5), rows(5, 9)), 0)
    crossing._batch(Frame(rows(5, 9), rows(0, 5)), 0)
    assert values(log) == list(range(9))
    crossing._batch(Frame(rows(9, 12)), 1)
    crossing._batch(Frame(), 2)
    assert values(log) == list(range(12))
    assert log.last_commit("shop", "from_spark:orders:0").batch_id == 2


def test_other_rows_for_a_batch_are_refused_on_a_stream_and_corrected_on_a_table(log, tmp_path):
    crossing = feed(log, tmp_path / "feed")
    crossing._batch(Frame(rows(0, 3)), 0)
    with pytest.raises(CommitConflictError, match=r"from_spark\(read\) does not continue where topic 'orders' is"):
        crossing._batch(Frame(rows(0, 4)), 0)
    assert values(log) == [0, 1, 2]
    log.delete_topic("orders")
    again = EmbeddedLog(tmp_path / "other")
    table = feed(again, tmp_path / "table", table=True)
    table._batch(Frame(rows(0, 3)), 0)
    table._batch(Frame(rows(1, 4)), 0)
    latest = again.latest("orders")
    assert sorted(key.decode() for key in latest["key"]) == ["k1", "k2", "k3"]
    again.close()


def test_lost_position_is_named_and_nothing_is_read_twice(log, tmp_path):
    crossing = feed(log, tmp_path / "feed")
    crossing._batch(Frame(rows(0, 3)), 0)
    (crossing.checkpoint / "metadata").unlink()
    with pytest.raises(StateError, match=r"the position of from_spark\(read\)") as refused:
        crossing.check()
    assert "give the source a new topic" in refused.value.hint


def delivery(log, folder, call, run=0):
    app = es.Service("shop")
    app.stream("orders", key="id", schema=SCHEMA).to("copied").to_spark(call)
    step = app.spark_steps.deliveries["copied"]
    made = DeliveryCrossing(
        step, log, log.acquire("shop:to_spark:copied"), folder, run=run, service="shop", settings=Settings(restarts=2)
    )
    made._told = 0
    made._unreadable = type("Accumulator", (), {"value": []})()
    return made


def write(frame, batch_id):
    frame.seen.append(batch_id)


def fail(frame, batch_id):
    raise ValueError("the sink is away")


def mistake(frame, batch_id):
    return frame.no_such_method()


def test_numbers_of_batches_never_come_twice_with_other_records(log, tmp_path):
    frame = type("Seen", (), {"seen": []})()
    first = delivery(log, tmp_path, write)
    first._batch(frame, 7)
    log.release(first.lease)
    delivery(log, tmp_path, write, run=2)._batch(frame, 7)
    assert frame.seen == [7, 2 * 10**12 + 7]


@pytest.mark.parametrize(("call", "passes"), [(fail, True), (mistake, False)])
def test_function_that_raises_is_named_with_its_line_and_tried_again_unless_it_is_a_mistake(
    log, tmp_path, call, passes
):
    crossing = delivery(log, tmp_path, call)
    with pytest.raises(Exception, match=r"the sink is away|no_such_method"):
        crossing._carried(object(), 0)
    named = crossing._named(crossing._failure)
    assert isinstance(named, UserFunctionError)
    assert named.location.file == __file__
    assert named.location.line == call.__code__.co_firstlineno + 1
    assert f"to_spark({call.__name__}) raised" in named.message
    assert crossing._may_pass(crossing._failure, named) is passes


def test_failures_in_a_row_come_to_an_end_and_with_once_at_once(log, tmp_path, caplog):
    crossing = delivery(log, tmp_path, fail)
    error = RuntimeError("Connection reset by peer")
    for _ in range(2):
        crossing._retry(error)
    with pytest.raises(EngineError):
        crossing._retry(error)
    assert caplog.text.count("will start again") == 2
    crossing._once = True
    crossing._backoff.succeeded()
    with pytest.raises(EngineError):
        crossing._retry(error)


def test_records_of_an_earlier_version_are_left_out_and_told(log, tmp_path, caplog):
    log.create_topic("copied")
    log.append("copied", pl.DataFrame({"key": [b"a", b"b"], "value": [b'{"id":"a","n":1}', b'{"id":"b","n":"old"}']}))
    crossing = delivery(log, tmp_path, write)
    step = crossing.step
    form = DeclaredForm(step.key, step.schema, step.format)
    told = crossing._unreadable
    told.add = told.value.append
    schema, _ = delivered_schema(form)
    ends = Ends(pickle.dumps(log), "copied", form, 1)
    (split,) = log.splits("copied", 0, 0, 2, max_records=10)
    address = pa.RecordBatch.from_pylist([split.__dict__])
    given = [row for batch in handing_out(ends, schema, told)(iter([address])) for row in batch.to_pylist()]
    assert [(row["id"], row["n"], row["$deleted"]) for row in given] == [("a", 1, False)]
    with caplog.at_level(logging.WARNING):
        crossing._tell()
        crossing._tell()
    assert caplog.text.count("was not given 1 record of topic copied") == 1
    assert "partition 0 offset 1" in caplog.text


def test_own_copy_is_another_function_of_the_same_file():
    path = Path("/data")

    def reading(spark):
        return spark, path

    copied = own_copy(reading, __file__)
    assert copied is not reading
    assert copied("session") == ("session", path)
    assert copied.__code__.co_filename == __file__


def planned(action, active, *, publishes=True):
    """The crossings of a service that does this with its output, which is now at that generation."""
    app = es.Service("shop")
    app.stream("orders", key="id", schema=SCHEMA).from_spark(read).to("copied").to_spark(write)
    history = SimpleNamespace(active=None if active is None else SimpleNamespace(number=active))
    site = SimpleNamespace(
        registry=SimpleNamespace(read=lambda _: history), leases=SimpleNamespace(publishes=lambda: publishes)
    )
    plan = Plan("shop", (action,))
    return Crossings(app, site, plan, lambda: None, lambda: False), app.spark_steps


@pytest.mark.parametrize(
    ("action", "active", "publishes", "due"),
    [
        (Keep(output="copied", fingerprint="f", active=1), 1, True, True),
        (Keep(output="copied", fingerprint="f", active=1), 1, False, False),
        (Recalculate(output="copied", fingerprint="f", active=1, estimate=Estimate(0)), 1, True, False),
        (Recalculate(output="copied", fingerprint="f", active=1, estimate=Estimate(0)), 2, True, True),
        (Begin(output="copied", fingerprint="f"), None, True, False),
        (Begin(output="copied", fingerprint="f"), 1, True, True),
    ],
)
def test_delivery_begins_when_its_own_version_is_active_and_a_feed_at_once(action, active, publishes, due):
    crossings, steps = planned(action, active, publishes=publishes)
    assert crossings._is_due(steps.deliveries["copied"]) is due
    assert crossings._is_due(steps.feeds["orders"])


def test_all_that_runs_is_stopped_and_its_leases_are_free_although_one_cannot_be(log):
    crossings, steps = planned(Keep(output="copied", fingerprint="f", active=1), 1)
    crossings._site = SimpleNamespace(log=log, settings=Settings())
    stopped = []

    def stop(name):
        stopped.append(name)
        raise EngineError("Spark is gone")

    for step in (steps.feeds["orders"], steps.deliveries["copied"]):
        lease = log.acquire(f"shop:{step.name}")
        crossings._running[step.name] = SimpleNamespace(
            step=step, lease=lease, stop=lambda _, name=step.name: stop(name)
        )
    crossings.close()
    assert stopped == ["from_spark:orders", "to_spark:copied"]
    assert log.holder("shop:from_spark:orders") is None
    assert log.holder("shop:to_spark:copied") is None
