"""Classes as trees: their bases, all their members but those that Python wrote, and what options act on."""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from abc import ABCMeta
from typing import TYPE_CHECKING, Any, Final

from everstate.fingerprints.code import functions, slots
from everstate.fingerprints.code.syntax import annotation_template
from everstate.fingerprints.declarations import DECLARED, Declaration
from everstate.fingerprints.outside import origins
from everstate.fingerprints.outside.outsiders import name_of
from everstate.fingerprints.values import instances, members

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everstate.fingerprints.reach import Reach
    from everstate.fingerprints.tree import Tree

#: Attributes of a pydantic field that only describe it.
_DESCRIBING: Final = ("title", "field_title_generator", "description", "examples", "deprecated", "json_schema_extra")

#: Flags of types that `match` takes for sequences and mappings, which `ABC.register` sets.
_MATCHED: Final = 1 << 5 | 1 << 6
#: Members of classes whose annotations mean something.
_ACTED_ON: Final = ("__dataclass_fields__", "__attrs_attrs__")


def class_(reach: Reach, kind: type) -> Tree:
    """A class: the user's by its meaning, another one by its name."""
    origin = origins.of_class(kind)
    if origin.kind == "user":
        return reach.define(kind, lambda: _definition(reach, kind))
    functions.outsider(reach, kind, origin)
    registered = [other for other in _registered(kind) if origins.of_class(other).kind == "user"]
    return [origin.kind, name_of(kind), *([reach.unordered(kind, registered)] if registered else [])]


def _definition(reach: Reach, kind: type) -> Tree:
    declaration = vars(kind).get(DECLARED)
    said = None
    if isinstance(declaration, Declaration):
        said = reach.declare(declaration)
        if declaration.version:
            return ["unseen", said]
    _facts(reach, kind)
    bases = [reach.value(base) for base in kind.__bases__ if base is not object]
    tree: list[Tree] = ["class", bases, None if type(kind) is type else reach.value(type(kind)), said]
    tree += _options(reach, kind)
    if _annotations_matter(kind):
        tree.append(["annotations", hints_of(reach, kind)])
    body = [[name, _member(reach, kind, part)] for name, part in members.own(kind)]
    return [*tree, body]


def _facts(reach: Reach, kind: Any) -> None:
    """What a class says that changes no result by itself."""
    reach.fact("class names", lambda: [kind.__name__, kind.__qualname__])
    reach.fact("class modules", lambda: [kind.__module__])
    reach.fact("hints", lambda: hints_of(reach, kind))
    reach.fact("order", lambda: [name for name, part in vars(kind).items() if members.counts(kind, name, part)])
    reach.fact("subclasses", lambda: [reach.value(other) for other in type.__subclasses__(kind)])
    reach.fact("docs", lambda: [kind.__doc__, _docs(kind), _described(reach, kind)])
    if members.shows_its_name(kind):
        reach.fact("formats", lambda: [kind.__name__, kind.__qualname__])


def _docs(kind: type) -> Tree:
    return [[name, part.__doc__] for name, part in members.own(kind) if isinstance(part, property)]


def _described(reach: Reach, kind: Any) -> Tree:
    fields = members.static(kind, "__pydantic_fields__", {})
    return [[name, [reach.value(getattr(field, part, None)) for part in _DESCRIBING]] for name, field in fields.items()]


def _options(reach: Reach, kind: Any) -> Iterator[Tree]:
    """What was said of a class besides its members."""
    if issubclass(kind, enum.Enum):
        yield ["members", [[name, _enum_member(reach, kind, member)] for name, member in kind.__members__.items()]]
        yield str(members.static(kind, "_boundary_"))
    if "__dataclass_fields__" in vars(kind):
        yield _dataclass(reach, kind)
    if issubclass(kind, BaseException):
        yield kind.__qualname__  # dead letters name it
    if members.static(kind, "__pydantic_decorators__") is not None:
        yield _model(reach, kind)
    if "__attrs_attrs__" in vars(kind):
        yield ["attrs", [_attrs_field(reach, field) for field in vars(kind)["__attrs_attrs__"]]]
        kept = members.kept_by_attrs(kind)
        if kept:
            yield ["kept by attrs", [[name, reach.value(part)] for name, part in kept]]
    if members.static(kind, "_is_runtime_protocol"):
        yield "checked at run time"
    generic = [base for base in vars(kind).get("__orig_bases__", ()) if _is_of_types(base)]
    if generic:
        yield ["of", [reach.value(base) for base in generic]]
    registered = _registered(kind)
    if registered:
        yield ["registered", reach.unordered(kind, registered)]
    yield from _matched(kind)


def _matched(kind: Any) -> Iterator[Tree]:
    """What `match` takes objects for, if that was said of the class itself."""
    if kind.__flags__ & _MATCHED != (kind.__base__ or object).__flags__ & _MATCHED:
        yield ["matched as", kind.__flags__ & _MATCHED]


def _is_of_types(base: Any) -> bool:
    return typing.get_origin(base) not in (None, typing.Generic, typing.Protocol)


def _registered(kind: type) -> list[type]:
    """The classes that were registered as if they were below an abstract one."""
    if not isinstance(kind, ABCMeta):
        return []
    found = (reference() for reference in members.registry(kind))
    return [other for other in found if other is not None]


def _member(reach: Reach, kind: type, part: Any) -> Tree:
    if isinstance(part, types.MemberDescriptorType) and part.__objclass__ is kind:
        return ["slot", part.__name__]
    return reach.value(part)


def _enum_member(reach: Reach, kind: type, member: enum.Enum) -> Tree:
    """A member with what its class keeps in it besides its value."""
    kept = [[name, reach.value(part)] for name, part in vars(member).items() if name not in members.OF_ENUM_MEMBERS]
    held = None if kind._member_type_ is object else instances.content(reach, member)  # type: ignore[attr-defined]
    return [member.name, reach.value(member.value), kept, held]


def _annotations_matter(kind: type) -> bool:
    """Whether something acts on a class's annotations: a dataclass, a metaclass, a base of another package."""
    if type(kind) not in (type, ABCMeta) or any(members.static(kind, name) is not None for name in _ACTED_ON):
        return True
    if issubclass(kind, tuple) and members.static(kind, "_fields") is not None:
        return True
    others = [base for base in kind.__mro__[1:] if base is not object]
    return any("__init_subclass__" in vars(base) or origins.of_class(base).kind == "package" for base in others)


def hints_of(reach: Reach, kind: type) -> Tree:
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
    names = ("init", "repr", "eq", "order", "unsafe_hash", "frozen")
    fields = [
        [
            field.name,
            None if field.default is dataclasses.MISSING else reach.value(field.default),
            None if field.default_factory is dataclasses.MISSING else reach.value(field.default_factory),
            [field.init, field.repr, field.compare, field.hash, bool(field.kw_only), members.role(field)],
            reach.value(dict(field.metadata)),
        ]
        for field in kind.__dataclass_fields__.values()
    ]
    return ["dataclass", [getattr(settings, name) for name in names], fields]


def _model(reach: Reach, kind: Any) -> Tree:
    """A pydantic model: its fields, what it keeps in private, and its validators with what was said of them."""
    fields = [
        [name, [[part, reach.value(getattr(field, part, None))] for part in _said_of(field)]]
        for name, field in kind.__pydantic_fields__.items()
    ]
    private = members.static(kind, "__private_attributes__", {})
    kept = [[name, reach.value(part.default), reach.value(part.default_factory)] for name, part in private.items()]
    decorators = [
        [group, name, reach.value(found.info), reach.value(found.func)]
        for group, named in _groups(kind.__pydantic_decorators__)
        for name, found in sorted(named.items())
    ]
    return ["model", fields, kept, decorators]


def _said_of(field: Any) -> list[str]:
    return [name for name in type(field).__slots__ if not name.startswith("_") and name not in _DESCRIBING]


def _groups(decorators: Any) -> list[tuple[str, dict[str, Any]]]:
    named = [(field.name, getattr(decorators, field.name)) for field in dataclasses.fields(decorators)]
    return [(name, group) for name, group in sorted(named) if isinstance(group, dict)]


def _attrs_field(reach: Reach, field: Any) -> Tree:
    names = [name for name in type(field).__slots__ if name not in ("type", "inherited", "counter", "__weakref__")]
    return [[name, reach.value(getattr(field, name, None))] for name in names]
