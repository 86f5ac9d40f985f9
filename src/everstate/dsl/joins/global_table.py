"""Global tables: every shard sees the whole table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everstate.dsl.absent import Guiding
from everstate.errors.calls import explained_class

if TYPE_CHECKING:
    from everstate.dsl.service import Service
    from everstate.schema.schema import Schema
    from everstate.topology.nodes import Source


@explained_class
class GlobalTable(Guiding):
    """A table that every shard of an output holds in full, to join with: `stream.join(people, on="customer")`.

    It can only be joined. To filter or aggregate first, write an ordinary table, and read its topic as a global table.
    """

    def __init__(self, service: Service, node: Source) -> None:
        self.service = service
        self.node = node

    @property
    def schema(self) -> Schema:
        """The columns, key columns first."""
        return self.node.schema

    def __repr__(self) -> str:
        return f"GlobalTable {self.node.topic!r} of service {self.service.name}, key {', '.join(self.node.key.names)}"

    def __bool__(self) -> bool:
        return True

    def _columns(self) -> tuple[str, ...]:
        return self.__dict__["node"].schema.names if "node" in self.__dict__ else ()
