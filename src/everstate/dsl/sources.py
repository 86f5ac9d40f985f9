"""What a user says about the ends of a service: a source's topic, key and time, and steps of Spark's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import polars as pl

from everstate.dsl.arguments import one_of, shown, whole_number
from everstate.dsl.expressions import as_expression, resolve_one
from everstate.dsl.functions import function
from everstate.dsl.operations import key_dtype, with_key
from everstate.dsl.windows import Window, duration
from everstate.errors import DefinitionError, NameClashError, SchemaError, UnsupportedError
from everstate.formats.values import on_topic, require_format
from everstate.schema.durations import milliseconds
from everstate.schema.keys import KeyForm, KeySpec
from everstate.schema.schema import Schema
from everstate.schema.topic_names import check_topic_name
from everstate.schema.windowed_keys import WindowedKeys
from everstate.topology.nodes import Kind, Latest, LatestByTime, OnChange, Source
from everstate.topology.spark_steps import Delivery, Feed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from everstate.dsl.service import Service
    from everstate.formats.descriptions import Format
    from everstate.location import Location
    from everstate.topology.nodes import Node, Output


class KeyOf(NamedTuple):
    """What a user says about the keys of a source.

    Attributes:
        names: The column, or several.
        type: Of the columns that the schema does not name.
        form: How they are written; a window if they are those of such windows, as Kafka Streams writes them.
    """

    names: object
    type: object
    form: KeyForm | Window

    def spec(self, declared: Schema, location: Location | None) -> tuple[KeySpec, WindowedKeys | None]:
        """The key's columns, and how it is written if it is that of windows.

        Raises:
            SchemaError: If there can be no such key.
        """
        names = key_names(self.names, location)
        default = key_dtype(self.type, location)
        types = {name: declared.polars.get(name, default) for name in names}
        if declared.scalar and "value" in names:
            raise SchemaError(
                "key 'value' is the value's own column here", location=location, hint="Give the key a different name."
            )
        if not isinstance(self.form, Window):
            return KeySpec.of(types, location=location, form=self.form), None
        if len(names) < 3:
            raise SchemaError(
                "a key of windows needs at least three columns: the group, start and end of the window",
                location=location,
                hint="key=['customer', 'window_start', 'window_end']",
            )
        bound = pl.Datetime("us", "UTC")
        for name in names[-2:]:
            if declared.polars.get(name, bound) != bound:
                raise SchemaError(
                    f"{name!r} is a bound of the window, so it is a datetime, and not {declared.field(name).type}",
                    location=location,
                    hint=f"Leave {name!r} out of the schema: the last two columns of the key are start and end of the "
                    "window.",
                )
        types |= dict.fromkeys(names[-2:], bound)
        size = None if self.form.shape == "session" else milliseconds(self.form.size)
        return KeySpec.of(types, location=location), WindowedKeys(size)


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
    if one.windows != other.windows:
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


_CHANGES = tuple(word for word in get_args(OnChange) if word != "migrate")


class SparkSteps:
    """The steps of Spark's own of one service, and the nodes at which there can be one.

    Attributes:
        feeds: By topic, what feeds it.
        deliveries: By topic, what it is delivered to.
    """

    def __init__(self) -> None:
        self.feeds: dict[str, Feed] = {}
        self.deliveries: dict[str, Delivery] = {}
        self._read: dict[Node, Source] = {}
        self._written: dict[Node, Output] = {}

    def read(self, node: Node, source: Source) -> None:
        """A node that reads a topic from outside."""
        self._read[node] = source

    def written(self, node: Node, output: Output) -> None:
        """A node that reads an output back."""
        if output.topic in self.feeds:
            raise _fed_by_both(output.topic, output.location)
        self._written[node] = output

    def feed(
        self,
        service: Service,
        node: Node,
        fn: Callable[..., Any],
        options: Mapping[str, Any],
        location: Location | None,
    ) -> None:
        """Declare what feeds a source.

        Raises:
            DefinitionError: If it cannot be fed.
        """
        called = function(fn, "from_spark(spark)", location)
        source = self._read.get(node)
        if source is None:
            raise UnsupportedError(
                "from_spark() belongs directly on a source that this service reads",
                location=location,
                hint="Write it before any other step: app.stream('orders', key='id', schema={...}).from_spark(f)",
            )
        topic = source.topic
        if topic in self.feeds:
            raise _twice("from_spark", topic, self.feeds[topic].location, location)
        if any(topic in unit.written for unit in service.units()):
            raise _fed_by_both(topic, location)
        whole_number("partitions", options["partitions"], location)
        one_of("on_change", options["on_change"], _CHANGES, location)
        self.feeds[topic] = Feed(
            topic=topic,
            function=called,
            kind=node.kind,
            key=source.key,
            schema=source.declared,
            format=source.format,
            location=location,
            partitions=options["partitions"],
            on_change=options["on_change"],
        )

    def deliver(self, node: Node, fn: Callable[..., Any], on_change: OnChange, location: Location | None) -> None:
        """Declare what an output is delivered to.

        Raises:
            DefinitionError: If it is no output, or has such a step already.
        """
        called = function(fn, "to_spark(frame, batch_id)", location)
        output = self._written.get(node)
        if output is None:
            raise UnsupportedError(
                "to_spark() belongs directly on an output",
                location=location,
                hint="Publish the rows first, then hand them to Spark: .to('totals').to_spark(f)",
            )
        if output.topic in self.deliveries:
            raise _twice("to_spark", output.topic, self.deliveries[output.topic].location, location)
        one_of("on_change", on_change, _CHANGES, location)
        self.deliveries[output.topic] = Delivery(
            topic=output.topic,
            function=called,
            kind=output.kind,
            key=output.key,
            schema=output.record,
            format=output.format,
            location=location,
            on_change=on_change,
        )


def _twice(word: str, topic: str, known: Location | None, location: Location | None) -> DefinitionError:
    hint = {
        "from_spark": "Read both in one function: first.unionByName(second).",
        "to_spark": "Write to both places in one function.",
    }
    return NameClashError(f"topic {topic!r} already has {word}() at {known}", location=location, hint=hint[word])


def _fed_by_both(topic: str, location: Location | None) -> DefinitionError:
    return NameClashError(
        f"topic {topic!r} is an output of this service, so from_spark() cannot write to it, too",
        location=location,
        hint="Give one of them its own topic.",
    )


def by_time(source: Source, history: object | None) -> LatestByTime:
    """The table that the records of a topic are by their time."""
    return LatestByTime(
        inputs=(source,),
        kind=Kind.TABLE,
        key=source.key,
        schema=source.schema,
        key_in_value=source.key_in_value,
        location=source.location,
        history=None if history is None else duration("history", history, source.location),
    )


def latest(source: Source) -> Latest:
    """The table that the records of a topic are."""
    return Latest(
        inputs=(source,),
        kind=Kind.TABLE,
        key=source.key,
        schema=source.schema,
        key_in_value=source.key_in_value,
        location=source.location,
    )


def declared(
    topic: str,
    kind: Kind,
    key: KeyOf,
    schema: object,
    fmt: Format,
    location: Location | None,
    at: Timed,
) -> Source:
    """A topic as a service reads it.

    Raises:
        DefinitionError: If something that is said of it does not go with the rest.
    """
    check_topic_name(topic, location=location)
    columns = Schema.of(schema, location=location)
    require_format(columns, fmt, location=location)
    spec, windows = key.spec(columns, location)
    return Source(
        inputs=(),
        kind=kind,
        key=spec,
        schema=with_key(spec, columns),
        location=location,
        topic=topic,
        format=on_topic(fmt, topic),
        declared=columns,
        **at.checked(with_key(spec, columns), location),
        windows=windows,
    )


def read_back(output: Output) -> Source:
    """What an output has written, as a source of the same service."""
    return Source(
        inputs=(),
        kind=output.kind,
        key=output.key,
        schema=output.schema,
        key_in_value=output.key_in_value,
        location=output.location,
        topic=output.topic,
        format=output.format,
        declared=output.record,
        windows=output.windows,
    )
