"""From what the user wrote to a checked node: the operations that keep state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from everstate.dsl.arguments import one_of, shown
from everstate.dsl.expressions import as_expression, resolve, resolve_one
from everstate.dsl.functions import function, result_schema
from everstate.dsl.operations import foreign_keying, with_key
from everstate.dsl.windows import duration
from everstate.errors import NameClashError, SchemaError, UnsupportedError
from everstate.schema.schema import Schema
from everstate.topology.aggregates import Leaves, leaf_dtype
from everstate.topology.expressions.python_text import python_text
from everstate.topology.nodes import (
    Aggregate,
    Dedup,
    Expire,
    Fold,
    Keying,
    Kind,
    Node,
    Stateful,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from everstate.location import Location

#: What a step may go by.
CLOCKS: Final = ("event", "wall")


def aggregated(
    node: Node, by: Keying, parts: Sequence[pl.Expr], named: Mapping[str, pl.Expr], location: Location | None
) -> Aggregate:
    """`group_by().agg()`: a table with the group as its key."""
    leaves = Leaves(location)
    results: list[tuple[str, pl.Expr]] = []
    for name, expression in [*((_output_name(e, location), e) for e in parts), *named.items()]:
        if name in by.key.names or name in [other for other, _ in results]:
            raise NameClashError(
                f"agg() has two columns named {name!r}",
                location=location,
                hint="Give each its own name, different from the group's: agg(total=...)",
            )
        results.append((name, leaves.take_apart(as_expression(expression, location)).alias(name)))
    if not results:
        raise SchemaError("agg() needs at least one aggregate", location=location, hint="agg(orders=es.count())")
    columns: dict[str, pl.DataType] = {}
    for leaf in leaves.leaves:
        dtype = None if leaf.input is None else resolve_one(leaf.input, node.schema.polars, location)
        by_dtype = None if leaf.by is None else resolve_one(leaf.by, node.schema.polars, location)
        columns[leaf.column] = leaf_dtype(leaf, dtype, by_dtype, location=location)
    found = resolve([expression for _, expression in results], columns, location)
    values = Schema.of_polars(dict(found), location=location)
    return Aggregate(
        inputs=(node,),
        kind=Kind.TABLE,
        key=by.key,
        schema=with_key(by.key, values),
        location=location,
        keying=by,
        leaves=tuple(leaves.leaves),
        results=tuple(results),
    )


def folded(
    node: Node,
    by: Keying,
    functions: tuple[Callable[..., Any] | None, Callable[..., Any], Callable[..., Any] | None],
    schema: object | None,
    location: Location | None,
    migrate: Callable[..., Any] | None = None,
) -> Fold:
    """`group_by().reduce()` (no `init`; keeps the schema) and `group_by().aggregate()`."""
    init, add, remove = functions
    adding = function(add, "add=(result, row)", location)
    removing = None if remove is None else function(remove, "remove=(result, row)", location)
    if init is None:
        values = node.schema.without(by.key.names) if not node.schema.scalar else node.values
    else:
        values = result_schema(add, schema, location)
    if not values.without(by.key.names).names:
        raise NameClashError(
            f"the result has no columns besides the group, {', '.join(by.key.names)}",
            location=location,
            hint="Give the group another name: group_by(word='value').",
        )
    return Fold(
        inputs=(node,),
        kind=Kind.TABLE,
        key=by.key,
        schema=with_key(by.key, values),
        location=location,
        keying=by,
        init=None if init is None else function(init, "init=()", location),
        add=adding,
        remove=removing,
        migrate=None if migrate is None else function(migrate, "migrate=(result)", location),
    )


def stateful(
    node: Node,
    fn: Callable[..., Any],
    mode: str,
    schema: object | None,
    location: Location | None,
    migrate: Callable[..., Any] | None = None,
) -> Stateful:
    """`apply`, `filter` and `update` with `stateful=True`."""
    if node.kind is Kind.TABLE:
        raise UnsupportedError(
            f"{mode}(stateful=True) works on streams, but this is a table",
            location=location,
            hint="Its rows may be corrected later; use group_by(...).aggregate(init, add, remove), or app.stream().",
        )
    if mode == "update" and node.schema.scalar:
        raise UnsupportedError("a scalar value cannot be changed in place", location=location, hint="Use apply(fn).")
    checked = function(fn, f"{mode}(row, state)", location)
    result = with_key(node.key, result_schema(fn, schema, location)) if mode == "apply" else node.schema
    return Stateful(
        inputs=(node,),
        kind=Kind.STREAM,
        key=node.key,
        schema=result,
        location=location,
        mode=mode,
        fn=checked,
        migrate=None if migrate is None else function(migrate, "migrate=(state)", location),
    )


def deduplicated(node: Node, by: object | None, within: object, location: Location | None) -> Dedup:
    """`dedup`: the first row of each id, which is the key if none is named."""
    naming = "Name the id: dedup('event_id', within='1h'), an expression, or several: dedup(['shop', 'id'], ...)"
    if by is not None and not isinstance(by, (str, pl.Expr, list, tuple)):
        raise UnsupportedError(f"dedup() takes columns, got {shown(by)}", location=location, hint=naming)
    if isinstance(by, (list, tuple)) and not by:
        raise SchemaError("dedup() names no column", location=location, hint=naming)
    keying = foreign_keying(node, list(node.key.names) if by is None else by, None, location)
    return Dedup(
        inputs=(node,),
        kind=Kind.STREAM,
        key=node.key,
        schema=node.schema,
        key_in_value=node.key_in_value,
        location=location,
        keying=keying,
        within=duration("within", within, location),
    )


def expiring(node: Node, after: object, clock: object, location: Location | None) -> Expire:
    """`expire`: keys that have been quiet for a time are deleted."""
    one_of("clock", clock, CLOCKS, location)
    return Expire(
        inputs=(node,),
        kind=Kind.TABLE,
        key=node.key,
        schema=node.schema,
        key_in_value=node.key_in_value,
        location=location,
        after=duration("after", after, location),
        clock=str(clock),
    )


def _output_name(expression: pl.Expr, location: Location | None) -> str:
    if not isinstance(expression, pl.Expr):
        raise SchemaError(
            f"agg() takes expressions, got {shown(expression)}",
            location=location,
            hint="agg(total=col('amount').sum())",
        )
    try:
        return expression.meta.output_name()
    except pl.exceptions.PolarsError:
        raise SchemaError(
            f"agg() needs one column per aggregate, but this gives several: {python_text(expression)}",
            location=location,
            hint="Name them: agg(a=col('a').sum(), b=col('b').sum())",
        ) from None
