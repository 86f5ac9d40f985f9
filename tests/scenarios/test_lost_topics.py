"""Topics that are deleted, emptied or created again, and changes that no fingerprint sees."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import everstate as es
from everstate import col
from everstate.engine.commands.preview import plan_service
from everstate.engine.commands.runner import Runner
from everstate.errors import TopicNotFoundError, TopicRecreatedError
from everstate.plan.differences import Category
from everstate.plan.text import plain, text
from tests.scenarios.conftest import keys

pytestmark = pytest.mark.spark

ORDER = {"id": str, "customer": str, "amount": int}


def order(n):
    return {"customer": f"c{n % 4}", "amount": n}


@pytest.fixture
def orders(world):
    world.topics.create("orders", partitions=2, compact=True)
    world.topics.send("orders", [(f"o{n}", order(n)) for n in range(20)])
    return world


def shop():
    """A table and a stream."""
    app = es.Service("shop", shards=1)
    rows = app.table("orders", key="id", schema=ORDER)
    rows.group_by("customer").agg(total=col("amount").sum(), orders=es.count()).to("totals")
    app.stream("orders", key="id", schema=ORDER).filter(col("amount") > 15).to("large")
    return app


def kinds(world, app):
    return {action.output: action.kind for action in plan_service(app, log=world.log.url).actions}


def test_output_topics_that_are_deleted_are_published_again(orders):
    world = orders
    first = world.deploy(shop())
    expected = world.table("totals")
    world.log.delete_topic("totals")
    world.log.delete_topic("large")
    plan = plan_service(shop(), log=world.log.url)
    assert [(action.output, action.kind) for action in plan.actions] == [
        ("totals", "migrate"),
        ("large", "recalculate"),
    ]
    assert plan.action("totals").records == 0  # from state
    assert "The topic totals was deleted, along with everything the output had published" in plain(text(plan))
    again = world.deploy(shop())
    assert world.table("totals") == expected
    assert keys(again["totals"]) == dict.fromkeys(expected, 1)
    assert sorted(again["large"]) == sorted(first["large"])
    assert kinds(world, shop()) == {"totals": "nothing", "large": "nothing"}
    # Both go on from there, and only what is missing is written.
    world.topics.send("orders", [("o1", order(17)), ("o2", None)])
    later = world.deploy(shop())
    assert keys(later["totals"]) == {"c1": 1, "c2": 1}
    assert [key for key, _ in later["large"]] == ["o1"]
    assert world.table("totals") == world.from_scratch(shop(), "orders", topic="totals")


@pytest.mark.long
def test_source_that_is_created_again_is_read_from_its_beginning(orders):
    world = orders
    world.deploy(shop())
    before = len(world.log.read("large", 0, 0)) + len(world.log.read("large", 1, 0))
    world.log.delete_topic("orders")
    world.topics.create("orders", partitions=2, compact=True)
    # As many records as before and more: the old offsets are all there.
    world.topics.send("orders", [(f"p{n}", {"customer": f"c{n % 3}", "amount": 100 + n}) for n in range(50)])
    plan = plan_service(shop(), log=world.log.url)
    assert {found.category for action in plan.actions for found in action.differences} == {Category.RECREATED_SOURCE}
    assert [action.kind for action in plan.actions] == ["recalculate", "recalculate"]
    written = world.deploy(shop(), approve=True)
    assert world.table("totals") == world.from_scratch(shop(), "orders", topic="totals")
    assert ("c3", None) in written["totals"]
    # What a stream has published stands; of the new topic it has published nothing yet.
    assert len(written["large"]) == 50
    assert before == 4
    assert kinds(world, shop()) == {"totals": "nothing", "large": "nothing"}


def test_topic_that_changes_under_a_running_service_ends_it_by_name(orders, spark):
    world = orders
    world.topics.create("others", partitions=2, compact=True)
    # A look between the deletion and the creation finds nothing.
    for error, recreate in (((TopicRecreatedError, TopicNotFoundError), True), (TopicNotFoundError, False)):
        runner = Runner(shop(), log=world.log.url, session=spark, show=False, cores=2, approve=True)
        runner.start()
        deadline = time.monotonic() + 120
        while not world.topics.table("totals") and time.monotonic() < deadline:
            time.sleep(0.1)
        size = world.topics.count("orders")
        world.log.delete_topic("orders")
        if recreate:
            world.topics.create("orders", partitions=2, compact=True)
            world.topics.send("orders", [(f"p{n}", order(n)) for n in range(size)])
        while runner._thread.is_alive() and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not runner._thread.is_alive()
        with pytest.raises(error, match="topic 'orders'") as raised:
            runner.stop()
        assert raised.value.hint


@es.declare(version="1")
def rate(path):
    """Asks a program, which nothing can see into: the user says when it changes, and has forgotten to."""
    import subprocess

    return int(subprocess.run(["cat", path], check=True, capture_output=True).stdout)


def priced(path: Path):
    def price(row: dict) -> dict:
        return {"customer": row["customer"], "amount": row["amount"] * rate(str(path))}

    app = es.Service("priced", shards=1)
    rows = app.table("orders", key="id", schema=ORDER).map(price, schema={"customer": str, "amount": int})
    rows.group_by("customer").agg(total=col("amount").sum()).to("totals")
    return app


@pytest.mark.long
def test_change_that_the_fingerprint_cannot_see_is_recalculated_and_named(orders, tmp_path, caplog):
    world, file = orders, tmp_path / "rate"
    file.write_text("2")
    world.deploy(priced(file))
    assert kinds(world, priced(file)) == {"totals": "nothing"}
    file.write_text("3")
    told = plain(text(plan_service(priced(file), log=world.log.url)))
    assert "totals would be recalculated" in told
    assert "The step orders/map gives a different result" in told
    assert "missed change of totals" in told
    assert "please report it" in told
    assert f"{__file__}:" in told
    written = world.deploy(priced(file))
    assert world.table("totals") == world.from_scratch(priced(file), "orders", topic="totals")
    assert keys(written["totals"]) == dict.fromkeys(world.table("totals"), 1)
    assert "Output totals is recalculated. The step orders/map" in caplog.text
    assert any(event.why.startswith("missed change: ") for event in world.generations("priced", "totals").audit)
    assert kinds(world, priced(file)) == {"totals": "nothing"}
    # It changes from start to start: that is no change of the service, and is not recalculated for ever.
    file.write_text("4")
    plan = plan_service(priced(file), log=world.log.url)
    assert plan.action("totals").kind == "nothing"
    assert "warning: totals: The step orders/map" in plain(text(plan))
