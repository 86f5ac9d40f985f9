"""Single values: what fits a type without coercion."""

from __future__ import annotations

import struct
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from everstate.schema.types import DataType

MICROSECOND: Final = timedelta(microseconds=1)
#: The longest duration: a round number near what 64 bits of microseconds hold.
LONGEST: Final = timedelta(days=100_000_000)
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
    if type(value).__repr__ is object.__repr__:
        return kind  # the rest would be an address in memory
    body = repr(value) if isinstance(value, (str, bytes)) else str(value)
    if " at 0x" in body and not isinstance(value, (str, bytes)):
        return kind  # a function, or what holds one: another address in each process
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


def unexpected(type_: DataType | str, value: object) -> ValueError:
    """The error that says which type was expected and what was there instead."""
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
        raise unexpected(type_, value)
    return checker(value, type_)


def _check_integer(value: object, type_: DataType) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise unexpected(type_, value)
    low, high = type_.bounds
    if not low <= value <= high:
        raise ValueError(f"{_digits(value)} does not fit into {type_.name}")
    return int(value)


def _digits(value: int) -> str:
    # Python refuses to write out integers of thousands of digits.
    return str(value) if value.bit_length() < 256 else f"an integer of {value.bit_length()} bits"


def _check_float(value: object, type_: DataType) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise unexpected(type_, value)
    try:
        number = float(value)
        return number if type_.name == "float64" else float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        raise ValueError(f"the number does not fit into {type_.name}") from None


def _check_bool(value: object, type_: DataType) -> bool:
    if isinstance(value, bool):
        return value
    raise unexpected(type_, value)


def _check_text(value: object, type_: DataType) -> str:
    if not isinstance(value, str):
        raise unexpected(type_, value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("the text has half of a surrogate pair, which UTF-8 cannot hold") from None
    return str(value)


def _check_bytes(value: object, type_: DataType) -> bytes:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise unexpected(type_, value)


def _check_date(value: object, type_: DataType) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    raise unexpected(type_, value)


def _check_datetime(value: object, type_: DataType) -> datetime:
    if not isinstance(value, datetime):
        raise unexpected(type_, value)
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
        raise unexpected(type_, value)
    if type_.unit == "ms" and value.microseconds % 1000:
        raise ValueError(f"{shown(value)} has more than milliseconds")
    if abs(value) > LONGEST:
        raise ValueError(f"{shown(value)} is longer than {LONGEST.days} days")
    return value


def _check_decimal(value: object, type_: DataType) -> Decimal:
    if isinstance(value, int) and not isinstance(value, bool):
        value = Decimal(value)
    if not isinstance(value, Decimal):
        raise unexpected(type_, value)
    if not value.is_finite() or abs(value.adjusted()) > _SHOWN:
        raise ValueError(f"{shown(value)} does not fit into {type_.precision} digits, {type_.scale} behind the point")
    return decimal_of(format(value, "f"), type_)


_CHECKERS: Final[dict[str, Callable[[object, DataType], Any]]] = {
    "text": _check_text,
    "bool": _check_bool,
    "bytes": _check_bytes,
    "date": _check_date,
    "datetime": _check_datetime,
    "duration": _check_duration,
    "decimal": _check_decimal,
}


def plain_decimal(value: Decimal) -> str:
    """A decimal without exponent, without trailing zeros behind the point, and without a negative zero."""
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def decimal_of(text: str, type_: DataType) -> Decimal:
    """The decimal of a text, if its digits fit.

    Raises:
        ValueError: If they do not.
    """
    value = Decimal(text)
    whole, _, fraction = plain_decimal(value).lstrip("-").partition(".")
    scale, precision = type_.scale or 0, type_.precision or 0
    if len(fraction) > scale or len(whole.lstrip("0")) > precision - scale:
        raise ValueError(f"{shown(value)} does not fit into {precision} digits, {scale} behind the point")
    return Decimal(plain_decimal(value))
