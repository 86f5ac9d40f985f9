"""Objects as trees: their class and their state."""

from __future__ import annotations

import os
import random
import sys
import types
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from everstate.topology.declarations import DECLARED, declaration_of
from everstate.topology.fingerprints import origins
from everstate.topology.fingerprints.outsiders import name_of

if TYPE_CHECKING:
    from everstate.topology.fingerprints.reach import Reach
    from everstate.topology.fingerprints.tree import Tree

_BY_VALUE: Final = "Pass plain values (numbers, text, lists, dicts), or an object of a class whose attributes are such."
#: Protocol of `__reduce_ex__`: the newest one that every version writes alike.
_PROTOCOL: Final = 2


def instance(reach: Reach, thing: Any) -> Tree:
    """An object: of the user's classes by its attributes, of others by what would be pickled of it."""
    kind = type(thing)
    origin = origins.of_object(kind)
    if origin.kind == "user":
        return reach.define(thing, lambda: _users(reach, thing))
    if origin.package == "everstate" and kind.__module__.startswith("everstate.dsl"):
        raise reach.refused(
            f"a function refers to a {kind.__name__} of the service",
            hint="Take what it needs out before: limit = app.config('limit', 10), then use limit in the function.",
        )
    if isinstance(thing, Iterator):
        raise reach.refused(f"a {kind.__name__} is used up as it is read", hint="Keep a list or a range instead.")
    if isinstance(thing, random.Random):
        reach.name("random.Random")
    reach.name(name_of(kind))
    if origin.kind == "package":
        reach.package(origin.package)
    if kind.__module__.startswith("polars") and kind.__name__ == "Col":
        return ["library", "polars.col"]
    if thing is os.environ or thing is getattr(os, "environb", None):
        return ["environment"]  # what is declared of it is hashed, not all that happens to be in it
    array = _array(reach, thing)
    return array if array is not None else _reduced(reach, thing)


def _users(reach: Reach, thing: Any) -> Tree:
    declaration = vars(thing).get(DECLARED) if hasattr(thing, "__dict__") else None
    said = None if declaration is None else reach.declare(declaration_of(thing) or declaration)
    state = dict(getattr(thing, "__dict__", {}))
    for base in type(thing).__mro__:
        slots = vars(base).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(thing, name):
                state[name] = getattr(thing, name)
    attributes = [[name, reach.value(part)] for name, part in sorted(state.items()) if name != DECLARED]
    return ["instance", reach.value(type(thing)), attributes, _content(reach, thing), said]


def _content(reach: Reach, thing: Any) -> Tree:
    """What a subclass of a built-in type holds as such."""
    if isinstance(thing, dict):
        return reach.value(dict(thing.items()))
    kinds: tuple[Any, ...] = (list, tuple, set, frozenset, str, int, float, bytes)
    return next((reach.value(kind(thing)) for kind in kinds if isinstance(thing, kind)), None)


def _array(reach: Reach, thing: Any) -> Tree | None:
    """An array or number of NumPy's, by type, shape and bytes."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(thing, (numpy.ndarray, numpy.generic)):
        return None
    if thing.dtype.hasobject:
        return ["array", str(thing.dtype), reach.value(thing.tolist())]
    return ["array", thing.dtype.str, list(thing.shape), reach.value(numpy.ascontiguousarray(thing).tobytes())]


def _reduced(reach: Reach, thing: Any) -> Tree:
    with reach.inside(thing) as above:
        if above is not None:
            return ["above", above]
        try:
            parts = thing.__reduce_ex__(_PROTOCOL)
        except Exception as error:
            raise reach.refused(_unknown(thing), hint=_BY_VALUE) from error
        if isinstance(parts, str):
            return ["named", type(thing).__module__.partition(".")[0], parts]
        return ["object", *(_reduced_part(reach, part) for part in parts)]


def _reduced_part(reach: Reach, part: Any) -> Tree:
    if isinstance(part, dict):
        # The order of attributes says nothing.
        return [
            "state",
            [[str(name), reach.value(held)] for name, held in sorted(part.items(), key=lambda i: str(i[0]))],
        ]
    if hasattr(part, "__next__") and not isinstance(part, (type, types.GeneratorType)):
        return reach.value(list(part))
    return reach.value(part)


def _unknown(thing: object) -> str:
    kind = type(thing)
    return f"a {kind.__module__}.{kind.__qualname__} cannot be compared by its value"
