"""Calls that Python itself would refuse: an option that is not there, or an argument that is missing."""

from __future__ import annotations

import difflib
import functools
import inspect
from types import FunctionType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from everstate.errors import CallError
from everstate.location import caller

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_Class = TypeVar("_Class", bound=type)
_Callable = TypeVar("_Callable", bound="Callable[..., Any]")


def explained_class(cls: _Class) -> _Class:
    """Make every public method of a class name the user's line and the options that there are."""
    for name, member in list(vars(cls).items()):
        if inspect.isfunction(member) and (name == "__init__" or not name.startswith("_")):
            setattr(cls, name, explained(member))
    return cls


def explained(call: _Callable) -> _Callable:
    """Make a function name the user's line and the options that there are, where it is called with others."""
    # Names of this module have to be in reach of a function that gets the globals of another.
    refused = refuse

    def checked(*args: Any, **named: Any) -> Any:
        try:
            return call(*args, **named)
        except TypeError as error:
            # With a frame below the call, the function has begun: the error is of something else.
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise
        return refused(call, args, named)

    # In the module of the function itself, so that whoever looks for its docstring's examples finds them.
    own = FunctionType(checked.__code__, call.__globals__, call.__name__, None, checked.__closure__)
    own.__kwdefaults__ = checked.__kwdefaults__
    return functools.wraps(call)(own)  # type: ignore[return-value]  # it is called in the same way


def refuse(call: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> NoReturn:
    """Say what is wrong with the arguments of a call.

    Raises:
        CallError: Always.
    """
    owner, _, name = call.__qualname__.rpartition(".")
    parameters = [p for p in inspect.signature(call).parameters.values() if p.name != "self"]
    title = owner.rpartition(".")[2] if name == "__init__" else name
    given = args[1:] if owner else args
    raise CallError(
        f"{title}() {_fault(parameters, given, named)}", location=caller(), hint=_hint(title, parameters, named)
    )


def _fault(parameters: list[inspect.Parameter], given: tuple[Any, ...], named: dict[str, Any]) -> str:
    by_place = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    names = {p.name for p in parameters}
    if unknown := [name for name in named if name not in names]:
        return f"has no option {unknown[0]!r}"
    if len(given) > len(by_place) and not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return f"takes {_number(len(by_place))} by position, but {len(given)} were given"
    filled = {p.name for p in by_place[: len(given)]}
    if twice := sorted(filled & set(named)):
        return f"got {twice[0]!r} twice: by position and by name"
    needed = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    missing = [p.name for p in needed if p.name not in filled and p.name not in named]
    return f"needs {', '.join(missing)}" if missing else "cannot be called like this"


def _number(count: int) -> str:
    return f"{count} argument{'' if count == 1 else 's'}"


def _hint(title: str, parameters: list[inspect.Parameter], named: dict[str, Any]) -> str:
    form = f"Its form is {title}({', '.join(_form(parameters))})."
    names = [p.name for p in parameters]
    unknown = next((name for name in named if name not in names), None)
    near = suggestion(unknown, names) if unknown else ""
    return f"{near}{form}"


def _form(parameters: list[inspect.Parameter]) -> Iterator[str]:
    """Each parameter; those after a `*` are given by name, as in Python's own notation."""
    starred = False
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        starred = starred or parameter.kind is parameter.VAR_POSITIONAL
        yield _written(parameter)


def _written(parameter: inspect.Parameter) -> str:
    if parameter.kind is parameter.VAR_POSITIONAL:
        return f"*{parameter.name}"
    if parameter.kind is parameter.VAR_KEYWORD:
        return f"**{parameter.name}"
    return parameter.name if parameter.default is parameter.empty else f"{parameter.name}={parameter.default!r}"


def suggestion(given: object, known: Iterable[str]) -> str:
    """`Did you mean 'inner'? ` for a word that is nearly one of those that are known, else nothing.

    Example:
        >>> suggestion("innr", ["inner", "left", "outer"])
        "Did you mean 'inner'? "
    """
    near = difflib.get_close_matches(given.lower(), list(known), n=1) if isinstance(given, str) else []
    return f"Did you mean {near[0]!r}? " if near else ""
