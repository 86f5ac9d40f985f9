"""From what the user wrote to a checked processor: its functions, its states, its ways out."""

from __future__ import annotations

import functools
import inspect
import keyword
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from everstate.dsl.arguments import shown, switch
from everstate.dsl.functions import function, result_schema
from everstate.dsl.operations import with_key
from everstate.dsl.windows import duration
from everstate.errors import DefinitionError, FunctionError, NameClashError, SchemaError
from everstate.errors.calls import explained
from everstate.location import caller
from everstate.schema.schema import Schema
from everstate.topology.nodes import Exit, KeptState, Kind, Process
from everstate.topology.nodes.processor import TAKEN

if TYPE_CHECKING:
    from datetime import timedelta

    from everstate.location import Location
    from everstate.schema.types import DataType
    from everstate.topology.nodes import Node
    from everstate.topology.nodes.processor import Shape

_EXAMPLE: Final = "states=[es.value('last', float, ttl='1d'), es.list_('seen', str), es.map_('by_ward', int)]"
#: How the functions of a processor are called.
_ROW: Final = "process(row, ctx)"
_TIMER: Final = "on_timer=(ctx)"


@explained
def value(name: str, type: object, *, ttl: str | timedelta | None = None) -> KeptState:  # noqa: A002 - what it is
    """A state of a processor that holds one value per key: `ctx.NAME.get()`, `.set(v)`, `.exists()`, `.delete()`.

    Example:
        >>> import everstate as es
        >>> print(es.value("last", float, ttl="1d"))
        last: value of float, ttl=1d

    Args:
        name: What the function calls it.
        type: What it holds, as in a schema; other values are refused when they are set.
        ttl: How long it is seen after it was set, by the stream time of rows; by default forever.
    """
    return _kept("value", name, type, ttl, caller())


@explained
def list_(name: str, type: object, *, ttl: str | timedelta | None = None) -> KeptState:  # noqa: A002 - what it is
    """A state of a processor that holds a list per key: `ctx.NAME.append(v)`, `.get()`, `.set([...])`, `.clear()`.

    Example:
        >>> import everstate as es
        >>> print(es.list_("seen", str))
        seen: list of text

    Args:
        name: What the function calls it.
        type: What an item is, as in a schema.
        ttl: How long an item is seen after it was added, by the stream time of rows; by default forever.
    """
    return _kept("list", name, type, ttl, caller())


@explained
def map_(name: str, type: object, *, ttl: str | timedelta | None = None) -> KeptState:  # noqa: A002 - what it is
    """A state of a processor that holds a map from text to values per key: `ctx.NAME.get(k)`, `.set(k, v)`, `.items()`.

    Example:
        >>> import everstate as es
        >>> print(es.map_("by_ward", int))
        by_ward: map of integer

    Args:
        name: What the function calls it.
        type: What a value is, as in a schema; its key is text.
        ttl: How long an entry is seen after it was set, by the stream time of rows; by default forever.
    """
    return _kept("map", name, type, ttl, caller())


def _kept(shape: Shape, name: object, spec: object, ttl: object, location: Location | None) -> KeptState:
    usable = isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name)
    if not isinstance(name, str) or not usable or name.startswith("_"):
        raise DefinitionError(
            f"{shown(name)} cannot be the name of a state",
            location=location,
            hint="The function uses it as an attribute, ctx.last: letters, digits and _, the first a letter, "
            "and no word of Python's own.",
        )
    if name in TAKEN:
        raise NameClashError(
            f"a state cannot be called {name!r}: ctx.{name} means something else",
            location=location,
            hint=f"Give it another name: 'my_{name}'",
        )
    schema = Schema.of(spec, location=location)
    if any(_has_duration(part.type) for part in schema.fields):
        raise SchemaError(
            f"state {name!r} cannot hold a timedelta",
            location=location,
            hint="Keep a number: seconds as float, or milliseconds as int.",
        )
    return KeptState(shape, name, schema, None if ttl is None else duration("ttl", ttl, location))


def _has_duration(type_: DataType) -> bool:
    if type_.name == "duration":
        return True
    inner = [type_.inner.type] if type_.name in ("list", "map") else [part.type for part in type_.fields]
    return any(map(_has_duration, inner))


def processed(
    node: Node,
    fn: object,
    on_timer: Callable[..., Any] | None,
    *,
    schema: object | None,
    sides: object | None,
    states: object,
    wall_clock: object | None,
    location: Location | None,
) -> Process:
    """`process`."""
    row, timer = _functions(fn, on_timer, location)
    called = function(row, _ROW, location)
    fires = None if timer is None else function(timer, _TIMER, location)
    if wall_clock is not None:
        switch("wall_clock", wall_clock, location)
    uses = any(map(_names_wall, (row, timer))) if wall_clock is None else bool(wall_clock)
    if uses and timer is None:
        raise DefinitionError(
            "the wall clock is for timers, and there is no on_timer function",
            location=location,
            hint="Pass one: process(f, on_timer=g), with g(ctx)",
        )
    return Process(
        inputs=(node,),
        kind=Kind.STREAM,
        key=node.key,
        schema=with_key(node.key, _result(row, schema, location)),
        location=location,
        fn=called,
        on_timer=fires,
        states=_states(states, location),
        exits=_exits(node, sides, location),
        wall_clock=uses,
    )


def _functions(
    fn: Any, on_timer: Callable[..., Any] | None, location: Location | None
) -> tuple[Callable[..., Any], Callable[..., Any] | None]:
    """The two functions: as they are, or the methods of an object, or of a class that is made here."""
    if inspect.isclass(fn) and hasattr(fn, "process"):
        try:
            fn = fn()
        except Exception as error:  # noqa: BLE001 - whatever the user's code raises
            raise FunctionError(
                f"process: {fn.__name__}() cannot be created: {type(error).__name__}: {error}",
                location=location,
                hint=f"Pass an instance: process({fn.__name__}(...))",
            ) from None
    if inspect.isroutine(fn) or isinstance(fn, functools.partial) or not hasattr(fn, "process"):
        if inspect.isclass(fn):
            raise FunctionError(
                f"process: the class {fn.__name__} has no method process",
                location=location,
                hint="Give it one: def process(self, row, ctx), and def on_timer(self, ctx) if it sets timers.",
            )
        return fn, on_timer
    own = getattr(fn, "on_timer", None)
    if on_timer is not None and own is not None:
        raise DefinitionError(
            f"{type(fn).__name__} has a method on_timer, and on_timer= is given too",
            location=location,
            hint="Leave one of them out.",
        )
    return fn.process, on_timer or own


def _result(row: Callable[..., Any], schema: object | None, location: Location | None) -> Schema:
    """The schema of what comes out; an annotation may say that there may be nothing."""
    if schema is None:
        try:
            found = typing.get_type_hints(row).get("return")
        except (NameError, TypeError, AttributeError):
            found = None
        if typing.get_origin(found) in (typing.Union, types.UnionType):
            rest = [part for part in typing.get_args(found) if part is not type(None)]
            schema = rest[0] if len(rest) == 1 else None
    return result_schema(row, schema, location)


def _states(given: object, location: Location | None) -> tuple[KeptState, ...]:
    if (
        not isinstance(given, Sequence)
        or isinstance(given, (str, bytes))
        or not all(isinstance(state, KeptState) for state in given)
    ):
        raise DefinitionError(f"states={shown(given)} is not a list of states", location=location, hint=_EXAMPLE)
    names = [state.name for state in given]
    for name in names:
        if names.count(name) > 1:
            raise NameClashError(f"two states are called {name!r}", location=location, hint="Give each its own name.")
    return tuple(sorted(given, key=lambda state: state.name))


def _exits(node: Node, given: object, location: Location | None) -> tuple[Exit, ...]:
    if given is None:
        return ()
    if not isinstance(given, Mapping) or not all(isinstance(name, str) and name for name in given):
        raise DefinitionError(
            f"sides={shown(given)} is not a dict of schemas",
            location=location,
            hint="sides={'audit': {'what': str}}",
        )
    found = {name: Schema.of(spec, location=location) for name, spec in given.items()}
    return tuple(Exit(name, with_key(node.key, found[name])) for name in sorted(found))


def _names_wall(part: Callable[..., Any] | None) -> bool:
    """Whether the code of a function, or of the class that it belongs to, says "wall": the clock of some timers."""
    while isinstance(part, functools.partial):
        part = part.func
    owner = getattr(part, "__self__", None)
    members = [part] if owner is None else [m for kind in type(owner).__mro__ for m in vars(kind).values()]
    waiting = [code for member in members if (code := getattr(member, "__code__", None)) is not None]
    while waiting:
        constants = waiting.pop().co_consts
        if any(isinstance(constant, str) and constant == "wall" for constant in constants):
            return True
        waiting += [constant for constant in constants if inspect.iscode(constant)]
    return False
