"""Record values, one at a time: strict decoding, encoding, and the check of rows that a user's function returned.

Nothing is coerced but an integer to a float. A missing or null field that is not nullable breaks the schema; fields
that the schema does not name are ignored. `kernels.decode` and `kernels.encode` do the same to whole batches, and turn
to this module wherever they are in doubt: what is said here is what holds.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from everstate.topology import forms, scalars
from everstate.topology.errors import DecodeError, RecordError, SchemaError
from everstate.topology.schema import SCALAR_COLUMN, Schema

if TYPE_CHECKING:
    from everstate.topology.location import Location
    from everstate.topology.types import DataType, Field

#: How the bytes of a value are written.
FORMATS: Final = ("json", "string", "bytes")

#: Deeper JSON is refused: how deep Python reads depends on its version and on the stack.
MAX_DEPTH: Final = 256

_OPENING: Final = re.compile(r"[\[{]")
_STRINGS: Final = re.compile(r'"(?:[^"\\]|\\.)*"')

#: Makes the value of a column from what JSON or a user's function gave.
_Reader = Callable[[Any], Any]


def require_format(schema: Schema, fmt: str, *, location: Location | None = None) -> None:
    """Refuses a schema that cannot be written in a format.

    Raises:
        SchemaError: If it cannot.
    """
    if fmt not in FORMATS:
        raise SchemaError(f"unknown format {fmt!r}", location=location, hint=f"Use one of: {', '.join(FORMATS)}.")
    if fmt == "json":
        return
    type_ = schema.fields[0].type if schema.scalar else None
    if fmt == "string" and (type_ is None or type_.is_nested or type_.name == "bytes"):
        raise SchemaError(
            f"format 'string' cannot hold {schema}", location=location, hint="Use schema=str, or format json."
        )
    if fmt == "bytes" and (type_ is None or type_.name != "bytes"):
        raise SchemaError(f"format 'bytes' cannot hold {schema}", location=location, hint="Use schema=bytes.")


def decode_value(data: bytes, schema: Schema, fmt: str) -> dict[str, Any]:
    """The row of a value's bytes, with every column of the schema.

    Raises:
        DecodeError: If the bytes do not fit; the message is the reason.
    """
    try:
        if fmt == "bytes":
            return {SCALAR_COLUMN: data}
        text = _utf8(data)
        if fmt == "string":
            return {SCALAR_COLUMN: forms.from_text(text, schema.fields[0].type)}
        parsed = _parse(text)
        if schema.scalar:
            return {SCALAR_COLUMN: _reader(schema.fields[0], python=False)(parsed)}
        return _struct(parsed, _columns(schema, python=False), python=False)
    except _MismatchError as mismatch:
        raise DecodeError(mismatch.reason()) from None
    except ValueError as error:
        raise DecodeError(str(error)) from None


def encode_value(row: Mapping[str, Any], schema: Schema, fmt: str) -> bytes:
    """The bytes of a row as `decode_value` and `check_row` return it; columns it lacks are written as null."""
    if fmt == "bytes":
        return bytes(row[SCALAR_COLUMN])
    if fmt == "string":
        return forms.to_text(row[SCALAR_COLUMN], schema.fields[0].type).encode()
    written = {field.name: _written(row.get(field.name), field.type) for field in schema.fields}
    body = written[SCALAR_COLUMN] if schema.scalar else written
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def check_row(row: Any, schema: Schema) -> dict[str, Any]:
    """The row that a user's function returned, as the columns will hold it.

    A dict or an instance of a dataclass; the bare value where the schema is scalar. As strict as decoding, and fields
    that the schema does not name are refused too, since they are most likely misspelt.

    Raises:
        RecordError: If it does not fit; the message is the reason.
    """
    try:
        if schema.scalar:
            return {SCALAR_COLUMN: _reader(schema.fields[0], python=True)(row)}
        return _struct(row, _columns(schema, python=True), python=True)
    except _MismatchError as mismatch:
        raise RecordError(mismatch.reason()) from None
    except ValueError as error:
        raise RecordError(str(error)) from None


class _MismatchError(Exception):
    """A value that does not fit, with the way to it, innermost step first."""

    def __init__(self, step: str, why: str) -> None:
        self.steps = [step]
        self.why = why
        super().__init__(why)

    def reason(self) -> str:
        path = "".join(reversed(self.steps)).removeprefix(".")
        return f"field {path!r}: {self.why}"


def _utf8(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"not valid UTF-8 at byte {error.start}") from None


def _parse(text: str) -> Any:
    """The JSON value; stricter than Python's reader where that takes more than JSON."""
    if len(text) > MAX_DEPTH and len(_OPENING.findall(text)) > MAX_DEPTH and _depth(text) > MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    try:
        return _loads(text, _DECODER)
    except _LongIntegerError:
        return _loads(text, _PATIENT_DECODER)


class _ConstantError(ValueError):
    pass


class _LongIntegerError(ValueError):
    pass


def _loads(text: str, decoder: json.JSONDecoder) -> Any:
    try:
        return decoder.decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not valid JSON: {error.msg} at character {error.pos}") from None
    except _ConstantError as error:
        raise ValueError(f"not valid JSON: {error}") from None
    except ValueError:
        # Python refuses to read integers of thousands of digits, also in fields that nobody asked for.
        raise _LongIntegerError from None


def _no_constant(token: str) -> Any:
    raise _ConstantError(f"{token} is not a JSON value")


def _any_integer(digits: str) -> int | float:
    return int(digits) if len(digits) < 400 else float(digits)  # a longer one is beyond every number type


_DECODER: Final = json.JSONDecoder(parse_constant=_no_constant)
_PATIENT_DECODER: Final = json.JSONDecoder(parse_constant=_no_constant, parse_int=_any_integer)


def _depth(text: str) -> int:
    depth = deepest = 0
    for character in _STRINGS.sub("", text):
        if character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth -= 1
    return deepest


@lru_cache(maxsize=512)
def _columns(schema: Schema, *, python: bool) -> tuple[tuple[str, _Reader], ...]:
    return tuple((field.name, _reader(field, python=python)) for field in schema.fields)


@lru_cache(maxsize=2048)
def _reader(field: Field, *, python: bool) -> _Reader:
    """A reader of one field: of JSON's values, or of Python's (`python`), which has all types itself."""
    read = _type_reader(field.type, python=python)
    nullable, type_ = field.nullable, field.type

    def reader(value: Any) -> Any:
        if value is None:
            if nullable:
                return None
            raise ValueError(f"expected {type_}, it is missing or null")
        return read(value)

    return reader


def _type_reader(type_: DataType, *, python: bool) -> _Reader:
    if type_.name == "list":
        return _list_reader(type_, python=python)
    if type_.name == "map":
        return _map_reader(type_, python=python)
    if type_.name == "struct":
        columns = tuple((field.name, _reader(field, python=python)) for field in type_.fields)
        return lambda value: _struct(value, columns, python=python)
    return _scalar_reader(type_, scalars.check if python else forms.from_json)


def _scalar_reader(type_: DataType, read: Callable[[Any, DataType], Any]) -> _Reader:
    """A reader that is quick about what most values are and leaves the rest to `read`."""
    if type_.name == "text":
        return lambda value: value if type(value) is str and value.isascii() else read(value, type_)
    if type_.is_integer:
        low, high = type_.bounds
        return lambda value: value if type(value) is int and low <= value <= high else read(value, type_)
    if type_.name == "float64":
        return lambda value: value if type(value) is float and isfinite(value) else read(value, type_)
    return lambda value: read(value, type_)


def _list_reader(type_: DataType, *, python: bool) -> _Reader:
    read = _reader(type_.inner, python=python)

    def reader(value: Any) -> list[Any]:
        if not isinstance(value, list) and not (python and isinstance(value, tuple)):
            raise scalars.unexpected(type_, value)
        return [_step(read, item, f"[{place}]") for place, item in enumerate(value)]

    return reader


def _map_reader(type_: DataType, *, python: bool) -> _Reader:
    read = _reader(type_.inner, python=python)

    def reader(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise scalars.unexpected(type_, value)
        checked = {}
        for key, item in value.items():
            if not isinstance(key, str) or not _encodable(key):
                raise ValueError(f"expected a dict with text keys, got the key {scalars.shown(key)}")
            checked[key] = _step(read, item, f"[{key!r}]")
        return dict(sorted(checked.items()))

    return reader


def _step(read: _Reader, value: Any, step: str) -> Any:
    try:
        return read(value)
    except _MismatchError as mismatch:
        mismatch.steps.append(step)
        raise
    except ValueError as error:
        raise _MismatchError(step, str(error)) from None


def _struct(value: Any, columns: tuple[tuple[str, _Reader], ...], *, python: bool) -> dict[str, Any]:
    if python and dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if not isinstance(value, dict):
        raise scalars.unexpected("an object", value)
    if python:
        names = [name for name, _ in columns]
        unknown = [name for name in value if name not in names]
        if unknown:
            raise ValueError(f"unknown field {unknown[0]!r}; the schema has: {', '.join(names)}")
    row = {}
    for name, read in columns:
        try:
            row[name] = read(value.get(name))
        except _MismatchError as mismatch:
            mismatch.steps.append(f".{name}")
            raise
        except ValueError as error:
            raise _MismatchError(f".{name}", str(error)) from None
    return row


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _written(value: Any, type_: DataType) -> Any:
    """What `json.dumps` writes for a value."""
    if value is None:
        return None
    if type_.name == "list":
        return [_written(item, type_.inner.type) for item in value]
    if type_.name == "map":
        return {key: _written(item, type_.inner.type) for key, item in value.items()}
    if type_.name == "struct":
        return {field.name: _written(value.get(field.name), field.type) for field in type_.fields}
    return forms.to_json(value, type_)
