"""What is downstream of a change converges without being touched."""

from __future__ import annotations

import time

import pytest

import everstate as es
from everstate import col
from everstate.engine.commands.runner import Runner

pytestmark = [pytest.mark.spark, pytest.mark.long]

ORDER = {"id": str, "customer": str, "amount": int}


def order(n):
    return (f"o{n}", {"customer": f"c{n % 7}", "amount": n % 19})


def first(app, least):
    orders = app.table("orders", key="id", schema=ORDER)
    return orders.filter(col("amount") >= least).to("paid")


def second(paid, factor=1):
    return paid.group_by("customer").agg(total=col("amount").sum() * factor, orders=es.count()).to("totals")


def third(totals):
    return totals.group_by("orders").agg(customers=es.count(), total=col("total").sum()).to("sizes")


def reading(name, topic, key, **schema):
    app = es.Service(name, shards=1)
    return app, app.table(topic, key=key, schema=schema)


def chain():
    """The second and the third as services of their own."""
    totals, paid = reading("second", "paid", "id", **ORDER)
    second(paid)
    sizes, table = reading("third", "totals", "customer", customer=str, total=int, orders=int)
    third(table)
    return totals, sizes


def expected(sent, least, factor=1):
    rows = [row for row in dict(sent).values() if row is not None and row["amount"] >= least]
    totals = {}
    for row in rows:
        entry = totals.setdefault(row["customer"], {"total": 0, "orders": 0})
        entry["total"] += row["amount"] * factor
        entry["orders"] += 1
    sizes = {}
    for entry in totals.values():
        size = sizes.setdefault(str(entry["orders"]), {"customers": 0, "total": 0})
        size["customers"] += 1
        size["total"] += entry["total"]
    return totals, sizes


def service(least, factor=1):
    app = es.Service("all", shards=2)
    third(second(first(app, least), factor))
    return app


def until(condition, *runners):
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        assert all(runner._thread.is_alive() for runner in runners)
        time.sleep(0.2)


def test_services_downstream_of_a_changed_one_converge_untouched(world, spark):
    world.topics.create("orders", partitions=3, compact=True)
    sent = [order(n) for n in range(60)]
    world.topics.send("orders", sent)

    def head(least):
        app = es.Service("first", shards=2)
        first(app, least)
        return app

    world.deploy(head(1))
    runners = []
    for app in chain():
        world.log.create_topic(app.units()[0].topics[0], exist_ok=True)
        runner = Runner(app, log=world.log.url, session=spark, show=False, cores=2, trigger=0.3)
        runner.start()
        runners.append(runner)
    try:
        until(lambda: (world.table("totals"), world.table("sizes")) == expected(sent, 1), *runners)
        more = [order(n) for n in range(60, 80)] + [("o3", None)]
        sent += more
        world.topics.send("orders", more, ts=1000)
        written = world.deploy(head(9), approval="approve")
        assert any(value is None for _, value in written["paid"])
        until(lambda: (world.table("totals"), world.table("sizes")) == expected(sent, 9), *runners)
    finally:
        for runner in runners:
            runner.stop()
    for name in ("second", "third"):
        output = "totals" if name == "second" else "sizes"
        assert world.generations(name, output).active.number == 1


def test_outputs_of_one_service_of_which_two_changed_at_once_converge(world):
    world.topics.create("orders", partitions=3, compact=True)
    sent = [order(n) for n in range(60)]
    world.topics.send("orders", sent)
    world.deploy(service(1))
    assert (world.table("totals"), world.table("sizes")) == expected(sent, 1)
    written = world.deploy(service(9, factor=3), approval="approve")
    assert (world.table("totals"), world.table("sizes")) == expected(sent, 9, factor=3)
    numbers = {output: world.generations("all", output).active.number for output in ("paid", "totals", "sizes")}
    assert numbers == {"paid": 2, "totals": 2, "sizes": 1}
    assert len({key for key, _ in written["totals"]}) == len(written["totals"])


def test_output_that_is_no_longer_declared_is_retired_with_tombstones(world):
    world.topics.create("orders", partitions=3, compact=True)
    world.topics.send("orders", [order(n) for n in range(20)])

    def version(both):
        app = es.Service("two", shards=1)
        orders = app.table("orders", key="id", schema=ORDER)
        orders.filter(col("amount") > 3).to("large")
        if both:
            orders.filter(col("amount") <= 3).to("small")
        return app

    world.deploy(version(both=True))
    gone = world.table("small")
    assert gone
    with pytest.raises(es.EverstateError, match="small is no longer declared"):
        world.deploy(version(both=False))
    assert world.table("small") == gone
    written = world.deploy(version(both=False), approval="approve")
    assert sorted(written["small"]) == sorted((key, None) for key in gone)
    assert written["large"] == []
    assert world.generations("two", "small").active is None
    world.deploy(version(both=True), approval="approve")
    assert world.table("small") == gone


def test_first_deployment_onto_a_topic_with_keys_treats_them_as_an_earlier_generation(world):
    world.topics.create("orders", partitions=3, compact=True)
    world.topics.create("large", partitions=3, compact=True)
    world.topics.send("orders", [order(n) for n in range(10)])
    world.topics.send("large", [("o5", {"customer": "c5", "amount": 5}), ("o6", {"amount": 0}), ("alien", {"x": 1})])
    app = es.Service("one", shards=1)
    app.table("orders", key="id", schema=ORDER).filter(col("amount") > 3).to("large")
    written = world.deploy(app, approval="approve")
    assert ("alien", None) in written["large"]
    assert "o5" not in {key for key, _ in written["large"]}
    assert set(world.table("large")) == {f"o{n}" for n in range(4, 10)}


def test_stream_output_goes_on_where_the_old_version_stopped(world):
    world.topics.create("clicks", partitions=3)
    world.topics.send("clicks", [(f"u{n % 4}", {"page": n}) for n in range(30)])

    def version(prefix):
        app = es.Service("clicks", shards=2)
        clicks = app.stream("clicks", key="user", schema={"page": int})

        def numbered(row, state):
            count = state.get("count", 0) + 1
            state.set("count", count)
            return {"text": f"{prefix}{row['page']}", "count": count}

        clicks.apply(numbered, stateful=True, schema={"text": str, "count": int}).to("numbered")
        return app

    assert len(world.deploy(version("a"))["numbered"]) == 30
    world.topics.send("clicks", [(f"u{n % 4}", {"page": n}) for n in range(30, 40)], ts=1000)
    written = world.deploy(version("b"))["numbered"]
    assert sorted(value["text"] for _, value in written) == sorted(f"b{n}" for n in range(30, 40))
    # State was rebuilt without a word: counting goes on.
    assert {value["count"] for _, value in written} == {8, 9, 10}
