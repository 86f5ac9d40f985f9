"""From what the user wrote to a checked node: one function an operation. Fluent classes only delegate here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from everstate.dsl.arguments import shown
from everstate.dsl.expressions import as_expression, predicate, resolve, resolve_one
from everstate.dsl.functions import function, result_schema
from everstate.errors import FunctionError, NameClashError, SchemaError, UnknownColumnError, UnsupportedError
from everstate.schema.annotations import is_name
from everstate.schema.keys import KeySpec
from everstate.schema.schema import Schema
from everstate.schema.types import Field
from everstate.topology.nodes import (
    Filter,
    FlatMap,
    Keying,
    Kind,
    Map,
    Merge,
    Node,
    Peek,
    Project,
    RekeyStream,
    RekeyTable,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from everstate.location import Location
    from everstate.topology.functions import Function

Columns: TypeAlias = str | pl.Expr


def with_key(key: KeySpec, values: Schema) -> Schema:
    """The columns of a node: the key's, then the value's; a value column of the key's name is the key."""
    parts = Schema.of_polars(dict(zip(key.names, key.dtypes, strict=True))).fields
    return Schema(parts + values.without(key.names).fields, scalar=values.scalar)


def relabelled(schema: Schema, names: Mapping[str, str], location: Location | None) -> Schema:
    """These columns under other names, types kept; each may be null."""
    for name in names.values():
        _check_name(name, location)
    return Schema(tuple(Field(new, schema.field(old).type.relaxed(), nullable=True) for old, new in names.items()))


def refuse_migrate(migrate: object, location: Location | None) -> None:
    """Without state there is nothing to convert."""
    if migrate is not None:
        raise UnsupportedError(
            "migrate= converts the state of a step, and this one keeps none",
            location=location,
            hint="Pass stateful=True with it, or leave it out.",
        )


def filtered(node: Node, condition: Any, location: Location | None, earlier: Sequence[Any] = ()) -> Filter:
    """`filter` and, with the earlier conditions, a `branch`."""
    return Filter(
        inputs=(node,),
        kind=node.kind,
        key=node.key,
        schema=node.schema,
        key_in_value=node.key_in_value,
        location=location,
        predicate=predicate(condition, node.schema, location),
        unless=tuple(predicate(part, node.schema, location) for part in earlier),
    )


def selected(node: Node, parts: Sequence[Columns], named: Mapping[str, Columns], location: Location | None) -> Project:
    """`select`: these columns and no others; the key stays the key, and is in the value if it is named."""
    expressions = _expressions(parts, named, location)
    if not expressions:
        raise SchemaError("select() needs at least one column", location=location, hint="select('amount')")
    found = resolve(expressions, node.schema.polars, location)
    _refuse_changed_key(node, expressions, found, location)
    chosen = [name for name in node.key.names if name in found]
    if chosen and len(chosen) < len(node.key.names):
        raise SchemaError(
            f"select names {chosen}, only part of the key ({', '.join(node.key.names)})",
            location=location,
            hint="Name the whole key, to repeat it in the value, or no part of it.",
        )
    return _projected(node, "select", expressions, found, location, key_in_value=bool(chosen))


def extended(node: Node, parts: Sequence[Columns], named: Mapping[str, Columns], location: Location | None) -> Project:
    """`with_columns`: these columns besides those that are there, or in their place."""
    expressions = _expressions(parts, named, location)
    found = resolve(expressions, node.schema.polars, location)
    _refuse_changed_key(node, expressions, found, location)
    kept = [name for name in node.values.names if name not in found]
    whole = {**{name: node.schema.polars[name] for name in kept}, **found}
    order = [*(name for name in node.values.names), *(name for name in found if name not in node.values.names)]
    columns = [*(pl.col(name) for name in kept), *expressions]
    result = pl.Schema({name: whole[name] for name in order})
    return _projected(node, "with_columns", columns, result, location, key_in_value=node.key_in_value)


def renamed(node: Node, names: Mapping[str, str], location: Location | None) -> Project:
    """`rename`: a key column too; the key itself stays."""
    if not isinstance(names, Mapping):
        raise SchemaError(
            f"rename() takes a dict, not {shown(names)}", location=location, hint="rename({'old': 'new'})"
        )
    for name, other in names.items():
        if name not in node.schema.names:
            raise UnknownColumnError(name, list(node.schema.names), location=location)
        _check_name(other, location)
    new = [names.get(name, name) for name in node.schema.names]
    for name in new:
        if new.count(name) > 1:
            raise NameClashError(
                f"rename gives two columns the name {name!r}",
                location=location,
                hint="Drop one of them first, or give each its own name.",
            )
    key = KeySpec.of(
        {names.get(n, n): t for n, t in zip(node.key.names, node.key.dtypes, strict=True)},
        location=location,
        form=node.key.form,
    )
    values = relabelled(node.values, {name: names.get(name, name) for name in node.values.names}, location)
    return Project(
        inputs=(node,),
        kind=node.kind,
        key=key,
        schema=with_key(key, values),
        key_in_value=node.key_in_value,
        location=location,
        word="rename",
        columns=tuple(pl.col(name).alias(names.get(name, name)) for name in node.values.names),
        renamed=tuple((name, names.get(name, name)) for name in node.key.names),
    )


def dropped(node: Node, names: Sequence[str], location: Location | None) -> Project:
    """`drop`: without these columns. A key column leaves the value, but it stays the key."""
    names = _flat(names)
    if not names:
        raise SchemaError("drop() needs at least one column", location=location, hint="drop('amount')")
    for name in names:
        if name not in node.schema.names:
            raise UnknownColumnError(name, list(node.schema.names), location=location)
    kept = [name for name in node.values.names if name not in names]
    found = pl.Schema({name: node.schema.polars[name] for name in kept})
    repeats = node.key_in_value and not set(names) & set(node.key.names)
    return _projected(node, "drop", [pl.col(name) for name in kept], found, location, key_in_value=repeats)


def _projected(
    node: Node,
    word: str,
    columns: Sequence[pl.Expr],
    found: pl.Schema,
    location: Location | None,
    *,
    key_in_value: bool,
) -> Project:
    values = Schema.of_polars(
        {name: dtype for name, dtype in found.items() if name not in node.key.names},
        like=node.schema,
        location=location,
    )
    scalar = node.schema.scalar and values.names == node.values.names
    return Project(
        inputs=(node,),
        kind=node.kind,
        key=node.key,
        schema=Schema(with_key(node.key, values).fields, scalar=scalar),
        key_in_value=key_in_value,
        location=location,
        word=word,
        columns=tuple(columns),
    )


def _expressions(parts: Sequence[Columns], named: Mapping[str, Columns], location: Location | None) -> list[pl.Expr]:
    expressions = [as_expression(part, location) for part in _flat(parts)]
    expressions += [as_expression(part, location).alias(name) for name, part in named.items()]
    for name in named:
        _check_name(name, location)
    return expressions


def _flat(parts: Sequence[Any]) -> list[Any]:
    """What was passed one by one or, as Polars and Spark take it, in a list."""
    return [one for part in parts for one in (part if isinstance(part, (list, tuple)) else [part])]


def _check_name(name: Any, location: Location | None) -> None:
    if not isinstance(name, str) or not is_name(name):
        raise SchemaError(
            f"{shown(name)} cannot be the name of a column", location=location, hint="Use text that is not empty."
        )
    if name.startswith("$"):
        raise SchemaError(
            f"column {name!r}: names that begin with '$' are Everstate's own",
            location=location,
            hint=f"Call it {name.lstrip('$') or 'something else'!r}, for instance.",
        )


def key_dtype(key_type: object, location: Location | None) -> pl.DataType:
    """The type of a key of one column."""
    found = list(Schema.of(key_type, location=location).polars.values())
    if len(found) != 1:
        raise SchemaError(
            f"key_type={shown(key_type)} has {len(found)} columns",
            location=location,
            hint="Pass one type, such as key_type=int; the columns of a composite key get theirs from the schema.",
        )
    return found[0]


def _refuse_changed_key(
    node: Node, expressions: Sequence[pl.Expr], found: pl.Schema, location: Location | None
) -> None:
    for name in set(node.key.names) & set(found):
        plain = any(
            e.meta.is_column_selection() or (e.meta.is_column() and e.meta.output_name() == name) for e in expressions
        )
        if not plain:
            raise UnsupportedError(
                f"column {name!r} is the key and cannot be replaced",
                location=location,
                hint=f"Give it another name, or another key with rekey({name}=...).",
            )


def mapped(node: Node, fn: Callable[..., Any], schema: object | None, location: Location | None) -> Map:
    """`map`: a function on each row; the key stays."""
    checked = function(fn, "map(row)", location)
    values = result_schema(fn, schema, location)
    return _mapped(node, checked, with_key(node.key, values), location, in_place=False)


def updated(node: Node, fn: Callable[..., Any], location: Location | None) -> Map:
    """`update`: a function that changes the row in place."""
    if node.schema.scalar:
        raise UnsupportedError("a scalar value cannot be changed in place", location=location, hint="Use map(fn).")
    return _mapped(node, function(fn, "update(row)", location), node.schema, location, in_place=True)


def _mapped(node: Node, fn: Function, schema: Schema, location: Location | None, *, in_place: bool) -> Map:
    return Map(inputs=(node,), kind=node.kind, key=node.key, schema=schema, location=location, fn=fn, in_place=in_place)


def flat_mapped(node: Node, fn: Callable[..., Any], schema: object | None, location: Location | None) -> FlatMap:
    """`flat_map`: any number of rows for one."""
    checked = function(fn, "flat_map(row)", location, generator=True)
    values = result_schema(fn, schema, location, many=True)
    return FlatMap(
        inputs=(node,),
        kind=node.kind,
        key=node.key,
        schema=with_key(node.key, values),
        location=location,
        fn=checked,
    )


def peeked(node: Node, fn: Callable[..., Any], location: Location | None) -> Peek:
    """`peek`: a side effect."""
    return Peek(
        inputs=(node,),
        kind=node.kind,
        key=node.key,
        schema=node.schema,
        key_in_value=node.key_in_value,
        location=location,
        fn=function(fn, "peek(row)", location),
    )


def merged(nodes: Sequence[Node], location: Location | None) -> Merge:
    """`merge`: streams of one key and one schema."""
    first, *others = nodes
    if not others:
        raise SchemaError("merge() needs another stream", location=location, hint="orders.merge(returns)")
    for other in others:
        if other.schema.polars != first.schema.polars or other.key != first.key:
            raise SchemaError(
                f"merge needs the same columns and keys on both sides: {first.schema} and {other.schema}",
                location=location,
                hint="Give them the same shape with select() or rename() first.",
            )
    return Merge(inputs=tuple(nodes), kind=Kind.STREAM, key=first.key, schema=first.schema, location=location)


def keying(
    node: Node,
    parts: Sequence[Any],
    named: Mapping[str, Columns],
    options: Mapping[str, Any],
    location: Location | None,
) -> Keying:
    """A new key from columns, expressions or one function.

    Args:
        node: Whose rows get it.
        parts: Column names and expressions, or one function.
        named: Expressions by the name of the key column.
        options: `key_type` and `name`, for a function; `key_format`.
        location: Where.
    """
    parts = _flat(parts)
    form = options.get("key_format", "text")
    if len(parts) == 1 and not named and callable(parts[0]) and not isinstance(parts[0], pl.Expr):
        name, kind = options.get("name"), options.get("key_type")
        name = node.key.names[0] if name is None else name
        _check_name(name, location)
        dtype = key_dtype(str if kind is None else kind, location)
        spec = KeySpec.of({name: dtype}, location=location, form=form)
        return Keying(spec, fn=function(parts[0], "a function as key(row)", location))
    for option in ("name", "key_type"):
        if options.get(option) is not None:
            own = isinstance(options[option], pl.Expr)
            raise UnsupportedError(
                f"{option}= is for a key that a function makes",
                location=location,
                hint=f"For a column of that name make it first: with_columns({option}=...).group_by({option!r})"
                if own
                else "Columns have their names and types: group_by(customer=col('name').cast(str))",
            )
    expressions = _expressions(parts, named, location)
    if not expressions:
        raise SchemaError("a key needs at least one column", location=location, hint="Name it: group_by('customer')")
    found = resolve(expressions, node.schema.polars, location)
    if len(found) != len(expressions):
        expressions = _one_by_one(expressions, list(found))
    return Keying(KeySpec.of(dict(found), location=location, form=form), by=tuple(expressions))


def _one_by_one(expressions: Sequence[pl.Expr], names: Sequence[str]) -> list[pl.Expr]:
    """Expressions that give several columns, as one for each column."""
    if all(expression.meta.is_column_selection() for expression in expressions):
        return [pl.col(name) for name in names]
    return [pl.struct(expressions).struct.field(name) for name in names]


def rekeyed(node: Node, by: Keying, location: Location | None) -> RekeyStream | RekeyTable:
    """`rekey`: the old key's columns stay, as columns of the value."""
    columns = {name: dtype for name, dtype in node.schema.polars.items() if name not in by.key.names}
    values = Schema.of_polars(columns, like=node.schema, location=location)
    scalar = node.schema.scalar and values.names == node.values.names
    schema = Schema(with_key(by.key, values).fields, scalar=scalar)
    make = RekeyTable if node.kind is Kind.TABLE else RekeyStream
    return make(inputs=(node,), kind=node.kind, key=by.key, schema=schema, location=location, keying=by)


def foreign_keying(node: Node, on: Any, key: KeySpec | None, location: Location | None) -> Keying:
    """How a row's foreign key is made; its column has a name of Everstate's own, so that the row keeps its columns.

    Args:
        node: Whose rows have it.
        on: What gives it.
        key: The key that it is to meet, and is written like; None if it meets none.
        location: Where.
    """
    if isinstance(on, (str, pl.Expr)):
        expression = as_expression(on, location)
        dtype = resolve_one(expression, node.schema.polars, location)
        form = key.form if key is not None and dtype == key.dtypes[0] else "text"
        return Keying(KeySpec.of({"$fk": dtype}, location=location, form=form), by=(expression.alias("$fk"),))
    if isinstance(on, (list, tuple)):
        if not on:
            raise SchemaError("on= names no column", location=location, hint="on='customer', or on=['region', 'id']")
        expressions = [as_expression(part, location) for part in on]
        dtypes = [resolve_one(expression, node.schema.polars, location) for expression in expressions]
        names = [f"$fk{place}" for place in range(len(expressions))]
        made = KeySpec.of(dict(zip(names, dtypes, strict=True)), location=location)
        return Keying(made, by=tuple(e.alias(n) for e, n in zip(expressions, names, strict=True)))
    if not callable(on):
        raise FunctionError(
            f"on={shown(on)} does not say which row is meant",
            location=location,
            hint="Name a column that has its key, on='customer', or several; or pass an expression or a function.",
        )
    if key is None or key.composite:
        raise SchemaError(
            "a function cannot give a key of several columns", location=location, hint="Pass on=['a', 'b'] instead."
        )
    spec = KeySpec.of({"$fk": key.dtypes[0]}, location=location, form=key.form)
    return Keying(spec, fn=function(on, "on=(row)", location))
