"""Which differences are shown: the largest changes, and some by chance, the same ones each time."""

from __future__ import annotations

import hashlib
import json
import math
from typing import TYPE_CHECKING, Any, Final

from everstate.generations.compare.difference import same_value
from everstate.plan.preview import FieldChange, Sample

if TYPE_CHECKING:
    from collections.abc import Iterable

#: A key, its value on the topic, its value in the new version.
Row = tuple[bytes, bytes | None, bytes | None]

_LARGEST: Final = 3
_BY_CHANCE: Final = 2
#: To find the largest changes, values are decoded: of a table of millions every so-and-so-many-th key is looked at.
_LOOKED_AT: Final = 50_000
_LONGEST: Final = 200


def chosen(rows: Iterable[Row]) -> list[Row]:
    """Some rows to look at: those that change most, then some by chance, each group in the order of keys."""
    known = list(rows)
    known = known[:: max(1, len(known) // _LOOKED_AT)]
    largest = sorted(known, key=lambda row: (-_size(row[1], row[2]), row[0]))[:_LARGEST]
    taken = {row[0] for row in largest}
    others = sorted((row for row in known if row[0] not in taken), key=_chance)[:_BY_CHANCE]
    return [*largest, *sorted(others)]


def sample(row: Row, longest: int | None = _LONGEST) -> Sample:
    """A row for people: where both values have fields, those that differ side by side.

    Args:
        row: The row.
        longest: Characters of a text that are shown; None for all of them.

    Example:
        >>> sample((b"a", b'{"n": 1, "of": 9}', b'{"n": 2, "of": 9}')).fields
        (FieldChange(name='n', old='1', new='2'),)
    """
    key, old, new = row
    was, now = _fields(old), _fields(new)
    fields: list[FieldChange] = []
    equal = 0
    if was is not None and now is not None:
        for name in [*was, *(name for name in now if name not in was)]:
            if name in was and name in now and _same(was[name], now[name]):
                equal += 1
            else:
                fields.append(FieldChange(name, _written(was, name, longest), _written(now, name, longest)))
    return Sample(_text(key, longest) or "", _text(old, longest), _text(new, longest), tuple(fields), equal)


def every_field(old: bytes | None, new: bytes | None) -> tuple[FieldChange, ...]:
    """All fields of a value before and after, those that are equal too; none if it has no fields."""
    was, now = _fields(old) or {}, _fields(new) or {}
    names = dict.fromkeys([*was, *now])
    return tuple(FieldChange(name, _written(was, name, None), _written(now, name, None)) for name in names)


def _size(old: bytes | None, new: bytes | None) -> float:
    """How much the numbers in a value change; without an old one, or a new one, how large they are."""
    was, now = _numbers(old), _numbers(new)
    found = math.fsum(abs(now.get(name, 0.0) - was.get(name, 0.0)) for name in was.keys() | now.keys())
    return found if math.isfinite(found) else math.inf


def _numbers(value: bytes | None) -> dict[str, float]:
    fields = _fields(value)
    if fields is None:
        fields = {"": _decoded(value)}
    return {
        name: min(max(float(part), -1e300), 1e300)
        for name, part in fields.items()
        if isinstance(part, (int, float)) and not isinstance(part, bool) and _is_number(part)
    }


def _is_number(part: float) -> bool:
    try:
        return not math.isnan(part)
    except OverflowError:  # an integer that no float can hold
        return False


def _chance(row: Row) -> bytes:
    return hashlib.sha256(row[0]).digest()


def _fields(value: bytes | None) -> dict[str, Any] | None:
    known = _decoded(value)
    return known if isinstance(known, dict) else None


def _decoded(value: bytes | None) -> Any:
    if value is None:
        return None
    try:
        return json.loads(value)
    except ValueError:
        return None


def _same(one: Any, other: Any) -> bool:
    return same_value(json.dumps(one).encode(), json.dumps(other).encode())


def _written(fields: dict[str, Any], name: str, longest: int | None) -> str | None:
    if name not in fields:
        return None
    return _text(json.dumps(fields[name], ensure_ascii=False).encode(), longest)


def _text(data: bytes | None, longest: int | None) -> str | None:
    """Bytes for people; nobody reads a long value in a list of samples."""
    if data is None:
        return None
    text = data.decode(errors="backslashreplace")
    return text if longest is None or len(text) <= longest else f"{text[:longest]}..."
