"""`.from_spark()` and `.to_spark()`: where they may stand, and what is said where they may not."""

import pytest

import everstate as es
from everstate.errors import DefinitionError

ORDERS = {"id": str, "customer": str, "amount": int}


def read_orders(spark):
    return spark.readStream.schema("id string, customer string, amount long").json("/data/orders")


def write_totals(frame, batch_id):
    frame.write.parquet(f"/data/totals/{batch_id}")


def shop():
    app = es.Service("shop")
    orders = app.stream("orders", key="id", schema=ORDERS)
    return app, orders


def totals_of(orders):
    return orders.group_by("customer").agg(total=es.col("amount").sum()).to("totals")


def test_steps_stand_beside_the_service_and_change_no_node():
    app, orders = shop()
    fed = orders.from_spark(read_orders, partitions=3)
    delivered = totals_of(fed).to_spark(write_totals)
    assert fed.node is orders.node
    assert delivered.node.kind.value == "table"
    feed, delivery = app.spark_steps.feeds["orders"], app.spark_steps.deliveries["totals"]
    assert (feed.name, feed.call, feed.partitions) == ("from_spark:orders", "from_spark(read_orders)", 3)
    assert (delivery.name, delivery.call) == ("to_spark:totals", "to_spark(write_totals)")
    assert delivery.schema.names == ("total",)


def test_table_source_may_be_fed():
    app = es.Service("shop")
    app.table("orders", key="id", schema=ORDERS).from_spark(read_orders)
    assert app.spark_steps.feeds["orders"].kind.value == "table"


WRONG = {
    "from_spark after a step": (
        lambda app, orders: orders.filter(es.col("amount") > 0).from_spark(read_orders),
        r"from_spark\(\) belongs directly on a source",
    ),
    "from_spark at an output": (
        lambda app, orders: totals_of(orders).from_spark(read_orders),
        r"from_spark\(\) belongs directly on a source",
    ),
    "from_spark twice": (
        lambda app, orders: orders.from_spark(read_orders).from_spark(read_orders),
        r"topic 'orders' already has from_spark\(\)",
    ),
    "from_spark of an output's topic": (
        lambda app, orders: (totals_of(orders), app.table("totals", schema={"total": int}).from_spark(read_orders)),
        "topic 'totals' is an output of this service",
    ),
    "an output on a topic that is fed": (
        lambda app, orders: (app.stream("totals", schema=str).from_spark(read_orders), totals_of(orders)),
        "topic 'totals' is an output of this service",
    ),
    "from_spark with a function of two": (
        lambda app, orders: orders.from_spark(write_totals),
        r"from_spark: write_totals\(frame, batch_id\) cannot be called as f\(spark\)",
    ),
    "from_spark with a path": (lambda app, orders: orders.from_spark("/data"), "from_spark: expected a function"),
    "no partitions": (lambda app, orders: orders.from_spark(read_orders, partitions=0), "partitions"),
    "another word": (lambda app, orders: orders.from_spark(read_orders, on_change="migrate"), "on_change"),
    "to_spark without an output": (
        lambda app, orders: orders.to_spark(write_totals),
        r"to_spark\(\) belongs directly on an output",
    ),
    "to_spark twice": (
        lambda app, orders: totals_of(orders).to_spark(write_totals).to_spark(write_totals),
        r"topic 'totals' already has to_spark\(\)",
    ),
    "to_spark without the number of the batch": (
        lambda app, orders: totals_of(orders).to_spark(lambda frame: None),
        r"cannot be called as f\(frame, batch_id\)",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_step_is_refused_at_the_line_of_its_user(name):
    call, message = WRONG[name]
    with pytest.raises(DefinitionError, match=message) as refused:
        call(*shop())
    assert refused.value.location is not None
    assert refused.value.location.file == __file__
    assert refused.value.hint


def test_driver_is_sent_the_rows_that_the_function_would_give():
    app, orders = shop()
    totals_of(orders.from_spark(read_orders)).to_spark(write_totals)
    driver = es.testing.Driver(app)
    driver.send("orders", "1", {"id": "1", "customer": "a", "amount": 7})
    assert driver.table("totals") == {"a": {"total": 7}}
