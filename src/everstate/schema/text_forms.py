"""The written forms of single values: their one text, and their JSON value.

The texts are shared by keys, by the `string` format and, inside JSON strings, by the types that JSON lacks. A value has
exactly one text, so that equal keys are equal bytes.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from everstate.schema.scalars import MICROSECOND, check, decimal_of, plain_decimal, shown, unexpected

if TYPE_CHECKING:
    from collections.abc import Callable
    from decimal import Decimal

    from everstate.schema.types import DataType

#: Floats that JSON has no number for, by the text that stands for them.
SPECIAL_FLOATS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]*")
_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_DECIMAL: Final = re.compile(r"-?([0-9]{1,60})(?:\.([0-9]{1,60}))?")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATETIME: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2})(:[0-9]{2})?(?:\.([0-9]{1,9}))?(Z|[+-][0-9]{2}:[0-9]{2})?"
)


def to_text(value: Any, type_: DataType) -> str:
    """The one text of a checked value."""
    if type_.is_float:
        return "NaN" if value != value else json.dumps(value + 0.0)  # noqa: PLR0124 - NaN; -0.0 + 0.0 is 0.0, its equal
    if type_.name == "bool":
        return "true" if value else "false"
    if type_.name == "datetime":
        return str(value.replace(tzinfo=None).isoformat()) + ("Z" if type_.zone else "")
    if type_.name == "date":
        return str(value.isoformat())
    if type_.name == "duration":
        return str(value // MICROSECOND)
    if type_.name == "decimal":
        return plain_decimal(value)
    if type_.name == "bytes":
        return base64.b64encode(value).decode()
    return str(value)


def from_text(text: str, type_: DataType) -> Any:
    """The checked value of a text.

    Raises:
        ValueError: If the text is not of this type; the reason does not repeat the text's column.
    """
    if type_.name == "text":
        return check(text, type_)
    try:
        value = _PARSERS["integer" if type_.is_integer else "float" if type_.is_float else type_.name](text, type_)
    except (ValueError, binascii.Error, OverflowError) as error:
        detail = f": {error}" if str(error) else ""
        raise ValueError(f"{shown(text)} is not a valid {type_}{detail}") from None
    return value if type_.name == "decimal" else check(value, type_)


def _matched(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    match = pattern.fullmatch(text)
    if match is None:
        raise ValueError
    return match


def _parse_integer(text: str, type_: DataType) -> int:
    del type_
    _matched(_INTEGER, text)
    if len(text) > 20:  # longer than any 64-bit integer; Python would refuse thousands of digits with another message
        raise ValueError("it does not fit into 64 bits")
    return int(text)


def _parse_float(text: str, type_: DataType) -> float:
    if text in SPECIAL_FLOATS:
        return SPECIAL_FLOATS[text]
    _matched(_NUMBER, text)
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"it does not fit into {type_.name}")
    return number


def _parse_bool(text: str, type_: DataType) -> bool:
    del type_
    if text not in ("true", "false"):
        raise ValueError
    return text == "true"


def _parse_bytes(text: str, type_: DataType) -> bytes:
    del type_
    data = base64.b64decode(text, validate=True)
    if base64.b64encode(data).decode() != text:  # stray bits behind the end
        raise ValueError("it is not canonical base64")
    return data


def _parse_date(text: str, type_: DataType) -> date:
    del type_
    _matched(_DATE, text)
    return date.fromisoformat(text)


def _parse_datetime(text: str, type_: DataType) -> datetime:
    day, minutes, seconds, fraction, offset = _matched(_DATETIME, text).groups()
    if fraction is not None and (seconds is None or fraction[6:].strip("0")):
        raise ValueError("it has more than microseconds" if seconds else "")
    if (offset is None) != (type_.zone is None):
        raise ValueError("it has no offset such as Z or +01:00" if offset is None else "it has an offset")
    micros = (fraction or "0")[:6].ljust(6, "0")
    offset = "+00:00" if offset == "Z" else offset or ""
    return datetime.fromisoformat(f"{day}T{minutes}{seconds or ':00'}.{micros}{offset}")


def _parse_duration(text: str, type_: DataType) -> timedelta:
    return timedelta(microseconds=_parse_integer(text, type_))


def _parse_decimal(text: str, type_: DataType) -> Decimal:
    _matched(_DECIMAL, text)
    return decimal_of(text, type_)


_PARSERS: Final[dict[str, Callable[[str, DataType], Any]]] = {
    "integer": _parse_integer,
    "float": _parse_float,
    "bool": _parse_bool,
    "bytes": _parse_bytes,
    "date": _parse_date,
    "datetime": _parse_datetime,
    "duration": _parse_duration,
    "decimal": _parse_decimal,
}


def to_json(value: Any, type_: DataType) -> Any:
    """The JSON value of a checked value."""
    if type_.is_integer or type_.name in ("text", "bool"):
        return value
    if type_.is_float and math.isfinite(value):
        return value
    text = to_text(value, type_)
    return int(text) if type_.name == "duration" else text


def from_json(value: Any, type_: DataType) -> Any:
    """The checked value of a JSON value that is not null.

    Raises:
        ValueError: If it is of another type; the text says why.
    """
    if type_.is_integer or type_.name in ("text", "bool"):
        return check(value, type_)
    if type_.is_float:
        return _float_from_json(value, type_)
    if type_.name == "duration" and isinstance(value, int) and not isinstance(value, bool):
        return from_text(str(value) if value.bit_length() < 256 else "", type_)
    if type_.name == "duration" or not isinstance(value, str):
        raise unexpected(type_, value)
    return from_text(value, type_)


def _float_from_json(value: Any, type_: DataType) -> float:
    if isinstance(value, str) and value in SPECIAL_FLOATS:
        return SPECIAL_FLOATS[value]
    number: float = check(value, type_)
    if not math.isfinite(number):  # a number such as 1e400
        raise ValueError(f"the number does not fit into {type_.name}")
    return number
