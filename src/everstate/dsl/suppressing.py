"""What `suppress()` was given, checked, and the step that it makes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everstate.dsl.arguments import one_of, whole_number
from everstate.dsl.windows import duration
from everstate.errors import DefinitionError, UnsupportedError
from everstate.topology.nodes import Kind, Suppress

if TYPE_CHECKING:
    from everstate.dsl.table import Table
    from everstate.location import Location
    from everstate.topology.nodes import Node


def suppressed(table: Table, until: object, max_keys: object, when_full: object, location: Location | None) -> Node:
    """The table with changes held back.

    Raises:
        UnsupportedError: If it has no windows that could close.
        DefinitionError: If an argument does not fit.
    """
    one_of("when_full", when_full, ("emit", "fail"), location)
    most = None if max_keys is None else whole_number("max_keys", max_keys, location, least=0)
    if isinstance(until, str) and until == "close":
        return _when_final(table, most, location)
    if until is None and most is None:
        raise DefinitionError(
            "suppress() holds nothing back without until= or max_keys=",
            location=location,
            hint="Write suppress(until='10m'), suppress(until='close') for windows, or suppress(max_keys=1000).",
        )
    node = table.node
    return Suppress(
        inputs=(node,),
        kind=Kind.TABLE,
        key=node.key,
        schema=node.schema,
        key_in_value=node.key_in_value,
        location=location,
        until=None if until is None else duration("until", until, location, least=0),
        max_keys=most,
        when_full=str(when_full),
    )


def _when_final(table: Table, most: int | None, location: Location | None) -> Node:
    """Final results come from the windows themselves: nothing has to be held back for them."""
    if most is not None:
        raise UnsupportedError(
            "max_keys= does not go with until='close': a window that is not final has no result yet",
            location=location,
            hint="Leave max_keys= out, or hold changes back for a time: suppress(until='10m', max_keys=1000).",
        )
    produced = {output.topic: output.inputs[0] for output in table.service.outputs}
    found = table.node.when_final(produced)
    if found is None:
        raise UnsupportedError(
            "suppress(until='close') needs the results of a window over a stream",
            location=location,
            hint="Put it right after the window: group_by('user').window(es.tumbling('1h')).agg(...).suppress("
            "until='close'). Windows of tables are never final, and what another service publishes does not say when "
            "its windows close; hold that back for a time: suppress(until='10m').",
        )
    return found
