"""Classes as trees: what their bodies made, their bases, and the annotations that something acts on."""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from abc import ABCMeta
from typing import TYPE_CHECKING, Any, Final

from everstate.topology.fingerprints import functions, origins, slots
from everstate.topology.fingerprints.outsiders import name_of
from everstate.topology.fingerprints.syntax import annotation_template
from everstate.topology.fingerprints.tree import Tree, atom

if TYPE_CHECKING:
    from everstate.topology.fingerprints.reach import Reach

#: What Python makes for a slot or for `__dict__`.
_MADE: Final = (types.MemberDescriptorType, types.GetSetDescriptorType)
#: What Python writes into classes, or only some versions of it.
_NOISE: Final = frozenset(
    {"__module__", "__qualname__", "__doc__", "__firstlineno__", "__callable_proto_members_only__", "__dictoffset__"}
)
#: The files that methods claim to be from which a dataclass, attrs or namedtuple has written.
_GENERATED: Final = ("<string>", "<attrs generated", "<namedtuple")
#: Attributes of a pydantic field that change what it accepts or gives.
_FIELD: Final = (
    "annotation", "default", "default_factory", "alias", "validation_alias", "frozen", "validate_default", "init",
    "discriminator", "metadata",
)  # fmt: skip


def class_(reach: Reach, kind: type) -> Tree:
    """A class: the user's by its meaning, another one by its name."""
    origin = origins.of_object(kind)
    if origin.kind == "user":
        return reach.define(kind, lambda: _definition(reach, kind))
    functions.outsider(reach, kind, origin)
    return [origin.kind, name_of(kind)]


def _definition(reach: Reach, kind: type) -> Tree:
    bases = [reach.value(base) for base in kind.__bases__ if base is not object]
    meta = type(kind)
    tree: list[Tree] = ["class", bases, None if meta in (type, ABCMeta) else reach.value(meta)]
    if issubclass(kind, enum.Enum):
        tree.append(["members", [[name, reach.value(member.value)] for name, member in kind.__members__.items()]])
    if dataclasses.is_dataclass(kind):
        tree.append(_dataclass(reach, kind))
    if hasattr(kind, "__pydantic_decorators__"):
        tree.append(_model(reach, kind))
    if "__attrs_attrs__" in vars(kind):
        tree.append(["attrs", [_attrs_field(reach, field) for field in vars(kind)["__attrs_attrs__"]]])
    if _annotations_matter(kind):
        tree.append(["annotations", _annotations(reach, kind)])
    body = [[name, reach.value(part)] for name, part in sorted(vars(kind).items()) if _belongs(kind, name, part)]
    return [*tree, body]


def _belongs(kind: type, name: str, part: Any) -> bool:
    """Whether something in a class is the user's own, and not what Python or a decorator has put there."""
    if isinstance(part, _MADE):
        return False
    call = _function(part)
    if call is not None:
        return _is_users(call)
    if name.startswith("__") and name.endswith("__"):
        return name == "__slots__" or (name not in _NOISE and (part is None or atom(part) is not None))
    if issubclass(kind, enum.Enum) and (name in kind.__members__ or name.startswith("_")):
        return False
    if hasattr(kind, "__pydantic_decorators__") and name.startswith(("_abc", "model_")):
        return name == "model_config"
    if dataclasses.is_dataclass(kind) and name in kind.__dataclass_fields__:
        return False
    return name not in ("_abc_impl", "_is_protocol", "_is_runtime_protocol") and not _is_named_tuple(kind, name)


def _is_named_tuple(kind: type, name: str) -> bool:
    # The fields themselves are in the annotations, or in `_fields`.
    return issubclass(kind, tuple) and hasattr(kind, "_fields") and name in kind._fields


def _function(part: Any) -> types.FunctionType | None:
    if isinstance(part, (staticmethod, classmethod)):
        part = part.__func__
    elif isinstance(part, property):
        part = part.fget
    return part if isinstance(part, types.FunctionType) else None


def _is_users(call: types.FunctionType) -> bool:
    """Of the user, or made by a decorator from something of the user's.

    What a dataclass or the like has written is not: what it is made of is looked at instead.
    """
    if origins.of_globals(call.__globals__).kind == "user":
        return not call.__code__.co_filename.startswith(_GENERATED)
    held = slots.cells(call).values()
    return any(isinstance(content, types.FunctionType) and _is_users(content) for content in held)


def _annotations_matter(kind: type) -> bool:
    """Whether something acts on a class's annotations: a dataclass, a metaclass, a base of another package."""
    if dataclasses.is_dataclass(kind) or type(kind) not in (type, ABCMeta) or hasattr(kind, "__attrs_attrs__"):
        return True
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return True
    others = [base for base in kind.__mro__[1:] if base is not object]
    return any("__init_subclass__" in vars(base) or origins.of_object(base).kind == "package" for base in others)


def _annotations(reach: Reach, kind: type) -> Tree:
    """The annotations of a class's own body, as what they mean; those that cannot be told yet as they are written."""
    own: dict[str, Any] = vars(kind).get("__annotations__", {})
    try:
        meant = typing.get_type_hints(kind, include_extras=True)
    except (NameError, TypeError, AttributeError):
        meant = {}
    return [[name, _annotation(reach, kind, meant.get(name, part))] for name, part in own.items()]


def _annotation(reach: Reach, kind: type, part: Any) -> Tree:
    template = annotation_template(part) if isinstance(part, str) else None
    return reach.value(part) if template is None else slots.annotation(reach, kind, template)


def _dataclass(reach: Reach, kind: Any) -> Tree:
    settings = kind.__dataclass_params__
    names = ("init", "eq", "order", "unsafe_hash", "frozen")
    fields = [
        [
            field.name,
            None if field.default is dataclasses.MISSING else reach.value(field.default),
            None if field.default_factory is dataclasses.MISSING else reach.value(field.default_factory),
            [field.init, field.compare, field.hash, bool(field.kw_only)],
            reach.value(dict(field.metadata)),
        ]
        for field in dataclasses.fields(kind)
    ]
    return ["dataclass", [getattr(settings, name) for name in names], fields]


def _model(reach: Reach, kind: Any) -> Tree:
    """A pydantic model: its fields, and its validators with what was said of them."""
    fields = [
        [name, [[part, reach.value(getattr(field, part, None))] for part in _FIELD]]
        for name, field in kind.__pydantic_fields__.items()
    ]
    decorators = [
        [group, name, reach.value(found.info), reach.value(found.func)]
        for group, members in _groups(kind.__pydantic_decorators__)
        for name, found in sorted(members.items())
    ]
    return ["model", fields, decorators]


def _groups(decorators: Any) -> list[tuple[str, dict[str, Any]]]:
    named = [(field.name, getattr(decorators, field.name)) for field in dataclasses.fields(decorators)]
    return [(name, members) for name, members in sorted(named) if isinstance(members, dict)]


def _attrs_field(reach: Reach, field: Any) -> Tree:
    names = ("name", "default", "validator", "converter", "kw_only", "init", "eq", "order", "hash")
    return [[name, reach.value(getattr(field, name, None))] for name in names]
