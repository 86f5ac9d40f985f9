"""Type hints as trees: `Optional[int]`, `int | None` and the text "int | None" are one thing."""

from __future__ import annotations

import types
import typing
from typing import TYPE_CHECKING, Any, Final

from everstate.fingerprints.tree import Tree, digest

if TYPE_CHECKING:
    from everstate.fingerprints.reach import Reach

_VARIABLES: Final = (typing.TypeVar, typing.ParamSpec, typing.TypeVarTuple)


def is_hint(thing: Any) -> bool:
    """Whether it is made of `typing`'s words rather than being a class."""
    if isinstance(thing, (types.GenericAlias, types.UnionType, typing.ForwardRef, typing.NewType, *_VARIABLES)):
        return True
    return type(thing).__module__ == "typing" and not isinstance(thing, type)


def hint(reach: Reach, thing: Any) -> Tree:
    """The tree of a type hint."""
    if isinstance(thing, typing.ForwardRef):
        return ["hint", thing.__forward_arg__]
    if isinstance(thing, typing.NewType):
        return ["hint", "NewType", reach.value(thing.__supertype__)]
    if isinstance(thing, _VARIABLES):
        bounds = [getattr(thing, "__bound__", None), *getattr(thing, "__constraints__", ())]
        return ["hint", type(thing).__name__, [reach.value(bound) for bound in bounds]]
    if hasattr(thing, "__value__"):  # `type Name = ...` of a newer Python
        return ["hint", "alias", reach.value(thing.__value__)]
    origin = typing.get_origin(thing)
    if origin is None:
        return ["hint", str(thing)]
    if origin is typing.Annotated:
        return ["hint", "Annotated", reach.value(thing.__origin__), [reach.value(part) for part in thing.__metadata__]]
    parts = [_part(reach, part) for part in typing.get_args(thing)]
    if origin in (typing.Union, types.UnionType):
        return ["hint", "union", sorted(parts, key=digest)]
    return ["hint", reach.value(origin), parts]


def _part(reach: Reach, part: Any) -> Tree:
    # Callable[[int], str] has a list among its arguments.
    return [_part(reach, inner) for inner in part] if isinstance(part, list) else reach.value(part)
