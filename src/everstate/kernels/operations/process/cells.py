"""The named states of a processor, as its function sees them: a value, a list, a map.

Values are checked against the declared type when they are set, copied when they go in and when they come out, and seen
as long as the stream time of the row that asks is below that of the row which wrote them plus their lifetime.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from everstate.errors import RecordError, StateValueError
from everstate.kernels.operations.process.held import Written
from everstate.kernels.operations.user_state import copied, storable
from everstate.schema.record_values import check_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from everstate.kernels.operations.process.context import Context
    from everstate.kernels.operations.process.held import Held
    from everstate.topology.nodes import KeptState


class _Cell:
    """What the states have in common.

    Args:
        context: Of the call.
        state: Which state.
    """

    __slots__ = ("_context", "_state")

    def __init__(self, context: Context, state: KeptState) -> None:
        self._context = context
        self._state = state

    def _forget(self) -> None:
        held, name = self._held, self._state.stored_as
        if name in held.cells:
            held.put(name, None)

    @property
    def _held(self) -> Held:
        return self._context._open()  # noqa: SLF001 - the context's own parts

    def _seen(self, part: Written) -> bool:
        life = self._state.ttl_ms
        return life is None or self._context.stream_time < part.st + life

    def _new(self, value: Any, call: str) -> Written:
        """A value as it is stored; refused if it does not have the declared type."""
        where, schema = f"ctx.{self._state.name}.{call}", self._state.schema
        try:
            row = check_row(value, schema)
        except RecordError as error:
            raise StateValueError(f"{where}: {error.message}", hint=f"It was declared as {schema}.") from None
        return Written(storable(row["value"] if schema.scalar else row, where), self._context.stream_time)


class Value(_Cell):
    """One value."""

    __slots__ = ()

    def get(self, default: Any = None) -> Any:
        """The value, as a copy; `default` if there is none, or none that is still seen."""
        part = self._held.cells.get(self._state.stored_as)
        return copied(part.value) if part is not None and self._seen(part) else default

    def set(self, value: Any) -> None:
        """Remember a copy of a value.

        Raises:
            StateValueError: If it does not have the declared type.
        """
        self._held.put(self._state.stored_as, self._new(value, "set()"))

    def delete(self) -> None:
        """Forget the value; nothing happens if there is none."""
        self._forget()

    def exists(self) -> bool:
        """Whether there is a value."""
        part = self._held.cells.get(self._state.stored_as)
        return part is not None and self._seen(part)


class ListOf(_Cell):
    """A list of values; each item has its own lifetime."""

    __slots__ = ()

    def get(self) -> list[Any]:
        """The items, as copies, in the order in which they were added."""
        return [copied(part.value) for part in self._parts() if self._seen(part)]

    def append(self, value: Any) -> None:
        """Add a copy of a value at the end.

        Raises:
            StateValueError: If it does not have the declared type.
        """
        held, name, part = self._held, self._state.stored_as, self._new(value, "append()")
        cell = held.cells.get(name)
        if cell is None:
            held.put(name, [part])
        else:
            cell.append(part)
            held.undoable(cell.pop)

    def extend(self, values: Iterable[Any]) -> None:
        """Add several."""
        for value in values:
            self.append(value)

    def set(self, values: Iterable[Any]) -> None:
        """Put these values in the place of all items."""
        parts = [self._new(value, "set()") for value in values]
        self._held.put(self._state.stored_as, parts or None)

    def clear(self) -> None:
        """Forget all items."""
        self._forget()

    def exists(self) -> bool:
        """Whether there are any items."""
        return any(map(self._seen, self._parts()))

    def __len__(self) -> int:
        return sum(map(self._seen, self._parts()))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.get())

    def _parts(self) -> list[Written]:
        found: list[Written] = self._held.cells.get(self._state.stored_as, [])
        return found


class MapOf(_Cell):
    """Values by text; each entry has its own lifetime. Entries come in the order of their texts."""

    __slots__ = ()

    def get(self, key: str, default: Any = None) -> Any:
        """The value under a text, as a copy; `default` if there is none."""
        part = self._parts().get(self._text(key))
        return copied(part.value) if part is not None and self._seen(part) else default

    def set(self, key: str, value: Any) -> None:
        """Remember a copy of a value under a text.

        Raises:
            StateValueError: If it does not have the declared type, or the key is no text.
        """
        self._change(self._text(key), self._new(value, f"set({key!r})"))

    def update(self, values: Mapping[str, Any]) -> None:
        """Set several."""
        for key, value in values.items():
            self.set(key, value)

    def exists(self, key: str) -> bool:
        """Whether there is a value under a text."""
        part = self._parts().get(self._text(key))
        return part is not None and self._seen(part)

    def delete(self, key: str) -> None:
        """Forget the value under a text; nothing happens if there is none."""
        if self._text(key) in self._parts():
            self._change(key, None)

    def clear(self) -> None:
        """Forget all entries."""
        self._forget()

    def items(self) -> list[tuple[str, Any]]:
        """All entries, as copies."""
        return [(key, copied(part.value)) for key, part in sorted(self._parts().items()) if self._seen(part)]

    def keys(self) -> list[str]:
        """The texts of all entries."""
        return [key for key, part in sorted(self._parts().items()) if self._seen(part)]

    def values(self) -> list[Any]:
        """The values of all entries, as copies."""
        return [value for _, value in self.items()]

    def __contains__(self, key: str) -> bool:
        return self.exists(key)

    def __len__(self) -> int:
        return sum(map(self._seen, self._parts().values()))

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def _parts(self) -> dict[str, Written]:
        found: dict[str, Written] = self._held.cells.get(self._state.stored_as, {})
        return found

    def _text(self, key: object) -> str:
        if type(key) is not str:
            raise StateValueError(
                f"ctx.{self._state.name}: a key of a map is str, not {type(key).__name__}", hint="Use str(key)."
            )
        return key

    def _change(self, key: str, part: Written | None) -> None:
        held, name = self._held, self._state.stored_as
        cell = held.cells.get(name)
        if cell is None:
            held.put(name, {key: part})
            return
        before = cell.get(key)
        held.undoable(lambda: _place(cell, key, before))
        _place(cell, key, part)


def _place(cell: dict[str, Written], key: str, part: Written | None) -> None:
    if part is None:
        cell.pop(key, None)
    else:
        cell[key] = part


#: What a state of a shape is, for the function.
HANDLES: Final[dict[str, type[_Cell]]] = {"value": Value, "list": ListOf, "map": MapOf}
