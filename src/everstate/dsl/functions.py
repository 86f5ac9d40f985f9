"""Checks of the user's functions while a service is built: whether they can be called so, and what they give.

A function that cannot take its arguments would send every record to the dead-letter topic, so it is refused where it is
passed. What has no signature to look at, such as some builtins, is taken as it is.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from everstate.errors import FunctionError, SchemaError
from everstate.schema.schema import Schema
from everstate.topology.expressions.python_text import python_text
from everstate.topology.functions import Function

if TYPE_CHECKING:
    from everstate.location import Location


def function(part: Callable[..., Any], takes: str, location: Location | None, *, generator: bool = False) -> Function:
    """A plain Python function that can be called as an operation calls it.

    Args:
        part: What the user passed.
        takes: How it will be called, in the user's words: `map(row)` or `add(value, row)`; empty brackets for no
            argument.
        location: Where.
        generator: Whether it may be a generator: only where any number of rows may come out.

    Raises:
        FunctionError: If it cannot.
    """
    form = _Form.of(takes)
    if not callable(part):
        raise FunctionError(
            f"{form.name}: expected a function, got {_shown(part)}", location=location, hint=form.pass_one
        )
    _refuse_other_kinds(part, form, location, generator=generator)
    try:
        signature = inspect.signature(part)
    except (TypeError, ValueError):
        return Function.of(part, location)  # a callable that does not say what it takes
    try:
        signature.bind(*form.arguments)
    except TypeError:
        raise FunctionError(
            f"{form.name}: {_name(part)}{signature} cannot be called as {form.call}",
            location=location,
            hint=_instead(part, form),
        ) from None
    return Function.of(part, location)


#: What may also be called with a state: how stateless functions are called is the same in other places.
_WITH_STATE: Final = frozenset({"map", "filter", "update"})


class _Form:
    """How an operation calls a function."""

    def __init__(self, name: str, arguments: list[str]) -> None:
        self.name = name
        self.arguments = arguments
        self.call = f"f({', '.join(arguments)})"
        self.example = f"lambda {', '.join(arguments)}: ..." if arguments else "lambda: ..."
        self.pass_one = f"Pass a function: {self.example}"

    @classmethod
    def of(cls, takes: str) -> _Form:
        name, _, rest = takes.partition("(")
        return cls(name, [word.strip() for word in rest.rstrip(")").split(",") if word.strip()])


def _refuse_other_kinds(part: Any, form: _Form, location: Location | None, *, generator: bool) -> None:
    called = _called(part)
    if inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called):
        raise FunctionError(
            f"{form.name}: {_name(part)} is async, and nobody would wait for its result",
            location=location,
            hint="Write it as a plain function (def); declare what it uses the network for: es.declare(network=...)",
        )
    if inspect.isgeneratorfunction(called) and not generator:
        raise FunctionError(
            f"{form.name}: {_name(part)} is a generator (it has a yield), and one result is expected for each call",
            location=location,
            hint="Return the result; for several rows from one use flat_map() on a stream.",
        )


def _called(part: Any) -> Any:
    """What runs in the end: the function inside partials, or the `__call__` of an object."""
    while isinstance(part, functools.partial):
        part = part.func
    if inspect.isroutine(part) or inspect.isclass(part):
        return part
    return type(part).__call__


def _instead(part: Any, form: _Form) -> str:
    if inspect.isclass(part):
        names = ", ".join(form.arguments)
        inside = "**row" if form.arguments == ["row"] else "..."
        return f"It is a class: make the instance in a function, lambda {names}: {_name(part)}({inside})"
    if form.name in _WITH_STATE and _binds(part, "row", "state"):
        return "A function with state needs stateful=True: apply(f, stateful=True)"
    return f"Write it like this: {form.example}"


def _binds(part: Any, *arguments: str) -> bool:
    try:
        inspect.signature(part).bind(*arguments)
    except (TypeError, ValueError):
        return False
    return True


def _name(part: Any) -> str:
    while isinstance(part, functools.partial):
        part = part.func
    return str(getattr(part, "__name__", None) or type(part).__name__)


def _shown(part: object) -> str:
    """What was passed, without an address in memory or the thousand lines of a frame."""
    if isinstance(part, pl.Expr):
        return f"the expression {python_text(part)}"
    if part is None or isinstance(part, (str, int, float, bytes)):
        text = repr(part)
        return text if len(text) <= 60 else f"{text[:60]}..."
    return f"a {type(part).__name__}"


def result_schema(
    fn: Callable[..., Any], given: object | None, location: Location | None, *, many: bool = False
) -> Schema:
    """The schema of what a function returns: as given, else its return annotation.

    Args:
        fn: The user's function.
        given: What the user passed as `schema=`.
        location: Where.
        many: The function returns any number of rows, so the annotation is an iterable of them.
    """
    if given is not None:
        return Schema.of(given, location=location)
    annotation = fn if inspect.isclass(fn) and is_dataclass(fn) else _return_annotation(fn)
    if many and annotation is not None:
        inner = typing.get_args(annotation)
        iterable = typing.get_origin(annotation) in _ITERABLES
        annotation = inner[0] if iterable and inner else None
    if annotation is None or annotation is dict or annotation is Any:
        raise SchemaError(
            f"what {_name(fn)} returns is not known",
            location=location,
            hint='Pass schema={"name": type, ...}, or annotate the return: a dataclass, a TypedDict or a scalar.',
        )
    return Schema.of(annotation, location=location)


_ITERABLES = frozenset(
    {list, tuple, Iterable, Iterator, Sequence, typing.get_origin(typing.Generator[int, None, None])}
)


def _return_annotation(fn: Any) -> Any | None:
    while isinstance(fn, functools.partial):
        fn = fn.func
    called = fn if inspect.isroutine(fn) or inspect.isclass(fn) else type(fn).__call__
    try:
        return typing.get_type_hints(called).get("return")
    except (NameError, TypeError, AttributeError):
        # A name that cannot be resolved, or a callable without hints: the caller asks for schema=.
        return None
