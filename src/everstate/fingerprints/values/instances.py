"""Objects as trees: their class and their state."""

from __future__ import annotations

import os
import random
import types
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from everstate.fingerprints.declarations import DECLARED, declaration_of
from everstate.fingerprints.outside import origins
from everstate.fingerprints.outside.outsiders import name_of
from everstate.fingerprints.values import arrays
from everstate.fingerprints.values.contents import CONTENTS, DERIVED, family

if TYPE_CHECKING:
    from everstate.fingerprints.reach import Reach
    from everstate.fingerprints.tree import Tree

_BY_VALUE: Final = "Pass plain values (numbers, text, lists, dicts), or an object of a class whose attributes are such."
#: Protocol of `__reduce_ex__`: the newest one that every version writes alike.
_PROTOCOL: Final = 2
_POINTER: Final = 8
_MISSING: Final = object()


def instance(reach: Reach, thing: Any) -> Tree:
    """An object: of the user's classes by its attributes, of others by what would be pickled of it."""
    kind = type(thing)
    origin = origins.of_class(kind)
    if origin.kind == "user":
        reach.keep(thing)
        return reach.define(thing, lambda: _users(reach, thing))
    if origin.package == "everstate" and kind.__module__.startswith("everstate.dsl"):
        raise reach.refused(
            f"a function refers to a {kind.__name__} of the service",
            hint="Take out what it needs first: limit = app.config('limit', 10), then use limit in the function.",
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
    return reach.define(thing, lambda: _foreign(reach, thing))


def attributes(reach: Reach, thing: Any, without: frozenset[str] = frozenset()) -> Tree:
    """What was put into an object's `__dict__`, in its order, which `vars` shows."""
    own = getattr(thing, "__dict__", None)
    if not isinstance(own, dict):
        return []
    return [[reach.value(name), reach.value(part)] for name, part in own.items() if name not in without]


def _users(reach: Reach, thing: Any) -> Tree:
    kind = type(thing)
    own = getattr(thing, "__dict__", None)
    declaration = own.get(DECLARED) if isinstance(own, dict) else None
    said = None if declaration is None else reach.declare(declaration_of(thing) or declaration)
    native = _native(kind)
    aside = frozenset({DECLARED}) | (DERIVED.get(native, frozenset()))
    return [
        "instance",
        reach.value(kind),
        attributes(reach, thing, aside),
        [[name, reach.value(part)] for name, part in _slots(thing, native)],
        _content(reach, thing, native),
        said,
    ]


def _native(kind: type) -> type:
    """The class of Python's or a package's that decides how objects of a user's class are laid out."""
    while origins.of_class(kind).kind == "user" and kind.__base__ is not None:
        kind = kind.__base__
    return family(kind) or kind


def _slots(thing: Any, native: type) -> Iterator[tuple[str, Any]]:
    """What is in the slots of an object, those under private names included."""
    known = native.__mro__ if native in CONTENTS else ()
    for place, base in enumerate(type(thing).__mro__):
        slots = vars(base).get("__slots__", ()) if base not in known else ()
        for slot in (slots,) if isinstance(slots, str) else slots:
            name = _mangled(base, slot)
            found = _in_slot(base, name, thing)
            if found is not _MISSING:
                yield f"{place} {slot}", found


def _in_slot(base: type, name: str, thing: Any) -> Any:
    # By the slot itself: a class below may have another of the same name.
    slot = vars(base).get(name)
    if not isinstance(slot, types.MemberDescriptorType):
        return _MISSING
    try:
        return slot.__get__(thing)
    except AttributeError:  # nothing was put into it
        return _MISSING


def _mangled(kind: type, name: str) -> str:
    private = name.startswith("__") and not name.endswith("__")
    return f"_{kind.__name__.lstrip('_')}{name}" if private else name


def content(reach: Reach, thing: Any) -> Tree:
    """What an object of a user's class holds besides its attributes."""
    return _content(reach, thing, _native(type(thing)))


def _content(reach: Reach, thing: Any, native: type) -> Tree:
    """What an object of a user's class holds as one of Python's or a package's."""
    if native is object:
        return None
    if native in CONTENTS:
        return [native.__name__, CONTENTS[native](reach, thing)]
    array = arrays.array(reach, thing)
    if array is not None:
        return array
    for base in native.__mro__[:-1]:
        if "__reduce_ex__" in vars(base):
            return _reduced(reach, thing, partial(vars(base)["__reduce_ex__"].__get__(thing), _PROTOCOL))
        if "__reduce__" in vars(base):
            return _reduced(reach, thing, vars(base)["__reduce__"].__get__(thing))
    if _hides(native):
        raise reach.refused(_unknown(thing), hint=_BY_VALUE)
    return None


def _hides(native: type) -> bool:
    """Whether C keeps more in objects of a type than attributes and slots, which is how pickle tells, too."""
    slots = sum(isinstance(part, types.MemberDescriptorType) for base in native.__mro__ for part in vars(base).values())
    extra = (native.__dictoffset__ > 0) + (native.__weakrefoffset__ > 0) + slots
    return native.__itemsize__ > 0 or native.__basicsize__ > object.__basicsize__ + _POINTER * extra


def _foreign(reach: Reach, thing: Any) -> Tree:
    array = arrays.array(reach, thing)
    if array is not None:
        return array
    return _reduced(reach, thing, lambda: thing.__reduce_ex__(_PROTOCOL))


def _reduced(reach: Reach, thing: Any, reduce: Any) -> Tree:
    try:
        parts = reduce()
    except Exception as error:
        raise reach.refused(_unknown(thing), hint=_BY_VALUE) from error
    if isinstance(parts, str):
        return ["named", type(thing).__module__.partition(".")[0], parts]
    cause = [reach.value(thing.__cause__)] if isinstance(thing, BaseException) else []
    return ["object", *(_reduced_part(reach, part) for part in parts), *cause]


def _reduced_part(reach: Reach, part: Any) -> Tree:
    if isinstance(part, dict):
        # The order in which a library sets the attributes of its objects says nothing.
        held = sorted(part.items(), key=lambda item: str(item[0]))
        return ["state", [[str(name), reach.value(inner)] for name, inner in held]]
    if hasattr(part, "__next__") and not isinstance(part, (type, types.GeneratorType)):
        return [reach.value(inner) for inner in part]
    return reach.value(part)


def _unknown(thing: object) -> str:
    kind = type(thing)
    return f"a {kind.__module__}.{kind.__qualname__} cannot be compared by its value"
