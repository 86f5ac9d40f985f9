"""Record values, one at a time: strict decoding, encoding, and the check of rows that a user's function returned.

Nothing is coerced but an integer to a float. A field that is left out gets its default, or is null; a null field that
is not nullable breaks the schema; fields that the schema does not name are ignored. `kernels.decode` and
`kernels.encode` do the same to whole batches, and turn to this module wherever they are in doubt: what is said here is
what holds.
"""

from __future__ import annotations

import json
import re
import struct
from typing import TYPE_CHECKING, Any, Final

from everstate.errors import DecodeError, RecordError, SchemaError
from everstate.errors.calls import suggestion
from everstate.schema import text_forms
from everstate.schema.column_values import MismatchError, object_reader, reader, written
from everstate.schema.schema import SCALAR_COLUMN, Schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from everstate.location import Location
    from everstate.schema.types import Field

#: How the bytes of a value are written.
FORMATS: Final = ("json", "string", "bytes", "number")

#: Numbers as the serialisers that come with Kafka write them, `LongSerializer` and the like: the highest byte first.
NUMBERS: Final = {
    name: struct.Struct(form)
    for name, form in {"int16": ">h", "int32": ">i", "int64": ">q", "float32": ">f", "float64": ">d"}.items()
}

#: Deeper JSON is refused: how deep Python reads depends on its version and on the stack.
MAX_DEPTH: Final = 256

_OPENING: Final = re.compile(r"[\[{]")
_STRINGS: Final = re.compile(r'"(?:[^"\\]|\\.)*"')


def require_format(schema: Schema, fmt: object, *, location: Location | None = None) -> None:
    """Refuses a schema that cannot be written in a format.

    Raises:
        SchemaError: If it cannot.
    """
    if not isinstance(fmt, str) or fmt not in FORMATS:
        raise SchemaError(
            f"unknown format {fmt!r}",
            location=location,
            hint=f"{suggestion(fmt, FORMATS)}Use one of: {', '.join(FORMATS)}; or es.Avro() or es.Protobuf(Message).",
        )
    if fmt == "json":
        return
    type_ = schema.fields[0].type if schema.scalar else None
    if fmt == "string" and (type_ is None or type_.is_nested or type_.name == "bytes"):
        raise SchemaError(
            f"format 'string' cannot hold {schema}", location=location, hint="Use schema=str, or format json."
        )
    if fmt == "bytes" and (type_ is None or type_.name != "bytes"):
        raise SchemaError(f"format 'bytes' cannot hold {schema}", location=location, hint="Use schema=bytes.")
    if fmt == "number" and (type_ is None or type_.name not in NUMBERS):
        raise SchemaError(
            f"format 'number' cannot hold {schema}",
            location=location,
            hint="Use schema=int or schema=float, or one of Arrow's int16, int32, float32.",
        )


def decode_value(data: bytes, schema: Schema, fmt: str) -> dict[str, Any]:
    """The row of a value's bytes, with every column of the schema.

    Raises:
        DecodeError: If the bytes do not fit; the message is the reason.
    """
    try:
        if fmt == "bytes":
            return {SCALAR_COLUMN: data}
        if fmt == "number":
            return {SCALAR_COLUMN: _number(data, schema.fields[0])}
        text = _utf8(data)
        if fmt == "string":
            return {SCALAR_COLUMN: text_forms.from_text(text, schema.fields[0].type)}
        parsed = _parse(text)
        if schema.scalar:
            return {SCALAR_COLUMN: reader(schema.fields[0], python=False)(parsed)}
        return object_reader(schema.fields, python=False)(parsed)
    except MismatchError as mismatch:
        raise DecodeError(mismatch.reason()) from None
    except ValueError as error:
        raise DecodeError(str(error)) from None


def encode_value(row: Mapping[str, Any], schema: Schema, fmt: str) -> bytes:
    """The bytes of a row as `decode_value` and `check_row` return it; columns it lacks are written as null."""
    if fmt == "bytes":
        return bytes(row[SCALAR_COLUMN])
    if fmt == "number":
        return NUMBERS[schema.fields[0].type.name].pack(row[SCALAR_COLUMN])
    if fmt == "string":
        return text_forms.to_text(row[SCALAR_COLUMN], schema.fields[0].type).encode()
    columns = {field.name: written(row.get(field.name), field.type) for field in schema.fields}
    body = columns[SCALAR_COLUMN] if schema.scalar else columns
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
            return {SCALAR_COLUMN: reader(schema.fields[0], python=True)(row)}
        return object_reader(schema.fields, python=True)(row)
    except MismatchError as mismatch:
        raise RecordError(mismatch.reason()) from None
    except ValueError as error:
        raise RecordError(str(error)) from None


def _number(data: bytes, field: Field) -> Any:
    form = NUMBERS[field.type.name]
    if len(data) != form.size:
        raise ValueError(f"expected the {form.size} bytes of {field.type.name}, there are {len(data)}")
    return form.unpack(data)[0]


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
