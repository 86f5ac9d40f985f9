"""From what the user wrote to a checked node: joins with tables that one side drives, or that are everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from everstate.dsl.functions import function
from everstate.dsl.joins.both_sides import JOINER, check_how, joined_values, key_text, nearness, streams_joined
from everstate.dsl.operations import foreign_keying, with_key
from everstate.dsl.windows import duration
from everstate.errors import SchemaError, UnsupportedError
from everstate.topology.nodes import (
    HistoryJoin,
    StreamGlobalJoin,
    StreamTableForeignJoin,
    StreamTableJoin,
    TableGlobalJoin,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from everstate.location import Location
    from everstate.topology.nodes import Keying, Node, StreamJoin


class Making(TypedDict):
    """How a join makes its rows, as the user said."""

    how: str
    joiner: Callable[..., Any] | None
    schema: object | None
    suffix: str


class Times(NamedTuple):
    """What the user said of time."""

    within: object | None
    grace: object | None

    def require_fitting(self, right: Node, location: Location | None) -> None:
        """Refuse what is for two streams, or for a table that knows what it was before."""
        if self.within is not None:
            raise UnsupportedError(
                "within= is for a join of two streams, and this is a table",
                location=location,
                hint="Leave it out: each row meets the row that the table has when it arrives.",
            )
        if self.grace is not None and right.versions is None:
            raise UnsupportedError(
                "grace= waits for values of the row's own time, and this table only knows its latest values",
                location=location,
                hint="Read it with its history, app.table('topic', key='id', schema=..., history='1d'), and join it "
                "directly: what a step makes of it has no earlier values.",
            )


def with_stream(
    left: Node, right: Node, on: object | None, times: Times, making: Making, location: Location | None
) -> StreamJoin:
    """Rows of two streams that lie near each other in time."""
    if on is not None:
        raise UnsupportedError(
            "on= is for a join with a table; two streams are joined on their keys",
            location=location,
            hint="Give both streams the same key first: rekey('column').",
        )
    near = nearness(times.within, times.grace, location)
    return streams_joined(left, right, near, **making, location=location)


def with_table(
    left: Node, right: Node, on: object | None, times: Times, making: Making, location: Location | None
) -> StreamTableJoin | StreamTableForeignJoin | HistoryJoin:
    """Rows of a stream with the row that a table has when they arrive, or had at their time if it knows that."""
    times.require_fitting(right, location)
    if right.versions is not None:
        records, history = right.versions
        grace = duration("grace", "0s" if times.grace is None else times.grace, location, least=0)
        keying = _reference(left, right, on, location)
        return HistoryJoin(**_parts(left, records, making, location), keying=keying, history=history, grace=grace)
    given = _parts(left, right, making, location)
    if on is not None:
        return StreamTableForeignJoin(**given, keying=_reference(left, right, on, location))
    if (left.key.dtypes, left.key.form) != (right.key.dtypes, right.key.form):
        raise SchemaError(
            f"the keys differ: {key_text(left)} and {key_text(right)}",
            location=location,
            hint="Say which column of the stream has the table's key: join(table, on='column')",
        )
    return StreamTableJoin(**given)


def stream_with_global(
    left: Node, right: Node, on: object | None, times: Times, making: Making, location: Location | None
) -> StreamGlobalJoin:
    """Rows of a stream with the row that a global table has when they arrive."""
    times.require_fitting(right, location)
    return StreamGlobalJoin(**_parts(left, right, making, location), keying=_reference(left, right, on, location))


def table_with_global(
    left: Node, right: Node, on: object | None, making: Making, location: Location | None
) -> TableGlobalJoin:
    """Rows of a table with those of a global table."""
    return TableGlobalJoin(**_parts(left, right, making, location), keying=_reference(left, right, on, location))


def _parts(left: Node, right: Node, making: Making, location: Location | None) -> Mapping[str, Any]:
    """What these joins have in common."""
    check_how(making["how"], ("inner", "left"), location)
    joiner = making["joiner"]
    values, renamed = joined_values(left, right, joiner, making["schema"], making["suffix"], location)
    return {
        "inputs": (left, right),
        "kind": left.kind,
        "key": left.key,
        "schema": with_key(left.key, values),
        "location": location,
        "how": making["how"],
        "joiner": None if joiner is None else function(joiner, JOINER, location),
        "renamed": renamed,
    }


def _reference(left: Node, right: Node, on: object | None, location: Location | None) -> Keying:
    """How a left row says which right row it belongs to: by its own key if nothing is said."""
    by = foreign_keying(left, list(left.key.names) if on is None else on, right.key, location)
    if (by.key.dtypes, by.key.form) != (right.key.dtypes, right.key.form):
        found = ", ".join(map(str, by.key.dtypes))
        raise SchemaError(
            f"{'the key' if on is None else 'on='} gives {found}, but the table's key is {key_text(right)}",
            location=location,
            hint="Name columns of the same types, in the order of that key, or cast them: on=col('customer').cast(str)",
        )
    return by
