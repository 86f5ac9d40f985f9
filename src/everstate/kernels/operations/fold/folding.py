"""The user's init, add and remove, called so that a call that fails leaves the aggregate as it was."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from everstate.errors import RecordError
from everstate.kernels.functions import reason
from everstate.schema.record_values import check_row
from everstate.schema.schema import SCALAR_COLUMN

if TYPE_CHECKING:
    from everstate.topology.functions import Function
    from everstate.topology.nodes import Fold


@dataclass
class Group:
    """A group while a batch is applied.

    Attributes:
        value: Its aggregate, as a checked row of the node's value columns; None if there is none.
        count: How many contributions count.
    """

    value: dict[str, Any] | None
    count: int


class RefusedError(Exception):
    """A call raised or gave a value that does not fit; the text is the reason for the dead letter."""


class Folding:
    """Calls the functions of one node.

    Between calls an aggregate is a row of the node's value columns, checked; None means that there is none. A function
    sees a dict, or the bare value where the schema is scalar; in a reduce also the group's key columns, so that both of
    its arguments look alike. It gets copies, so what it changes before it raises has no effect.

    Args:
        node: The node.
    """

    def __init__(self, node: Fold) -> None:
        self._node = node
        self._schema = node.values
        self._whole_rows = node.init is None and not node.schema.scalar
        self._nested = any(field.type.is_nested for field in self._schema.fields)

    def added(self, aggregate: dict[str, Any] | None, row: Any, key: dict[str, Any]) -> dict[str, Any] | None:
        """The aggregate with a row.

        Args:
            aggregate: None if the group has none yet.
            row: The row as the function sees it.
            key: The group's key columns.

        Raises:
            RefusedError: A function raised, or its result does not fit.
        """
        if aggregate is not None:
            return self._called(self._node.add, self._shown(aggregate, key), row)
        if self._node.init is None:
            if self._schema.scalar:
                return {SCALAR_COLUMN: row}
            return {name: row[name] for name in self._schema.names}
        return self._called(self._node.add, self._start(self._node.init), row)

    def removed(self, aggregate: dict[str, Any] | None, row: Any, key: dict[str, Any]) -> dict[str, Any] | None:
        """The aggregate without a row; what is not there stays so. Arguments and errors as for `added`."""
        if aggregate is None or self._node.remove is None:
            return aggregate
        return self._called(self._node.remove, self._shown(aggregate, key), row)

    def joined(self, merge: Function, sessions: list[dict[str, Any]], row: Any) -> dict[str, Any] | None:
        """What a row makes of the sessions that it brings together: they are merged into a new one, then it is added.

        Args:
            merge: (aggregate, aggregate) -> aggregate.
            sessions: The aggregates, in the order of their sessions.
            row: The row as the function sees it.

        Raises:
            RefusedError: As for `added`.
        """
        if self._node.init is None or not sessions:
            return self.added(None, row, {})
        whole = self._start(self._node.init)
        for session in sessions:
            found = self._called(merge, whole, self._shown(session, {}))
            whole = self._start(self._node.init) if found is None else self._shown(found, {})
        return self._called(self._node.add, whole, row)

    def _start(self, init: Function) -> Any:
        try:
            return init.call()
        except Exception as error:  # noqa: BLE001 - whatever the user's code raises
            raise RefusedError(reason(error, init)) from None

    def _called(self, fn: Function, aggregate: Any, row: Any) -> dict[str, Any] | None:
        try:
            result = fn.call(aggregate, row)
        except Exception as error:  # noqa: BLE001 - whatever the user's code raises
            raise RefusedError(reason(error, fn)) from None
        if result is None:
            return None
        if self._whole_rows and isinstance(result, dict):
            result = {name: value for name, value in result.items() if name not in self._node.key.names}
        try:
            return check_row(result, self._schema)
        except RecordError as error:
            where = f" ({fn.location} in {fn.name})" if fn.location else f" (in {fn.name})"
            raise RefusedError(f"wrong result: {error.message}{where}") from None

    def _shown(self, aggregate: dict[str, Any], key: dict[str, Any]) -> Any:
        own = copy.deepcopy(aggregate) if self._nested else dict(aggregate)
        if self._schema.scalar:
            return own[SCALAR_COLUMN]
        return {**key, **own} if self._whole_rows else own
