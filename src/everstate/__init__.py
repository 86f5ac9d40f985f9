"""Stateful streaming services in Python, on Spark, that never need a reset.

Example:
    >>> import everstate as es
    >>> from everstate import col
    >>> app = es.Service("customers")
    >>> orders = app.table("orders", key="order_id", schema={"order_id": str, "customer": str, "amount": float})
    >>> _ = orders.group_by("customer").agg(total=col("amount").sum(), orders=es.count()).to("customer-totals")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polars import col, lit, when

    from everstate import testing
    from everstate.dsl.aggregates import collect, count, median, quantile, top_k
    from everstate.dsl.processor import list_, map_, value
    from everstate.dsl.service import Service
    from everstate.dsl.stream import Stream
    from everstate.dsl.table import Table
    from everstate.dsl.windows import Window, hopping, session, sliding, tumbling
    from everstate.errors import EverstateError
    from everstate.fingerprints.declarations import declare
    from everstate.formats.descriptions import Avro, Protobuf
    from everstate.kernels.operations.process.context import Context
    from everstate.kernels.operations.user_state import State
    from everstate.reading.frames import read_stream, read_table

__all__ = [
    "Avro",
    "Context",
    "EverstateError",
    "Protobuf",
    "Service",
    "State",
    "Stream",
    "Table",
    "Window",
    "col",
    "collect",
    "count",
    "declare",
    "hopping",
    "list_",
    "lit",
    "map_",
    "median",
    "quantile",
    "read_stream",
    "read_table",
    "session",
    "sliding",
    "testing",
    "top_k",
    "tumbling",
    "value",
    "when",
]

__version__ = "0.1.0"

# Spark starts half a dozen Python processes for a query, most of which need a module or two of ours. Whoever names one
# of these gets it then, so that no process pays for what it does not use.
_HOMES = {
    "Context": "everstate.kernels.operations.process.context",
    "EverstateError": "everstate.errors",
    "Service": "everstate.dsl.service",
    "State": "everstate.kernels.operations.user_state",
    "Stream": "everstate.dsl.stream",
    "Table": "everstate.dsl.table",
    "declare": "everstate.fingerprints.declarations",
    **dict.fromkeys(("Window", "hopping", "session", "sliding", "tumbling"), "everstate.dsl.windows"),
    **dict.fromkeys(("collect", "count", "median", "quantile", "top_k"), "everstate.dsl.aggregates"),
    **dict.fromkeys(("list_", "map_", "value"), "everstate.dsl.processor"),
    **dict.fromkeys(("Avro", "Protobuf"), "everstate.formats.descriptions"),
    **dict.fromkeys(("col", "lit", "when"), "polars"),
    **dict.fromkeys(("read_stream", "read_table"), "everstate.reading.frames"),
}


def __getattr__(name: str) -> Any:
    if name == "testing":
        return import_module("everstate.testing")
    if name not in _HOMES:
        if name.startswith("_"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import_module("everstate.dsl.absent").refuse_name(__name__, name, __all__)
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
