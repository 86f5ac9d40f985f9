"""Checks of what a user says about a source: its key, its time, and other readings of the same topic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from everstate.dsl.arguments import one_of, shown
from everstate.dsl.expressions import as_expression, resolve_one
from everstate.dsl.windows import duration
from everstate.errors import DefinitionError, SchemaError
from everstate.topology.nodes import Kind

if TYPE_CHECKING:
    from everstate.location import Location
    from everstate.schema.schema import Schema
    from everstate.topology.nodes import Source


def event_time(time: str | pl.Expr, schema: Schema, location: Location | None) -> pl.Expr:
    """When a row happened: a datetime, or whole milliseconds since 1970.

    Raises:
        SchemaError: If it is neither.
    """
    expression = as_expression(time, location)
    dtype = resolve_one(expression, schema.polars, location)
    if not (dtype == pl.Datetime or dtype.is_integer()):
        raise SchemaError(
            f"time= needs a datetime or whole milliseconds, but this gives {dtype}: {expression}",
            location=location,
            hint="Name a column of type datetime, or convert it: time=col('seconds') * 1000",
        )
    return expression


@dataclass(frozen=True)
class Timed:
    """What a user says of a source's time.

    Attributes:
        time: When a row happened.
        on_missing_time: What becomes of one for which that gives nothing.
        idle_after: After how long a quiet partition is passed over.
    """

    time: str | pl.Expr | None = None
    on_missing_time: object = "dead-letter"
    idle_after: object = None

    def checked(self, schema: Schema, location: Location | None) -> dict[str, Any]:
        """As a source has it.

        Raises:
            DefinitionError: If something is wrong with it.
        """
        one_of("on_missing_time", self.on_missing_time, ("dead-letter", "record"), location)
        by_record = self.on_missing_time == "record"
        if by_record and self.time is None:
            raise DefinitionError(
                'on_missing_time="record" says what becomes of rows without a time, and there is no time=',
                location=location,
                hint="Rows have the record's timestamp anyway: leave it out, or name the column: time='at'",
            )
        return {
            "time": None if self.time is None else event_time(self.time, schema, location),
            "on_missing_time": "record" if by_record else None,
            "idle_after": None if self.idle_after is None else duration("idle_after", self.idle_after, location),
        }


def key_names(key: object, location: Location | None) -> tuple[str, ...]:
    """The names of the key's columns, as a user gave them: one, or several in order."""
    parts = (key,) if isinstance(key, str) else tuple(key) if isinstance(key, (list, tuple)) else ()
    twice = len(set(map(repr, parts))) < len(parts)
    if not parts or twice or not all(isinstance(part, str) and part and not part.startswith("$") for part in parts):
        raise SchemaError(
            f"key={shown(key)} does not name columns",
            location=location,
            hint="Name the column that holds the record's key: key='id', or several: key=['region', 'id']",
        )
    return tuple(str(part) for part in parts)


def contradiction(one: Source, other: Source) -> str:
    """In what two readings of a topic cannot both be right; empty if they can."""
    columns = {field.name: field.type for field in one.declared.fields}
    differing = [field.name for field in other.declared.fields if columns.get(field.name, field.type) != field.type]
    named = {*one.declared.names, *other.declared.names} & {*one.key.names, *other.key.names}
    if one.key.dtypes != other.key.dtypes or (named and one.key.names != other.key.names):
        return "key"
    if one.key.form != other.key.form:
        return "key_format="
    if one.format != other.format or one.declared.scalar != other.declared.scalar:
        return "format"
    if one.kind is other.kind is Kind.STREAM and not _same_time(one.time, other.time):
        return "time="
    if one.kind is other.kind is Kind.STREAM and one.on_missing_time != other.on_missing_time:
        return "on_missing_time="
    if one.idle_after != other.idle_after:
        return "idle_after="
    return f"type of column {differing[0]!r}" if differing else ""


def _same_time(one: pl.Expr | None, other: pl.Expr | None) -> bool:
    return one is other if one is None or other is None else one.meta.eq(other)
