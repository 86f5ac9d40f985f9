"""From what the user wrote to a checked node: joins that both sides drive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from everstate.dsl.arguments import shown
from everstate.dsl.functions import function, result_schema
from everstate.dsl.operations import relabelled, with_key
from everstate.dsl.windows import duration
from everstate.errors import DefinitionError, NameClashError, SchemaError, UnsupportedError
from everstate.errors.calls import suggestion
from everstate.schema.schema import Schema
from everstate.topology.nodes import ForeignJoin, Join, Keying, Kind, Node, StreamJoin

if TYPE_CHECKING:
    from collections.abc import Callable

    from everstate.location import Location

#: How a join calls the function that puts both sides together.
JOINER: Final = "joiner=(left, right)"


def joined(
    left: Node,
    right: Node,
    *,
    how: str,
    joiner: Callable[..., Any] | None,
    schema: object | None,
    suffix: str,
    location: Location | None,
) -> Join:
    """A table-table join on the key."""
    cure = "Join a column with the other table's key: join(other, on='column'), or rekey() one side."
    _check_sides(left, right, how, cure, location)
    values, renamed = joined_values(left, right, joiner, schema, suffix, location)
    return Join(
        inputs=(left, right),
        kind=Kind.TABLE,
        key=left.key,
        schema=with_key(left.key, values),
        location=location,
        how=how,
        joiner=None if joiner is None else function(joiner, JOINER, location),
        renamed=renamed,
    )


def streams_joined(
    left: Node,
    right: Node,
    times: dict[str, str],
    *,
    how: str,
    joiner: Callable[..., Any] | None,
    schema: object | None,
    suffix: str,
    location: Location | None,
) -> StreamJoin:
    """A stream-stream join on the key, of rows that lie near each other in time."""
    _check_sides(left, right, how, "Give both streams the same key first: rekey('column').", location)
    values, renamed = joined_values(left, right, joiner, schema, suffix, location)
    return StreamJoin(
        inputs=(left, right),
        kind=Kind.STREAM,
        key=left.key,
        schema=with_key(left.key, values),
        location=location,
        how=how,
        joiner=None if joiner is None else function(joiner, JOINER, location),
        renamed=renamed,
        before=times["before"],
        after=times["after"],
        grace=times["grace"],
    )


def _check_sides(left: Node, right: Node, how: str, cure: str, location: Location | None) -> None:
    """Both sides of a join on the key have keys of the same types."""
    check_how(how, ("inner", "left", "outer"), location)
    if (left.key.dtypes, left.key.form) != (right.key.dtypes, right.key.form):
        raise SchemaError(
            f"the keys differ: {key_text(left)} and {key_text(right)}",
            location=location,
            hint=cure,
        )


def nearness(within: object, grace: object, location: Location | None) -> dict[str, str]:
    """How far apart the rows of a pair may be, and how long one is waited for after that."""
    if within is None:
        raise DefinitionError(
            "a join of two streams needs within=: how far apart in time the rows of a pair may be",
            location=location,
            hint="Write within='1h' for both directions, or within=('0s', '1h'): how much earlier and how much later.",
        )
    bounds = tuple(within) if isinstance(within, (list, tuple)) else (within, within)
    if len(bounds) != len(("before", "after")):
        raise DefinitionError(
            f"within={shown(within)} is neither one duration nor two",
            location=location,
            hint="Write within='1h' for both directions, or within=('0s', '1h'): how much earlier and how much later.",
        )
    before, after = (duration("within", bound, location, least=0) for bound in bounds)
    waiting = duration("grace", "0s" if grace is None else grace, location, least=0)
    return {"before": before, "after": after, "grace": waiting}


def foreign_joined(
    left: Node,
    right: Node,
    *,
    on: Keying,
    how: str,
    joiner: Callable[..., Any] | None,
    schema: object | None,
    suffix: str,
    location: Location | None,
) -> ForeignJoin:
    """A table-table join of the left rows' `on` with the right table's key."""
    check_how(how, ("inner", "left"), location)
    if (on.key.dtypes, on.key.form) != (right.key.dtypes, right.key.form):
        found = ", ".join(map(str, on.key.dtypes))
        raise SchemaError(
            f"on= gives {found}, but the right table's key is {key_text(right)}",
            location=location,
            hint="Name columns of the same types, in the order of that key, or cast them: on=col('customer').cast(str)",
        )
    values, renamed = joined_values(left, right, joiner, schema, suffix, location)
    return ForeignJoin(
        inputs=(left, right),
        kind=Kind.TABLE,
        key=left.key,
        schema=with_key(left.key, values),
        location=location,
        how=how,
        keying=on,
        joiner=None if joiner is None else function(joiner, JOINER, location),
        renamed=renamed,
    )


def joined_values(
    left: Node,
    right: Node,
    joiner: Callable[..., Any] | None,
    schema: object | None,
    suffix: str,
    location: Location | None,
) -> tuple[Schema, tuple[tuple[str, str], ...]]:
    """The columns of a join's values; without a joiner, what the right ones are called."""
    if joiner is not None:
        function(joiner, JOINER, location)
        return result_schema(joiner, schema, location), ()
    if schema is not None:
        raise UnsupportedError(
            "schema= says what a joiner returns, and there is none",
            location=location,
            hint="Pass joiner=f with it, or leave it out and select() from the join.",
        )
    if not isinstance(suffix, str):
        raise SchemaError(f"suffix={shown(suffix)} is not text", location=location, hint="suffix='_right'")
    taken, renamed = list(left.schema.names), []
    for name in right.values.names:
        new = name + suffix if name in taken else name
        if new in taken:
            raise NameClashError(
                f"the join has two columns named {new!r}", location=location, hint="Pass a different suffix=."
            )
        taken.append(new)
        renamed.append((name, new))
    left_values = relabelled(left.schema, {name: name for name in left.values.names}, location)
    right_values = relabelled(right.schema, dict(renamed), location)
    return Schema(left_values.fields + right_values.fields), tuple(renamed)


def check_how(how: str, allowed: tuple[str, ...], location: Location | None) -> None:
    """Refuse a kind of join that is not there."""
    if how not in allowed:
        raise UnsupportedError(
            f"how={shown(how)} is not one of {', '.join(allowed)}",
            location=location,
            hint=f"{suggestion(how, allowed)}Write how={allowed[0]!r}, for instance.",
        )


def key_text(node: Node) -> str:
    """A key with its types, for people."""
    columns = ", ".join(f"{name} {dtype}" for name, dtype in zip(node.key.names, node.key.dtypes, strict=True))
    return columns if node.key.form == "text" else f"{columns} written as a {node.key.form}"
