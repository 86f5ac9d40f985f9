"""Streams: append-only events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from everstate.dsl import operations, stateful
from everstate.dsl.flow import Flow
from everstate.topology.location import caller

if TYPE_CHECKING:
    from collections.abc import Callable


class Stream(Flow):
    """A stream of rows. A record with a null value is dropped and counted."""

    def flat_map(self, fn: Callable[..., Any], schema: object | None = None) -> Self:
        """Put any number of rows in the place of each row. The key stays.

        Args:
            fn: row -> iterable of values.
            schema: What each value is; else the return annotation, such as `list[Item]`.
        """
        return self._with(operations.flat_mapped(self.node, fn, schema, caller()))

    def merge(self, *others: Stream) -> Self:
        """Put streams of the same key and columns together."""
        return self._with(operations.merged([self.node, *(other.node for other in others)], caller()))

    def apply(self, fn: Callable[..., Any], *, stateful: bool = False, schema: object | None = None) -> Self:
        """Put the result of a function in the place of each row's value.

        With `stateful=True` the function gets the `State` of the row's key as its second argument. Rows of one key are
        seen in order; rows without a key are dropped and counted. If the function raises, the row goes to the
        dead-letter topic and its changes to the state are undone.

        Example:
            >>> import everstate as es
            >>> app = es.Service("docs")
            >>> clicks = app.stream("clicks", key="user", schema={"page": str})
            >>> def numbered(row: dict, state: es.State) -> int:
            ...     state.set("seen", state.get("seen", 0) + 1)
            ...     return state.get("seen")
            >>> _ = clicks.apply(numbered, stateful=True).to("numbered")
            >>> driver = es.testing.Driver(app)
            >>> driver.send("clicks", "ada", {"page": "/"})
            >>> driver.send("clicks", "ada", {"page": "/buy"})
            >>> [record.value for record in driver.records("numbered")]
            [1, 2]

        Args:
            fn: row -> value, or (row, state) -> value.
            stateful: Pass the state of the row's key.
            schema: What it returns; else the return annotation.
        """
        if stateful:
            return self._stateful(fn, "apply", schema)
        return self._with(operations.mapped(self.node, fn, schema, caller()))

    def update(self, fn: Callable[..., Any], *, stateful: bool = False) -> Self:
        """Let a function change each row in place; what it returns is ignored. The columns stay the same."""
        if stateful:
            return self._stateful(fn, "update", None)
        return self._with(operations.updated(self.node, fn, caller()))

    def _stateful(self, fn: Any, mode: str, schema: object | None) -> Self:
        return self._with(stateful.stateful(self.node, fn, mode, schema, caller()))
