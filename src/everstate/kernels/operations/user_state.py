"""The state that a user's function keeps for each key, and how it is written.

Values are what JSON has, plus bytes, dates, datetimes and decimals; never pickled, so that state can be read by any
version of any program. They are copied when they go in and when they come out: a list got from the state can be changed
freely, and the state changes only with `set`. Dicts keep their order.

Written as JSON. What JSON lacks is an object with one field that begins with `$`, such as `{"$decimal": "1.50"}`; a
user's dict with such a field is wrapped as `{"$dict": ...}`.
"""

from __future__ import annotations

import base64
import json
import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from everstate.errors import StateValueError

if TYPE_CHECKING:
    from collections.abc import Callable

#: Deeper values are refused; a value that holds itself is found this way too.
MAX_DEPTH: Final = 64
#: Larger integers are refused, since Python does not read numbers of thousands of digits.
MAX_BITS: Final = 8192

_SUPPORTED: Final = (
    "State holds None, bool, int, float, str, bytes, date, datetime, Decimal, and lists and dicts of these."
)
_PLAIN: Final = frozenset({type(None), bool, int, float, str, bytes, date, Decimal})
_MISSING: Final = object()


class State:
    """What a stateful function remembers for the key of the row it is called with.

    It can be used only while the function runs, and holds nothing of other keys. If the function raises, its changes
    are undone.

    Example:
        >>> def running_total(row, state):
        ...     total = state.get("total", 0) + row["amount"]
        ...     state.set("total", total)
        ...     return {"total": total}
        >>> held = Held(b"")
        >>> with held.opened() as state:
        ...     running_total({"amount": 5}, state), running_total({"amount": 2}, state)
        ({'total': 5}, {'total': 7})
    """

    __slots__ = ("_held",)

    def __init__(self, held: Held) -> None:
        self._held = held

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key, as a copy.

        Args:
            key: The name under which it was set.
            default: What to return if there is none.
        """
        value = self._values(key).get(key, _MISSING)
        return default if value is _MISSING else copied(value)

    def set(self, key: str, value: Any) -> None:
        """Remember a copy of a value under a key.

        Raises:
            StateValueError: If the value is of a type that cannot be stored.
        """
        values = self._values(key)
        kept = storable(value, f"state.set({key!r})")
        self._journal(key, values)
        values[key] = kept

    def exists(self, key: str) -> bool:
        """Whether there is a value under a key."""
        return key in self._values(key)

    def delete(self, key: str) -> None:
        """Forget the value under a key; nothing happens if there is none."""
        values = self._values(key)
        if key in values:
            self._journal(key, values)
            del values[key]

    def __repr__(self) -> str:
        return f"State({self._held.values})" if self._held.current is self else "State(closed)"

    def _values(self, key: object) -> dict[str, Any]:
        if self._held.current is not self:
            raise StateValueError(
                "this state belongs to a row that has been processed",
                hint="Use the state that the function is called with; do not keep it.",
            )
        if type(key) is not str:
            raise StateValueError(f"a key of the state must be str, not {_name(key)}", hint="Use str(key).")
        return self._held.values

    def _journal(self, key: str, values: dict[str, Any]) -> None:
        self._held.journal.append((key, values.get(key, _MISSING)))


class Held:
    """The state of one key during one micro-batch.

    Args:
        blob: As it is stored; empty if there is none.
    """

    __slots__ = ("_blob", "_values", "current", "journal", "written")

    def __init__(self, blob: bytes) -> None:
        self._blob = blob
        self._values: dict[str, Any] | None = None
        self.current: State | None = None
        self.journal: list[tuple[str, Any]] = []
        self.written = False

    @property
    def values(self) -> dict[str, Any]:
        """The values by key; decoded when they are first asked for."""
        if self._values is None:
            self._values = decode(self._blob)
        return self._values

    def opened(self) -> Held:
        """For a `with` statement: the state of one call, undone if the call raises."""
        return self

    def __enter__(self) -> State:
        self.journal.clear()
        self.current = State(self)
        return self.current

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.current = None
        if kind is None:
            self.written = self.written or bool(self.journal)
            return
        for key, value in reversed(self.journal):
            if value is _MISSING:
                self.values.pop(key, None)
            else:
                self.values[key] = value

    def blob(self) -> bytes:
        """As it is to be stored; empty if nothing is left."""
        return encode(self.values)


def checked(values: Any, where: str) -> dict[str, Any]:
    """A whole state that did not come by way of `set`, as a copy that can be written.

    Raises:
        StateValueError: If it is not a dict of what state holds.
    """
    if type(values) is not dict:
        raise StateValueError(f"{where}: the state of a key is a dict, not {_name(values)}", hint="Return a dict.")
    found: dict[str, Any] = storable(values, where)
    return found


def encode(values: dict[str, Any]) -> bytes:
    """The bytes of a key's state: equal states are equal bytes, whatever the order in which they were set."""
    if not values:
        return b""
    written = {key: _written(values[key]) for key in sorted(values)}
    return json.dumps(written, separators=(",", ":"), allow_nan=False).encode()


def decode(blob: bytes) -> dict[str, Any]:
    """The state that `encode` wrote."""
    if not blob:
        return {}
    return {key: _read(value) for key, value in json.loads(blob).items()}


def storable(value: Any, where: str, depth: int = 0) -> Any:
    """A copy that holds only what can be written, in the form in which it will be read back."""
    kind = type(value)
    if kind is int and value.bit_length() > MAX_BITS:
        raise StateValueError(f"{where}: an integer of {value.bit_length()} bits cannot be stored")
    if kind in _PLAIN:
        return value
    if depth >= MAX_DEPTH:
        raise StateValueError(f"{where}: nested deeper than {MAX_DEPTH} levels, or holding itself")
    if kind is list:
        return [storable(item, f"{where}[{place}]", depth + 1) for place, item in enumerate(value)]
    if kind is dict:
        for key in value:
            if type(key) is not str:
                raise StateValueError(f"{where}: a dict with a key of type {_name(key)}", hint="Use str keys.")
        return {key: storable(item, f"{where}[{key!r}]", depth + 1) for key, item in value.items()}
    if kind is datetime:
        return _fixed(value)
    raise StateValueError(f"{where}: a value of type {_name(value)} cannot be stored", hint=_SUPPORTED)


def _fixed(value: datetime) -> datetime:
    """A time zone is kept as its offset at that time, since that is what can be written."""
    offset = value.utcoffset()
    zone = None if offset is None else timezone(offset) if offset != timedelta(0) else UTC
    return value.replace(tzinfo=zone, fold=0)


def copied(value: Any) -> Any:
    """A copy that can be changed freely."""
    if type(value) is list:
        return [copied(item) for item in value]
    if type(value) is dict:
        return {key: copied(item) for key, item in value.items()}
    return value


def _written(value: Any) -> Any:
    """What `json.dumps` writes for a checked value."""
    kind = type(value)
    if kind is list:
        return [_written(item) for item in value]
    if kind is dict:
        fields = {key: _written(item) for key, item in value.items()}
        return {"$dict": fields} if any(key.startswith("$") for key in fields) else fields
    if kind is bytes:
        return {"$bytes": base64.b64encode(value).decode()}
    if kind is datetime or kind is date:
        return {f"${kind.__name__}": value.isoformat()}
    if kind is Decimal:
        return {"$decimal": str(value)}
    if kind is float and not math.isfinite(value):
        return {"$float": str(value)}
    return value


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return [_read(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((tag, content),) = value.items()
        if tag in _READERS:
            return _READERS[tag](content)
    return _read_fields(value)


def _read_fields(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: _read(item) for key, item in fields.items()}


_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "$dict": _read_fields,
    "$bytes": base64.b64decode,
    "$datetime": datetime.fromisoformat,
    "$date": date.fromisoformat,
    "$decimal": Decimal,
    "$float": float,
}


def _name(value: object) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
