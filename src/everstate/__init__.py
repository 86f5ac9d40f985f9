"""Stateful streaming services in Python, on Spark, that never need a reset.

Example:
    >>> import everstate as es
    >>> from everstate import col
    >>> app = es.Service("customers")
    >>> orders = app.table("orders", key="order_id", schema={"order_id": str, "customer": str, "amount": float})
    >>> _ = orders.group_by("customer").agg(total=col("amount").sum(), orders=es.count()).to("customer-totals")
"""

from polars import col, lit, when

from everstate import testing
from everstate.dsl.aggregates import collect, count, median, quantile, top_k
from everstate.dsl.service import Service
from everstate.dsl.stream import Stream
from everstate.dsl.table import Table
from everstate.kernels.state import State
from everstate.topology.declarations import declare
from everstate.topology.errors import EverstateError

__all__ = [
    "EverstateError",
    "Service",
    "State",
    "Stream",
    "Table",
    "col",
    "collect",
    "count",
    "declare",
    "lit",
    "median",
    "quantile",
    "testing",
    "top_k",
    "when",
]

__version__ = "0.1.0"
