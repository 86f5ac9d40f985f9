"""Records as JSON lines: what `consume --json` prints and `produce` reads.

The key is text, the value is the JSON that is stored. What does not fit is marked, so that every line can be produced
again: bytes that are not text are `{"$bytes": base64}`, and a value that is text but not JSON has `"encoding": "text"`
beside it. Headers are an object; a name that comes several times has a list.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, Any, Final, NoReturn

from everstate.errors import DecodeError
from everstate.errors.texts import printable_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from everstate.log import Record

BYTES: Final = "$bytes"
FIELDS: Final = frozenset({"topic", "partition", "offset", "key", "value", "timestamp", "headers", "encoding"})

Content = dict[str, Any]


def to_line(record: Record) -> str:
    """A record as one line of JSON."""
    value, is_text = _value(record.value)
    document = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "key": _text_or_bytes(record.key),
        "value": value,
        "timestamp": record.ts,
        "headers": _headers(record.headers),
    }
    if is_text:
        document["encoding"] = "text"
    return printable_json(json.dumps(document, ensure_ascii=False))


def _text_or_bytes(data: bytes | None) -> object:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {BYTES: base64.b64encode(data).decode()}


def _value(data: bytes | None) -> tuple[object, bool]:
    """What to print for a value, and whether it is text that is not JSON."""
    if data is None:
        return None, False
    text = _text_or_bytes(data)
    if not isinstance(text, str):
        return text, False
    try:
        parsed = parse_json(text)
    except ValueError:
        return text, True
    if parsed is None or (isinstance(parsed, dict) and parsed.keys() == {BYTES}):
        # A stored JSON null is not a tombstone, and data that looks like the mark is not marked data.
        return {BYTES: base64.b64encode(data).decode()}, False
    return parsed, False


def _headers(headers: Iterable[tuple[str, bytes | None]]) -> Content:
    found: Content = {}
    for name, value in headers:
        shown = _text_or_bytes(value)
        if name not in found:
            found[name] = shown
        elif isinstance(found[name], list):
            found[name].append(shown)
        else:
            found[name] = [found[name], shown]
    return found


def parse_json(text: str) -> Any:
    """Parse strict JSON: Python's own `NaN` and `Infinity` are refused, since others could not read them.

    Raises:
        ValueError: If it is not JSON.
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} (column {error.colno})") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not allowed")


def is_record(document: object, *, keyed_otherwise: bool) -> bool:
    """Whether a line is a whole record, rather than a value.

    A line with `key` and `value` and nothing that `consume --json` would not print is a record; if the caller says
    where keys come from, it has to have a place in a topic too, so that values with such fields stay values.
    """
    if not isinstance(document, dict) or not document.keys() <= FIELDS:
        return False
    needed = {"topic", "partition", "offset", "key", "value"} if keyed_otherwise else {"key", "value"}
    return document.keys() >= needed


def from_document(document: Content) -> Content:
    """The record of a line, as a row for a records frame. Topic, partition and offset are those of the new place.

    Raises:
        DecodeError: If a field is not what `to_line` would print.
    """
    return {
        "key": key_bytes(document["key"]),
        "value": _value_bytes(document["value"], is_text=document.get("encoding") == "text"),
        "ts": _timestamp(document.get("timestamp")),
        "headers": _header_rows(document.get("headers")),
    }


def _value_bytes(value: object, *, is_text: bool) -> bytes | None:
    if value is None:
        return None
    marked = _marked_bytes(value)
    if marked is not None:
        return marked
    if is_text and isinstance(value, str):
        return value.encode()
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def key_bytes(value: object) -> bytes | None:
    """The bytes of a key that came as JSON: text as it is, numbers as text, an array for several columns."""
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    marked = _marked_bytes(value)
    if marked is not None:
        return marked
    if isinstance(value, dict):
        raise DecodeError("an object cannot be a key")
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _marked_bytes(value: object) -> bytes | None:
    if not isinstance(value, dict) or value.keys() != {BYTES}:
        return None
    try:
        return base64.b64decode(value[BYTES], validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise DecodeError(f"{BYTES} is not base64") from None


def _timestamp(value: object) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63):
        return value
    raise DecodeError(f"timestamp is {value!r}, not milliseconds")


def _header_rows(headers: object) -> list[Content] | None:
    if not headers:
        return None
    if not isinstance(headers, dict):
        raise DecodeError("headers is not an object")
    return [
        {"name": name, "value": key_bytes(value)}
        for name, shown in headers.items()
        for value in (shown if isinstance(shown, list) else [shown])
    ]
