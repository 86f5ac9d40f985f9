"""What a dataclass has written for its fields, told from a method of the user's that was made of a text.

Neither has a file. So a class with the same fields and options is made, and what is written for it compared.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
from typing import Any, Final

from everstate.fingerprints.code.sources import same

_OPTIONS: Final = ("init", "repr", "eq", "order", "unsafe_hash", "frozen")
_twins: dict[int, tuple[type, type | None]] = {}


def writes(kind: type, name: str, code: types.CodeType) -> bool:
    """Whether a dataclass with the fields of this one has just this method."""
    if id(kind) not in _twins:
        _twins[id(kind)] = (kind, _twin(kind))  # holding the class keeps its id from being given to another
    written = getattr(_twins[id(kind)][1], name, None)
    written = inspect.unwrap(written) if callable(written) else written
    return isinstance(written, types.FunctionType) and same(written.__code__, code)


def _twin(kind: Any) -> type | None:
    fields = kind.__dataclass_fields__.values()
    space: dict[str, Any] = {"__annotations__": {field.name: field.type for field in fields}}
    space |= {field.name: _field(field) for field in fields if _is_field(field)}
    space |= {field.name: field.default for field in fields if not _is_field(field) and field.default is not _MISSING}
    if hasattr(kind, "__post_init__"):
        space["__post_init__"] = _nothing
    options = {name: getattr(kind.__dataclass_params__, name) for name in _OPTIONS}
    try:
        return dataclasses.dataclass(**options)(type(kind.__name__, (), {**space, "__module__": kind.__module__}))
    except (TypeError, ValueError, NameError, SyntaxError, AttributeError):
        return None


_MISSING: Final = dataclasses.MISSING


def _nothing(*_: object) -> None:
    """What a class does after its constructor, where only that it does matters."""


def _is_field(field: Any) -> bool:
    """Not a variable of the class or of the constructor alone."""
    return str(field._field_type) == "_FIELD"  # noqa: SLF001 - the only place that says it


def _field(field: Any) -> Any:
    names = ("default", "default_factory", "init", "repr", "hash", "compare", "kw_only")
    return dataclasses.field(**{name: getattr(field, name) for name in names})
