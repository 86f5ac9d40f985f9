"""Single values: what fits a type without coercion, and each type's one text form.

The text forms are shared by keys, by the `string` format and, inside JSON strings, by the types that JSON lacks.
A value has exactly one text, so that equal keys are equal bytes.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
import struct
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from everstate.topology.types import DataType

#: Floats that JSON has no number for, by the text that stands for them.
SPECIAL_FLOATS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]*")
_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_DECIMAL: Final = re.compile(r"-?([0-9]{1,60})(?:\.([0-9]{1,60}))?")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATETIME: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2})(:[0-9]{2})?(?:\.([0-9]{1,9}))?(Z|[+-][0-9]{2}:[0-9]{2})?"
)
_MICROSECOND: Final = timedelta(microseconds=1)
_SHOWN: Final = 60


def shown(value: object) -> str:
    """A value with its type, for messages: `text 'x'`, `integer 5`."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    kind = next((word for type_, word in _WORDS if isinstance(value, type_)), type(value).__name__)
    if isinstance(value, (list, dict)):
        return kind
    body = repr(value) if isinstance(value, (str, bytes)) else str(value)
    return f"{kind} {body}" if len(body) <= _SHOWN else f"{kind} {body[:_SHOWN]}..."


_WORDS: Final[tuple[tuple[type, str], ...]] = (
    (int, "integer"),
    (float, "float"),
    (str, "text"),
    (bytes, "bytes"),
    (datetime, "datetime"),
    (date, "date"),
    (timedelta, "duration"),
    (Decimal, "decimal"),
    (list, "a list"),
    (dict, "an object"),
)


def _expected(type_: DataType, value: object) -> ValueError:
    return ValueError(f"expected {type_}, got {shown(value)}")


def check(value: object, type_: DataType) -> Any:
    """The value as the column will hold it.

    Raises:
        ValueError: If it is of another type or out of range; the text says why.
    """
    if type_.is_integer:
        return _check_integer(value, type_)
    if type_.is_float:
        return _check_float(value, type_)
    checker = _CHECKERS.get(type_.name)
    if checker is None:
        raise _expected(type_, value)
    return checker(value, type_)


def _check_integer(value: object, type_: DataType) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _expected(type_, value)
    low, high = type_.bounds
    if not low <= value <= high:
        raise ValueError(f"{_digits(value)} does not fit into {type_.name}")
    return int(value)


def _digits(value: int) -> str:
    # Python refuses to write out integers of thousands of digits.
    return str(value) if value.bit_length() < 256 else f"an integer of {value.bit_length()} bits"


def _check_float(value: object, type_: DataType) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise _expected(type_, value)
    try:
        number = float(value)
        return number if type_.name == "float64" else float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        raise ValueError(f"the number does not fit into {type_.name}") from None


def _check_bool(value: object, type_: DataType) -> bool:
    if isinstance(value, bool):
        return value
    raise _expected(type_, value)


def _check_text(value: object, type_: DataType) -> str:
    if not isinstance(value, str):
        raise _expected(type_, value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("the text has half of a surrogate pair, which UTF-8 cannot hold") from None
    return str(value)


def _check_bytes(value: object, type_: DataType) -> bytes:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise _expected(type_, value)


def _check_date(value: object, type_: DataType) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    raise _expected(type_, value)


def _check_datetime(value: object, type_: DataType) -> datetime:
    if not isinstance(value, datetime):
        raise _expected(type_, value)
    if type_.unit == "ms" and value.microsecond % 1000:
        raise ValueError(f"{shown(value)} has more than milliseconds")
    if type_.zone is None:
        if value.tzinfo is not None:
            raise ValueError(f"{shown(value)} has a time zone")
        return value
    if value.tzinfo is None:
        raise ValueError(f"{shown(value)} has no time zone")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{shown(value)} is outside the years 1 to 9999 in UTC") from None


def _check_duration(value: object, type_: DataType) -> timedelta:
    if not isinstance(value, timedelta):
        raise _expected(type_, value)
    if type_.unit == "ms" and value.microseconds % 1000:
        raise ValueError(f"{shown(value)} has more than milliseconds")
    if not -(2**63) <= value // _MICROSECOND < 2**63:
        raise ValueError(f"{shown(value)} does not fit into 64 bits of microseconds")
    return value


def _check_decimal(value: object, type_: DataType) -> Decimal:
    if isinstance(value, int) and not isinstance(value, bool):
        value = Decimal(value)
    if not isinstance(value, Decimal):
        raise _expected(type_, value)
    if not value.is_finite() or abs(value.adjusted()) > _SHOWN:
        raise ValueError(f"{shown(value)} does not fit into {type_.precision} digits, {type_.scale} behind the point")
    return _decimal_of(format(value, "f"), type_)


_CHECKERS: Final[dict[str, Callable[[object, DataType], Any]]] = {
    "text": _check_text,
    "bool": _check_bool,
    "bytes": _check_bytes,
    "date": _check_date,
    "datetime": _check_datetime,
    "duration": _check_duration,
    "decimal": _check_decimal,
}


def to_text(value: Any, type_: DataType) -> str:  # noqa: PLR0911 - one return a type
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
        return str(value // _MICROSECOND)
    if type_.name == "decimal":
        return _plain(value)
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
    return _decimal_of(text, type_)


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


def _plain(value: Decimal) -> str:
    """A decimal without exponent, without trailing zeros behind the point, and without a negative zero."""
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _decimal_of(text: str, type_: DataType) -> Decimal:
    value = Decimal(text)
    whole, _, fraction = _plain(value).lstrip("-").partition(".")
    scale, precision = type_.scale or 0, type_.precision or 0
    if len(fraction) > scale or len(whole.lstrip("0")) > precision - scale:
        raise ValueError(f"{shown(value)} does not fit into {precision} digits, {scale} behind the point")
    return Decimal(_plain(value))
