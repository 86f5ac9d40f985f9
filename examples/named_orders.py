"""Orders with the name of their customer: a foreign-key join, and a total by name on top of it."""

from dataclasses import dataclass

import everstate as es
from everstate import col


@dataclass
class Order:
    """What an order's value holds; its key is the order's number."""

    customer: str
    amount: int
    note: str | None = None


@dataclass
class Person:
    """What is known of a customer."""

    name: str
    city: str | None = None


app = es.Service("named-orders")

orders = app.table("orders", key="order_id", schema=Order)
people = app.table("people", key="customer", schema=Person)

named = orders.join(people, on="customer", how="left").to("named-orders")

named.filter(col("name").is_not_null()).group_by("name").agg(total=col("amount").sum(), largest=col("amount").max()).to(
    "totals-by-name"
)
