"""What the commands do beside a run: previews, approvals, the way back, and giving up."""

from __future__ import annotations

from dataclasses import replace

import pytest

import everstate as es
from everstate import col
from everstate.cli.exit_codes import APPROVAL, exit_code
from everstate.engine.commands.discarding import discard
from everstate.engine.commands.preview import preview_service
from everstate.engine.commands.rollback import roll_back
from everstate.engine.commands.runner import Runner
from everstate.errors import ApprovalNeededError
from everstate.generations.generation import Status, own_topic
from everstate.plan.actions import Recalculate
from everstate.plan.document import from_json, to_json
from everstate.plan.preview import Counts

pytestmark = pytest.mark.spark

ORDER = {"id": str, "customer": str, "amount": int}


def version(least=0, factor=1):
    app = es.Service("shop", shards=2)
    rows = app.table("orders", key="id", schema=ORDER).filter(col("amount") > least)
    rows.group_by("customer").agg(total=col("amount").sum() * factor).to("totals")
    return app


@pytest.fixture
def shop(world):
    world.topics.create("orders", partitions=3, compact=True)
    world.topics.send("orders", [(f"o{n}", {"customer": f"c{n}", "amount": n}) for n in range(1, 121)])
    return world


@pytest.fixture
def given(shop, spark):
    return {"log": shop.log.url, "session": spark, "show": False, "cores": 2}


def expected(numbers, factor=1, **others):
    return {f"c{n}": {"total": n * factor} for n in numbers} | {key: {"total": n} for key, n in others.items()}


def statuses(shop):
    return {g.number: g.status for g in shop.generations("shop", "totals").generations}


def last_batch(shop, generation):
    return shop.log.last_commit("shop", "totals", str(generation)).batch_id


def test_preview_counts_exactly_and_the_run_after_it_does_not_replay(shop, given):
    shop.deploy(version())
    before, written = expected(range(1, 121)), shop.topics.count("totals")
    shop.topics.send("orders", [("new", {"customer": "d", "amount": 50}), ("bad", b"?")], ts=1000)
    quick = preview_service(version(least=10), log=shop.log.url, show=False)
    assert statuses(shop) == {1: Status.ACTIVE}
    plan = preview_service(version(least=10), **given, preview_records=0)

    (preview,) = plan.previews
    number = preview.generation
    (without_spark,) = quick.previews
    assert replace(without_spark, generation=number, kept=True) == preview
    assert preview.counts == Counts(new=1, changed=0, stale=10, unchanged=110, newly_dead=1)
    assert [(sample.key, sample.new) for sample in preview.new] == [("d", '{"total":50}')]
    assert [sample.old for sample in preview.stale if sample.key == "c7"] in ([], ['{"total":7}'])
    assert (preview.dead[0].topic, preview.generation) == ("orders", number)
    assert statuses(shop) == {1: Status.ACTIVE, number: Status.READY}
    assert (shop.table("totals"), shop.topics.count("totals")) == (before, written)
    (action,) = plan.actions
    assert isinstance(action, Recalculate)
    assert (action.resumes, action.records) == (number, 0)

    batch = last_batch(shop, number)
    published = shop.deploy(version(least=10), plan=from_json(to_json(plan)), approve=True)["totals"]
    assert len(published) == preview.counts.written
    assert last_batch(shop, number) == batch  # only the cutover itself, which closes the last batch
    assert statuses(shop) == {1: Status.RETIRED, number: Status.ACTIVE}
    assert shop.table("totals") == expected(range(11, 121), d=50)


@pytest.mark.long
def test_rollback_catches_up_without_a_replay_and_the_newer_file_comes_again(shop, given):
    shop.deploy(version())
    shop.deploy(version(factor=2))
    batch = last_batch(shop, 1)
    shop.topics.send("orders", [("o1", None), ("new", {"customer": "d", "amount": 50})], ts=1000)
    (restored,) = roll_back(version(factor=2), **given)
    assert (restored.output, restored.generation, restored.replaced, restored.in_file) == ("totals", 1, 2, False)
    assert restored.counts["changed"] == 119
    assert last_batch(shop, 1) == batch + 1
    assert shop.table("totals") == expected(range(2, 121), d=50)
    assert statuses(shop) == {1: Status.ACTIVE, 2: Status.RETIRED}
    assert shop.generations("shop", "totals").audit[-1].why.startswith("rolled back: ")

    shop.topics.send("orders", [("o2", None)], ts=2000)
    shop.deploy(version())  # the earlier file goes on with it
    assert statuses(shop) == {1: Status.ACTIVE, 2: Status.RETIRED}
    assert shop.table("totals") == expected(range(3, 121), d=50)


@pytest.mark.long
def test_cutover_that_removes_much_waits_fails_or_is_approved_as_asked(shop, given):
    shop.deploy(version())
    before = shop.table("totals")
    with pytest.raises(ApprovalNeededError, match=r"60 of 120 keys of totals \(50 %\)") as waits:
        shop.deploy(version(least=60), file="shop.py")
    assert exit_code(waits.value) == APPROVAL
    assert waits.value.hint == "If this is intended: everstate run shop.py --approve"
    assert statuses(shop) == {1: Status.ACTIVE, 2: Status.READY}

    with pytest.raises(ApprovalNeededError):
        shop.deploy(version(least=60), approval="fail")
    assert statuses(shop) == {1: Status.ACTIVE}
    assert shop.table("totals") == before

    preview_service(version(least=60), **given, preview_records=0)
    prepared = shop.generations("shop", "totals").building
    assert discard(version(), "totals", log=shop.log.url).number == prepared.number
    assert statuses(shop) == {1: Status.ACTIVE}
    assert not shop.log.has_topic(own_topic("shop", "totals", prepared))

    assert len(shop.deploy(version(least=60), approve=True)["totals"]) == 60


@pytest.mark.long
def test_preview_leaves_a_running_service_alone(shop, given):
    runner = Runner(version(), **given)
    runner.start()
    try:
        plan = preview_service(version(factor=3), **given, preview_records=0)
        assert plan.preview("totals").counts.changed == 120
        shop.topics.send("orders", [("new", {"customer": "d", "amount": 50})], ts=1000)
        while "d" not in shop.table("totals"):
            assert runner._thread.is_alive()
    finally:
        runner.stop()
    assert shop.table("totals")["d"] == {"total": 50}
