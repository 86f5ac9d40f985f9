"""What makes a column's value of what JSON or a user's function gave, and what JSON writes for it.

Readers are made once for a type and called for every value.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from functools import lru_cache, partial
from math import isfinite
from typing import TYPE_CHECKING, Any

from everstate.schema import scalars, text_forms

if TYPE_CHECKING:
    from everstate.schema.types import DataType, Field

#: Gives the value as the column holds it, or raises ValueError or MismatchError.
Reader = Callable[[Any], Any]

#: The name of a field, what reads it, and what stands in the place of one that was left out.
_Column = tuple[str, Reader, Callable[[], Any]]


class MismatchError(Exception):
    """A value that does not fit, with the way to it, innermost step first."""

    def __init__(self, step: str, why: str) -> None:
        self.steps = [step]
        self.why = why
        super().__init__(why)

    def reason(self) -> str:
        """What does not fit, and where."""
        path = "".join(reversed(self.steps)).removeprefix(".")
        return f"field {path!r}: {self.why}"


@lru_cache(maxsize=2048)
def reader(field: Field, *, python: bool) -> Reader:
    """A reader of one field: of JSON's values, or of Python's (`python`), which has all types itself."""
    read = _type_reader(field.type, python=python)
    nullable, type_ = field.nullable, field.type

    def read_field(value: Any) -> Any:
        if value is None:
            if nullable:
                return None
            raise ValueError(f"expected {type_}, it is missing or null")
        return read(value)

    return read_field


@lru_cache(maxsize=512)
def object_reader(fields: tuple[Field, ...], *, python: bool) -> Callable[[Any], dict[str, Any]]:
    """A reader of objects with these fields; what is left out gets its default."""
    columns = tuple(_column(field, python=python) for field in fields)
    return lambda value: _struct(value, columns, python=python)


def default_of(field: Field) -> Any:
    """What stands where a record leaves a field out: None if nothing is declared."""
    return None if field.default is None else reader(field, python=False)(json.loads(field.default))


def default_text(value: Any, field: Field) -> str:
    """A default as a field keeps it.

    Raises:
        ValueError: If it is not of the field's type.
        MismatchError: If something inside it is not.
    """
    checked = reader(field, python=True)(value)
    return json.dumps(written(checked, field.type), ensure_ascii=False, sort_keys=True, allow_nan=False)


def written(value: Any, type_: DataType) -> Any:
    """What `json.dumps` writes for a value."""
    if value is None:
        return None
    if type_.name == "list":
        return [written(item, type_.inner.type) for item in value]
    if type_.name == "map":
        return {key: written(item, type_.inner.type) for key, item in value.items()}
    if type_.name == "struct":
        return {field.name: written(value.get(field.name), field.type) for field in type_.fields}
    return text_forms.to_json(value, type_)


def _column(field: Field, *, python: bool) -> _Column:
    read = reader(field, python=python)
    absent = partial(read, None) if field.default is None else partial(default_of, field)
    return field.name, read, absent


def _type_reader(type_: DataType, *, python: bool) -> Reader:
    if type_.name == "list":
        return _list_reader(type_, python=python)
    if type_.name == "map":
        return _map_reader(type_, python=python)
    if type_.name == "struct":
        return object_reader(type_.fields, python=python)
    return _scalar_reader(type_, scalars.check if python else text_forms.from_json)


def _scalar_reader(type_: DataType, read: Callable[[Any, DataType], Any]) -> Reader:
    """A reader that is quick about what most values are and leaves the rest to `read`."""
    if type_.name == "text":
        return lambda value: value if type(value) is str and value.isascii() else read(value, type_)
    if type_.is_integer:
        low, high = type_.bounds
        return lambda value: value if type(value) is int and low <= value <= high else read(value, type_)
    if type_.name == "float64":
        return lambda value: value if type(value) is float and isfinite(value) else read(value, type_)
    return lambda value: read(value, type_)


def _list_reader(type_: DataType, *, python: bool) -> Reader:
    read = reader(type_.inner, python=python)

    def read_list(value: Any) -> list[Any]:
        if not isinstance(value, list) and not (python and isinstance(value, tuple)):
            raise scalars.unexpected(type_, value)
        return [_step(read, item, f"[{place}]") for place, item in enumerate(value)]

    return read_list


def _map_reader(type_: DataType, *, python: bool) -> Reader:
    read = reader(type_.inner, python=python)

    def read_map(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise scalars.unexpected(type_, value)
        checked = {}
        for key, item in value.items():
            if not isinstance(key, str) or not _encodable(key):
                raise ValueError(f"expected a dict with text keys, got the key {scalars.shown(key)}")
            checked[key] = _step(read, item, f"[{key!r}]")
        return dict(sorted(checked.items()))

    return read_map


def _step(read: Reader, value: Any, step: str) -> Any:
    try:
        return read(value)
    except MismatchError as mismatch:
        mismatch.steps.append(step)
        raise
    except ValueError as error:
        raise MismatchError(step, str(error)) from None


def _struct(value: Any, columns: tuple[_Column, ...], *, python: bool) -> dict[str, Any]:
    if python and dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if not isinstance(value, dict):
        raise scalars.unexpected("an object", value)
    if python:
        names = [name for name, _, _ in columns]
        unknown = [name for name in value if name not in names]
        if unknown:
            raise ValueError(f"unknown field {unknown[0]!r}; the schema has: {', '.join(names)}")
    row = {}
    for name, read, absent in columns:
        try:
            row[name] = read(value[name]) if name in value else absent()
        except MismatchError as mismatch:
            mismatch.steps.append(f".{name}")
            raise
        except ValueError as error:
            raise MismatchError(f".{name}", str(error)) from None
    return row


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
