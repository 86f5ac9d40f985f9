"""Which members of a class are the user's: all but those that Python, or what made the class, has written.

What is written for a class follows from what else is told of it: its fields, their options, its bases. Only that is
left out; whatever is not known to be so counts.
"""

from __future__ import annotations

import abc
import enum
import inspect
import types
import typing
from typing import Any, Final

from everstate.fingerprints.declarations import DECLARED
from everstate.fingerprints.outside import origins
from everstate.fingerprints.values import twins

#: What Python writes into classes, or only some versions of it, and what is told otherwise.
_NOISE: Final = frozenset(
    """
    __module__ __qualname__ __doc__ __firstlineno__ __static_attributes__ __annotations__ __annotate__ __annotate_func__
    __annotations_cache__ __dict__ __weakref__ __dictoffset__ __slotnames__ __abstractmethods__ _abc_impl __orig_bases__
    __parameters__ __type_params__ __protocol_attrs__ __non_callable_proto_members__ __callable_proto_members_only__
    _is_protocol _is_runtime_protocol __dataclass_fields__ __dataclass_params__ __attrs_attrs__ __attrs_props__
    __attrs_own_setattr__ __attrs_base_of_slotted__ __private_attributes__ __class_vars__ __signature__
    """.split()  # noqa: SIM905 - a list of words is easier to read
) | {DECLARED}
_OF_TYPED_DICTS: Final = frozenset(
    {"__required_keys__", "__optional_keys__", "__readonly_keys__", "__mutable_keys__", "__closed__", "__extra_items__"}
)
_OF_ENUMS: Final = frozenset(
    """
    _member_names_ _member_map_ _value2member_map_ _unhashable_values_ _unhashable_values_map_ _hashable_values_
    _member_type_ _value_repr_ _use_args_ _flag_mask_ _all_bits_ _inverted_ _singles_mask_ _boundary_ _new_member_
    __new__ _generate_next_value_ __reduce_ex__
    """.split()  # noqa: SIM905
)
#: Those of them that a user may have written.
_ASKED_BY_ENUMS: Final = frozenset({"_new_member_", "__new__", "_generate_next_value_", "__reduce_ex__"})
#: What an enum keeps in its members for itself.
OF_ENUM_MEMBERS: Final = frozenset({"_name_", "_value_", "_sort_order_", "__objclass__", "_inverted_"})
#: What a dataclass writes.
_OF_DATACLASSES: Final = frozenset(
    """
    __init__ __repr__ __eq__ __lt__ __le__ __gt__ __ge__ __hash__ __setattr__ __delattr__ __replace__ __getstate__
    __setstate__
    """.split()  # noqa: SIM905
)


def own(kind: type) -> list[tuple[str, Any]]:
    """The members of a class that count, by name; their order in the class says nothing."""
    return sorted((name, part) for name, part in vars(kind).items() if counts(kind, name, part))


def static(kind: type, name: str, default: Any = None) -> Any:
    """A member of a class or its bases as it stands there, whatever a metaclass would give instead."""
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), default)


def shows_its_name(kind: type) -> bool:
    """Whether the text of an object has the name of its class, as that of a dataclass or an error has."""
    for name in ("__repr__", "__str__"):
        owner = next(base for base in kind.__mro__ if name in vars(base))
        if owner is object:
            continue  # it has an address, which is never the same
        if origins.of_class(owner).kind != "user" or not counts(owner, name, vars(owner)[name]):
            return True
    return False


def role(field: Any) -> str:
    """What a field of a dataclass is: one of its objects, of the class, or of the constructor alone."""
    return str(field._field_type)  # noqa: SLF001 - the only place that says it


def kept_by_attrs(kind: type) -> list[tuple[str, Any]]:
    """What attrs keeps in methods that it writes and in no field: hooks of attributes, cached properties."""
    setter, getter = (vars(kind).get(name) for name in ("__setattr__", "__getattr__"))
    found: list[tuple[str, Any]] = []
    if isinstance(setter, types.FunctionType) and _is_written(kind, "__setattr__", setter):
        told = inspect.getclosurevars(setter).nonlocals.get("sa_attrs", {})
        found += [(f"{name} is set", hook) for name, (_, hook) in told.items()]
    if isinstance(getter, types.FunctionType) and _is_written(kind, "__getattr__", getter):
        found += list(getter.__globals__.get("cached_properties", {}).items())
    return sorted(found, key=lambda part: part[0])


def registry(kind: abc.ABCMeta) -> list[Any]:
    """References to the classes that were registered with an abstract one."""
    dump = getattr(abc, "_get_dump", None)
    return list(dump(kind)[0]) if dump is not None else []


def counts(kind: Any, name: str, part: Any) -> bool:
    """Whether a member may change results."""
    if name in _NOISE or (name == "__slots__" and hasattr(part, "__next__")):
        return False
    if typing.is_typeddict(kind) and name in _OF_TYPED_DICTS:
        return False
    if static(kind, "__pydantic_decorators__") is not None and name.startswith("__pydantic_"):
        return False
    if _is_named_tuple(kind) and name in kind._fields and type(part).__name__ == "_tuplegetter":
        return False
    call = _function(part)
    if issubclass(kind, enum.Enum) and _is_of_enum(kind, name, part, call):
        return False
    return call is None or not _is_written(kind, name, call)


def _is_named_tuple(kind: type) -> bool:
    return issubclass(kind, tuple) and "_fields" in vars(kind)


def _function(part: Any) -> types.FunctionType | None:
    """The function that a member is, below what `functools.wraps` put around it."""
    if isinstance(part, (staticmethod, classmethod)):
        part = part.__func__
    part = inspect.unwrap(part) if callable(part) else part
    return part if isinstance(part, types.FunctionType) else None


def _is_of_enum(kind: Any, name: str, part: Any, call: types.FunctionType | None) -> bool:
    if name in kind.__members__:
        return True
    if name in _OF_ENUMS:
        return name not in _ASKED_BY_ENUMS or call is None or call.__globals__.get("__name__") == "enum"
    above = next(base for base in kind.__mro__[1:] if issubclass(base, enum.Enum))
    given = [getattr(base, name, None) for base in (above, enum.Flag)]
    return isinstance(part, types.FunctionType | types.WrapperDescriptorType) and any(part is one for one in given)


def _is_written(kind: Any, name: str, call: types.FunctionType) -> bool:
    """Whether what made a class wrote this function from what else is told of it."""
    file, module = call.__code__.co_filename, str(call.__globals__.get("__name__", ""))
    special = name.startswith("__") and name.endswith("__")
    if "__dataclass_fields__" in vars(kind) and name in _OF_DATACLASSES:
        return module == "dataclasses" or (file == "<string>" and twins.writes(kind, name, call.__code__))
    if _is_named_tuple(kind):
        return module in ("collections", "typing") or module.startswith("namedtuple_")
    if "__attrs_attrs__" in vars(kind):
        return file.startswith("<attrs generated") or module.startswith("attr.")
    if static(kind, "__pydantic_decorators__") is not None and (special or name.startswith("model_")):
        return module.startswith("pydantic")
    return special and module in ("typing", "typing_extensions") and bool(static(kind, "_is_protocol"))
