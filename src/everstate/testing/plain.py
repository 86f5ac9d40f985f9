"""Values as JSON without a schema: for records that do not fit one, which tests must be able to send."""

from __future__ import annotations

import base64
import dataclasses
import json
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any
from uuid import UUID

from everstate.errors import RecordError
from everstate.location import caller
from everstate.schema.column_values import MismatchError, reader, written
from everstate.schema.text_forms import to_text
from everstate.schema.types import DATETIME, DECIMAL, DataType

if TYPE_CHECKING:
    from everstate.schema.schema import Schema

_MICROSECOND = timedelta(microseconds=1)


def plain_json(value: Any, schema: Schema | None = None) -> bytes:
    """The JSON of a value: fields that fit a schema as it writes them, the others as they are.

    Raises:
        RecordError: If JSON has no form for something in it.
    """
    content = value if schema is None or schema.scalar else _fitted(value, schema)
    try:
        return json.dumps(content, default=_written, ensure_ascii=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise RecordError(
            f"the value cannot be written as JSON: {error}",
            location=caller(),
            hint="Send what the schema takes, or the bytes of the record as they are.",
        ) from None


def _fitted(value: Any, schema: Schema) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if not isinstance(value, dict):
        return value
    fields = {field.name: field for field in schema.fields}
    return {name: _field(part, fields[name]) if name in fields else part for name, part in value.items()}


def _field(part: Any, field: Any) -> Any:
    try:
        return written(reader(field, python=True)(part), field.type)
    except (ValueError, MismatchError):
        return part


def _written(value: Any) -> Any:
    """What stands for a value that JSON has no word for."""
    if isinstance(value, Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    if isinstance(value, timedelta):
        return value // _MICROSECOND
    return _text(value)


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return to_text(value, DATETIME if value.tzinfo else DataType("datetime", unit="us"))
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return to_text(value, DataType("decimal", precision=DECIMAL[0], scale=DECIMAL[1]))
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"there is no JSON for {type(value).__name__}")
