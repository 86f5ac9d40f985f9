"""How objects of the standard library are written that pickle writes by their name, or cannot write.

By its name, a cached function would be looked for in a module that a worker does not have; an archive would get the
function of a later version. So these are taken apart and put together again. What may refer to itself, such as a cached
recursive function, is made empty first and filled afterwards.
"""

from __future__ import annotations

import functools
import json
import struct
import typing
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_CACHED: Final = functools._lru_cache_wrapper  # noqa: SLF001 - the only name of this type
#: The code of every function that `functools.singledispatch` makes.
_DISPATCHING: Final = functools.singledispatch(lambda _: None).__code__  # type: ignore[attr-defined]
#: What `singledispatch` puts into the namespace of such a function itself.
_OWN: Final = frozenset({"registry", "dispatch", "register", "_clear_cache"})


def reduced(thing: Any) -> Any:
    """What an object is written as; NotImplemented for those that pickle writes well."""
    if type(thing) is FunctionType:
        return _reduced_dispatch(thing) if thing.__code__ is _DISPATCHING else NotImplemented
    reduce = _REDUCED.get(type(thing))
    return NotImplemented if reduce is None else reduce(thing)


def _reduced_cache(thing: Any) -> Any:
    known = thing.cache_parameters()
    state = {name: part for name, part in vars(thing).items() if name != "cache_parameters"}
    return _empty_cache, (known["maxsize"], known["typed"]), state, None, None, _fill_cache


def _empty_cache(maxsize: int | None, typed: bool) -> Any:  # noqa: FBT001 - as pickle calls it
    def forward(*given: Any, **named: Any) -> Any:
        return forward.__wrapped__(*given, **named)  # type: ignore[attr-defined]

    return functools.lru_cache(maxsize, typed)(forward)


def _fill_cache(cached: Any, state: dict[str, Any]) -> None:
    cached.__wrapped__.__wrapped__ = state["__wrapped__"]  # of what it forwards to
    vars(cached).update(state)


def _reduced_property(thing: functools.cached_property[Any]) -> Any:
    state = {name: part for name, part in vars(thing).items() if name != "lock"}
    return _empty_property, (), state, None, None, _fill


def _empty_property() -> functools.cached_property[Any]:
    return functools.cached_property(lambda _: None)


def _fill(made: Any, state: dict[str, Any]) -> None:
    vars(made).update(state)


def _reduced_dispatch(thing: Any) -> Any:
    own = {name: part for name, part in vars(thing).items() if name not in _OWN}
    names = {name: getattr(thing, name) for name in functools.WRAPPER_ASSIGNMENTS if hasattr(thing, name)}
    return _empty_dispatch, (thing.__name__,), (dict(thing.registry), own, names), None, None, _fill_dispatch


def _empty_dispatch(name: str) -> Callable[..., Any]:
    def base(*_: Any) -> None: ...

    base.__name__ = name  # an error of a call without arguments has it
    return functools.singledispatch(base)


def _fill_dispatch(made: Any, state: tuple[dict[type, Any], dict[str, Any], dict[str, Any]]) -> None:
    registry, own, names = state
    for kind, call in registry.items():
        made.register(kind, call)
    vars(made).update(own)
    for name, part in names.items():
        setattr(made, name, part)


def _reduced_decoder(thing: json.JSONDecoder) -> Any:
    told = ("object_hook", "parse_float", "parse_int", "parse_constant", "strict", "object_pairs_hook")
    return _decoder, ({name: getattr(thing, name) for name in told},)


def _decoder(told: dict[str, Any]) -> json.JSONDecoder:
    return json.JSONDecoder(**told)


def _reduced_new_type(thing: Any) -> Any:
    return _new_type, (thing.__name__, thing.__supertype__, thing.__module__)


def _new_type(name: str, supertype: Any, module: str) -> Any:
    made: Any = typing.NewType(name, supertype)  # type: ignore[misc]
    made.__module__ = module
    return made


#: By the exact type: what a subclass adds is not known here.
_REDUCED: Final[dict[type, Callable[[Any], Any]]] = {
    _CACHED: _reduced_cache,
    functools.cached_property: _reduced_property,
    struct.Struct: lambda thing: (struct.Struct, (thing.format,)),
    json.JSONDecoder: _reduced_decoder,
    typing.NewType: _reduced_new_type,
    typing.ParamSpec: lambda thing: (typing.ParamSpec, (thing.__name__,)),
    typing.TypeVarTuple: lambda thing: (typing.TypeVarTuple, (thing.__name__,)),
}
