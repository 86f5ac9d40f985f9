"""Columns as users write them: Python types, dataclasses, TypedDicts, dicts of these, and Arrow's and Polars' types."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Final

import polars as pl
import pyarrow as pa

from everstate.schema.column_values import MismatchError, default_text
from everstate.schema.types import (
    BOOL,
    BYTES,
    DATE,
    DATETIME,
    DECIMAL,
    DURATION,
    FLOAT,
    INTEGER,
    TEXT,
    DataType,
    Field,
    TypeMistakeError,
    list_of,
    map_of,
    of_arrow,
    of_polars,
    struct_of,
)

_PYTHON: Final[dict[object, DataType]] = {
    str: TEXT,
    int: INTEGER,
    float: FLOAT,
    bool: BOOL,
    bytes: BYTES,
    datetime: DATETIME,
    date: DATE,
    timedelta: DURATION,
    Decimal: DataType("decimal", precision=DECIMAL[0], scale=DECIMAL[1]),
}
#: The specifications that are being read, outermost first: one that holds itself would have no end.
_INSIDE: Final[ContextVar[tuple[object, ...]]] = ContextVar("everstate_schema", default=())
#: As deep as records may be nested, which is far deeper than anyone reads.
_DEEPEST: Final = 50
_LISTS: Final = (list, tuple, set, frozenset, Sequence, Iterable)
_SUPPORTED: Final = (
    "Use str, int, float, bool, bytes, datetime, date, timedelta, Decimal, list[T], dict[str, T], T | None, "
    "a dataclass, a TypedDict, a dict of these, or an Arrow type."
)


def record_fields(spec: object) -> list[Field] | None:
    """The fields of a specification of several columns; None if it is the type of one value."""
    inside = _INSIDE.get()
    if any(other is spec for other in inside):
        raise TypeMistakeError(
            f"{_shown(spec)} holds itself",
            hint="A column cannot contain itself: keep the inner one as text, or by its id.",
        )
    if len(inside) > _DEEPEST:
        raise TypeMistakeError(f"it is nested deeper than {_DEEPEST} levels", hint="Keep the inner part as text.")
    token = _INSIDE.set((*inside, spec))
    try:
        return _fields_of(spec)
    finally:
        _INSIDE.reset(token)


def _fields_of(spec: object) -> list[Field] | None:
    if isinstance(spec, pa.Schema):
        return [_at(field.name, field.type, nullable=field.nullable) for field in spec]
    if isinstance(spec, Mapping):
        return [field_of(name, annotation) for name, annotation in spec.items()]
    if isinstance(spec, type) and dataclasses.is_dataclass(spec):
        hints = _hints(spec)
        return [_with_default(field_of(field.name, hints[field.name]), field) for field in dataclasses.fields(spec)]
    if typing.is_typeddict(spec):
        optional: frozenset[str] = spec.__optional_keys__  # type: ignore[attr-defined]
        return [field_of(name, hint, missing=name in optional) for name, hint in _hints(spec).items()]
    return None


def _hints(spec: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(spec, include_extras=True)
    except Exception as error:  # noqa: BLE001 - annotations are code of the user's
        raise TypeMistakeError(
            f"the annotations of {spec.__name__} cannot be resolved: {error}",
            hint="Define the types it names at the top level of its module.",
        ) from None


def _at(name: str, annotation: object, *, nullable: bool = False) -> Field:
    """A field whose type's mistakes are reported with its name."""
    try:
        return Field(name, _type(annotation), nullable)
    except TypeMistakeError as mistake:
        raise TypeMistakeError(f"column {name!r}: {mistake.message}", mistake.hint) from None


def field_of(name: object, annotation: object, *, missing: bool = False) -> Field:
    """The field of an annotation.

    Args:
        name: Its name.
        annotation: Its type; `T | None` and `NotRequired[T]` make it nullable.
        missing: Whether the field may be missing if the annotation does not say.
    """
    if not isinstance(name, str):
        raise TypeMistakeError(
            f"the name of a column must be text, not {_shown(name)}", hint='Write schema={"name": type, ...}.'
        )
    if isinstance(annotation, Field):
        return dataclasses.replace(annotation, name=name)
    if isinstance(annotation, pa.Field):
        return _at(name, annotation.type, nullable=annotation.nullable)
    while (origin := typing.get_origin(annotation)) in (typing.NotRequired, typing.Required, typing.Annotated):
        if origin is not typing.Annotated:
            missing = origin is typing.NotRequired
        annotation = typing.get_args(annotation)[0]
    stripped = _without_none(annotation)
    return _at(name, stripped, nullable=missing or stripped is not annotation)


def _with_default(field: Field, declared: dataclasses.Field[Any]) -> Field:
    """The field with the default that a dataclass declares."""
    made = declared.default_factory
    try:
        value = declared.default if made is dataclasses.MISSING else made()
    except Exception as error:  # noqa: BLE001 - a factory is code of the user's
        raise TypeMistakeError(
            f"column {field.name!r}: its default cannot be created: {type(error).__name__}: {error}",
            hint="Give it a constant.",
        ) from None
    if value is dataclasses.MISSING or (value is None and field.nullable):
        return field
    try:
        text = default_text(value, field)
        if made is not dataclasses.MISSING and default_text(made(), field) != text:
            raise TypeMistakeError(
                f"column {field.name!r}: its default is different each time",
                hint="The same records must give the same rows: give it a constant.",
            )
        return dataclasses.replace(field, default=text)
    except (ValueError, MismatchError) as error:
        why = error.reason() if isinstance(error, MismatchError) else str(error)
        hint = "Write T | None." if value is None else "Give it a default of its type."
        raise TypeMistakeError(f"column {field.name!r}: the default {value!r} does not fit: {why}", hint) from None


def _without_none(annotation: object) -> object:
    """The T of `T | None`; the annotation itself if it has no None."""
    if typing.get_origin(annotation) not in (typing.Union, types.UnionType):
        return annotation
    members = typing.get_args(annotation)
    others = [member for member in members if member is not type(None)]
    if len(others) != 1 or len(others) == len(members):
        raise TypeMistakeError(
            f"{annotation} is more than one type",
            hint="A column has one type, which may be T | None; write text where it can be several.",
        )
    return others[0]


def _type(annotation: Any) -> DataType:
    """The type of an annotation that is not nullable."""
    while isinstance(annotation, typing.NewType):
        annotation = annotation.__supertype__
    if isinstance(annotation, DataType):
        return annotation
    if isinstance(annotation, pa.DataType):
        return of_arrow(annotation)
    if isinstance(annotation, pl.DataType | pl.datatypes.DataTypeClass):
        return of_polars(annotation)
    if isinstance(annotation, type) and annotation in _PYTHON:
        return _PYTHON[annotation]
    return _nested(annotation)


def _nested(annotation: Any) -> DataType:
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is list and len(args) == 1:
        return _inner(list_of, args[0])
    if origin in (dict, Mapping) and len(args) == 2 and args[0] is str:
        return _inner(map_of, args[1])
    if origin in (dict, Mapping) and args:
        raise TypeMistakeError(f"the keys of {_shown(annotation)} are not str", hint="Write dict[str, T].")
    if annotation is None or annotation is type(None):
        raise TypeMistakeError("None is not a type of its own", hint="Write T | None.")
    fields = None if origin else record_fields(annotation)
    if fields is None:
        raise TypeMistakeError(f"{_shown(annotation)} is not a type of a column", hint=_instead(annotation, origin))
    return struct_of(fields)


def _instead(annotation: Any, origin: Any) -> str:
    """What to write in the place of a type that cannot be a column's."""
    plain = annotation if origin is None else origin
    cases: list[tuple[bool, str]] = [
        (isinstance(annotation, str), f"Write the type itself, without quotes. {_SUPPORTED}"),
        (_is_a(annotation, Enum), "Use the type of its values, such as str; a function can turn it into the member."),
        (origin is typing.Literal, "Use the type of its values, such as str."),
        (_one_of(plain, _LISTS) or isinstance(annotation, (list, tuple, set)), "Write list[T], such as list[str]."),
        (
            _one_of(plain, (dict, Mapping)),
            "Write dict[str, T], such as dict[str, float]; or name the fields: a dataclass.",
        ),
        (annotation is time, "Use timedelta, the time since midnight, or str."),
        (dataclasses.is_dataclass(type(annotation)), f"Pass the class: {type(annotation).__name__}"),
        (dataclasses.is_dataclass(origin), "Write a dataclass without type parameters."),
        (_is_a(annotation, tuple), "Write a dataclass or a TypedDict instead of the NamedTuple."),
    ]
    return next((hint for fits, hint in cases if fits), _SUPPORTED)


def is_name(name: str) -> bool:
    """Whether a column may have this name."""
    try:
        return bool(name) and b"\x00" not in name.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False


def _has_words(annotation: object) -> bool:
    """Whether its text says what it is: not where it lies in memory, nor an error."""
    try:
        return "0x" not in repr(annotation)
    except Exception:  # noqa: BLE001 - code of the user's
        return False


def _one_of(part: object, kinds: tuple[object, ...]) -> bool:
    # By identity: a frame, or whatever else was passed by mistake, need not compare as other values do.
    return any(part is kind for kind in kinds)


def _is_a(annotation: object, kind: type) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, kind)


def _inner(kind: Any, annotation: object) -> DataType:
    field = field_of("item", annotation)
    built: DataType = kind(field.type, nullable=field.nullable)
    return built


def _shown(annotation: object) -> str:
    if isinstance(annotation, (str, int, float, bytes)) or annotation is None:
        return repr(annotation)[:80]
    if isinstance(annotation, Mapping):
        return "the dict"
    if dataclasses.is_dataclass(annotation) and not isinstance(annotation, type):
        return f"an instance of {type(annotation).__name__}"
    if not isinstance(annotation, type) and not typing.get_origin(annotation) and not _has_words(annotation):
        return f"<{type(annotation).__name__}>"
    return annotation.__name__ if isinstance(annotation, type) and not typing.get_args(annotation) else str(annotation)
