"""Differences of real services: each edit falls into its category, and into no other."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import everstate as es
from everstate import col
from everstate.fingerprints import print_unit
from everstate.fingerprints.prints import UnitPrint
from everstate.plan.differences import differences

ORDERS = {"order_id": str, "customer": str, "country": str, "amount": float, "status": str}
PEOPLE = {"customer": str, "name": str}


def printed(app: es.Service, output: str = "totals") -> UnitPrint:
    (unit,) = (unit for unit in app.units() if unit.output.topic == output)
    return print_unit(unit, policy=app.on_error, settings=app.configuration)


def service(
    *,
    topic: str = "orders",
    key: str = "order_id",
    schema: dict[str, type] = ORDERS,
    steps: Callable = lambda orders: orders.filter(col("status") != "void"),
    by: str = "customer",
    results: dict | None = None,
    after: Callable = lambda app, totals: totals,
    on_error: str = "dead-letter",
    minimum: float | None = None,
) -> UnitPrint:
    app = es.Service("shop", on_error=on_error)
    orders = steps(app.table(topic, key=key, schema=schema))
    if minimum is not None:
        app.configuration["minimum"] = minimum
        orders = orders.filter(col("amount") > minimum)
    totals = orders.group_by(by).agg(**(results or {"total": col("amount").sum()}))
    after(app, totals).to("totals")
    return printed(app)


def joined(app, totals):
    return totals.join(app.table("people", key="customer", schema=PEOPLE))


def paid(orders):
    return orders.filter(col("status") == "paid")


def both_filters(orders):
    return orders.filter(col("amount") > 10).filter(col("status") != "void")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (service(), service(), []),
        (service(), service(after=joined), ["new source topic", "more intermediate state"]),
        (service(after=joined), service(), ["removed source topic", "less intermediate state"]),
        (service(), service(topic="purchases"), ["new source topic", "removed source topic"]),
        (service(), service(key="country"), ["changed source key"]),
        (service(), service(schema={**ORDERS, "note": str}), ["changed private schema"]),
        (
            service(),
            service(results={"total": col("amount").sum(), "orders": es.count()}),
            ["changed private schema"],
        ),
        (service(minimum=10.0), service(minimum=20.0), ["changed configuration"]),
        (service(), service(steps=paid), ["changed logic"]),
        (service(), service(steps=both_filters), ["changed logic"]),
        (service(steps=both_filters), service(), ["changed logic"]),
        (service(), service(results={"total": col("amount").mean()}), ["changed logic"]),
        (service(), service(by="country"), ["changed grouping"]),
        (service(), service(on_error="skip"), ["changed policy"]),
    ],
    ids=[
        "nothing",
        "join",
        "no join",
        "other topic",
        "source key",
        "source schema",
        "another result",
        "setting",
        "predicate",
        "filter inserted",
        "filter removed",
        "other aggregate",
        "grouping",
        "policy",
    ],
)
def test_edit_of_a_service_falls_into_its_category(old, new, expected) -> None:
    assert [str(difference.category) for difference in differences(old, new)] == expected


def test_inserted_filter_is_the_only_difference_and_points_to_its_line() -> None:
    (difference,) = differences(service(), service(steps=both_filters))
    assert difference.cause == "A filter was added."
    assert difference.new is not None
    assert "amount" in difference.new
    assert difference.location.startswith(__file__)
