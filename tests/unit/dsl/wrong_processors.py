"""Processors that cannot be right, their errors, and others that are. A table for `test_wrong_calls.py`."""

from __future__ import annotations

import functools
from datetime import timedelta
from typing import Any

import everstate as es
from everstate.errors import (
    CallError,
    DefinitionError,
    FunctionError,
    NameClashError,
    SchemaError,
    TopicNameError,
    UnsupportedError,
)
from tests.unit.dsl import shop
from tests.unit.dsl.shop import OUT, events, orders

Wrong = tuple[str, type[Exception], Any]


class Watch:
    """A processor."""

    def process(self, row: Any, ctx: Any) -> float | None:
        return None

    def on_timer(self, ctx: Any) -> float | None:
        return None


class Limited(Watch):
    """One that has to be told something."""

    def __init__(self, limit: int) -> None:
        self.limit = limit


class Alarm:
    """One with a timer by the clock on the wall."""

    def process(self, row: Any, ctx: Any) -> float | None:
        ctx.timer("late", at=ctx.now + 1, clock="wall")
        return None

    def on_timer(self, ctx: Any) -> None:
        return None


def _process(fn: Any = shop.two, **options: Any) -> Any:
    return events().process(fn, **{"schema": OUT, **options})


def _sided(sides: Any, topic: str = "out", **options: Any) -> Any:
    return _process(sides={"audit": {"what": str}}).to(topic, sides=sides, **options)


def _twice() -> None:
    made = _process(sides={"audit": {"what": str}})
    made.to("a", sides={"audit": "same"})
    made.to("b", sides={"audit": "same"})


def _two_processors() -> Any:
    made = _process(sides={"audit": {"what": str}})
    return made.process(shop.two, schema=OUT, sides={"audit": {"what": str}}).to("out", sides={"audit": "a"})


def _circle() -> None:
    app = shop.shop()
    audit = app.stream("audit", key="id", schema={"what": str})
    audit.to("copy")
    events(app).merge(app.stream("copy", key="id", schema=shop.SCHEMA)).process(
        shop.two, schema=OUT, sides={"audit": {"what": str}}
    ).to("out", sides={"audit": "audit"})


WRONG_PROCESSORS: list[Wrong] = [
    ("process of one argument", FunctionError, lambda: _process(shop.one)),
    ("process that is text", FunctionError, lambda: _process("watch")),
    ("process that is async", FunctionError, lambda: _process(shop.waiting_for_two)),
    ("process that yields", FunctionError, lambda: _process(shop.yielding_two)),
    ("process of a class without the method", FunctionError, lambda: _process(shop.Plain)),
    ("process of a class that needs arguments", FunctionError, lambda: _process(Limited)),
    ("process whose result is not known", SchemaError, lambda: events().process(lambda row, ctx: None)),
    ("process with a timer function of two", FunctionError, lambda: _process(on_timer=shop.two)),
    ("process with two timer functions", DefinitionError, lambda: _process(Watch, on_timer=shop.one)),
    ("process of a table", AttributeError, lambda: orders().process(shop.two)),
    ("process with a misspelt option", CallError, lambda: _process(state=[es.value("a", int)])),
    ("process by the wall clock without timers", DefinitionError, lambda: _process(wall_clock=True)),
    ("process with a wall clock that is text", DefinitionError, lambda: _process(on_timer=shop.one, wall_clock="yes")),
    *[
        (f"states {states!r}", DefinitionError, functools.partial(lambda s: _process(states=s), states))
        for states in ("last", ["last"], {"last": int}, 5, None, [int])
    ],
    (
        "two states of one name",
        NameClashError,
        lambda: _process(states=[es.value("last", int), es.list_("last", int)]),
    ),
    *[
        (f"state named {name!r}", DefinitionError, functools.partial(es.value, name, int))
        for name in ("", "a b", "1st", "_mine", "class", 5, None)
    ],
    *[
        (f"state named like the context's {name}", NameClashError, functools.partial(es.map_, name, int))
        for name in ("key", "time", "timer", "forward", "now")
    ],
    ("state of an unknown type", SchemaError, lambda: es.value("last", shop.Plain)),
    ("state of a timedelta", SchemaError, lambda: es.list_("last", {"a": list[timedelta]})),
    ("state without a type", CallError, lambda: es.value("last")),
    ("state with a wrong lifetime", DefinitionError, lambda: es.value("last", int, ttl="a day")),
    ("state that lives for a number", DefinitionError, lambda: es.value("last", int, ttl=60)),
    ("sides that are a list", DefinitionError, lambda: _process(sides=["audit"])),
    ("sides without a schema", SchemaError, lambda: _process(sides={"audit": "text"})),
    ("a side that goes nowhere", DefinitionError, lambda: _sided(None)),
    ("a side that is not there", DefinitionError, lambda: _sided({"audit": "a", "adit": "b"})),
    ("sides without a processor", DefinitionError, lambda: events().to("out", sides={"audit": "a"})),
    ("sides that are text", DefinitionError, lambda: _sided("audit")),
    ("a side to no topic", TopicNameError, lambda: _sided({"audit": "a/b"})),
    ("a side to a number", TopicNameError, lambda: _sided({"audit": 5})),
    ("a side to the output itself", NameClashError, lambda: _sided({"audit": "out"})),
    ("a side to the dead letters", NameClashError, lambda: _sided({"audit": "out.dlq"})),
    ("a side to the source", DefinitionError, lambda: _sided({"audit": "events"})),
    ("a side that feeds its own source", DefinitionError, _circle),
    ("a side of two outputs", NameClashError, _twice),
    ("a side of two processors", NameClashError, _two_processors),
    ("a side of a table", UnsupportedError, lambda: _sided({"audit": "a"}, key="total")),
    (
        "a side before a group",
        DefinitionError,
        lambda: _process(sides={"a": {"b": str}}).group_by("id").agg(n=es.count()).to("out"),
    ),
]

RIGHT_PROCESSORS: list[tuple[str, Any]] = [
    ("process of a class", lambda: events().process(Watch).to("out")),
    ("process of an instance", lambda: _process(Limited(5)).to("out")),
    ("process of a class with a wall clock", lambda: _process(Alarm).to("out")),
    ("process of an object that is called", lambda: _process(shop.CallsTwo()).to("out")),
    ("process whose annotation says what comes out", lambda: events().process(shop.two).to("out")),
    ("process with a timer function", lambda: _process(on_timer=shop.one, wall_clock=True).to("out")),
    (
        "process with all states",
        lambda: _process(states=(es.value("a", int), es.list_("b", shop.Item), es.map_("c", {"d": int}))),
    ),
    ("process after process", lambda: _process(on_timer=shop.one).process(shop.two, schema=OUT).to("out")),
    ("a side", lambda: _sided({"audit": "out-audit"})),
    ("a side that is left out", lambda: _sided({"audit": None})),
    ("a side that a table leaves out", lambda: _sided({"audit": None}, key="total")),
    ("sides of bare values", lambda: _process(sides={"audit": str}).to("out", sides={"audit": "a"})),
]
