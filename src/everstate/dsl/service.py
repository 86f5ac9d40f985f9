"""The service: what a user writes and deploys."""

from __future__ import annotations

import importlib
import os
import re
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Unpack, get_args

from everstate.dsl import config
from everstate.dsl.absent import Guiding
from everstate.dsl.arguments import one_of, shown, switch, text, whole_number
from everstate.dsl.display import Display, Displayed, of_service
from everstate.dsl.joins.global_table import GlobalTable
from everstate.dsl.sources import KeyOf, SparkSteps, Timed, by_time, contradiction, declared, latest, read_back
from everstate.dsl.stream import Stream
from everstate.dsl.table import Table
from everstate.dsl.written import KeyFormat, require_no_cycle, require_own_topics, routes, written_windows
from everstate.errors import DefinitionError, EverstateError, NameClashError, SchemaError, secrets
from everstate.errors.calls import explained_class
from everstate.formats.values import on_topic, require_format
from everstate.location import Location, caller
from everstate.schema.topic_names import check_topic_name
from everstate.topology.describe import Description
from everstate.topology.nodes import Kind, Node, OnChange, Output, Source
from everstate.topology.unit import Unit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta
    from pathlib import Path

    import polars as pl

    from everstate.dsl.windows import Window
    from everstate.formats.descriptions import Format
    from everstate.generations.deploy.options import RunOptions
    from everstate.schema.keys import KeyForm

_POLICIES = ("dead-letter", "fail", "skip")


@explained_class
class Service(Guiding, Displayed):
    """Sources, operations and one or more outputs.

    Example:
        >>> import everstate as es
        >>> app = es.Service("customers")
        >>> orders = app.table("orders", key="order_id", schema={"order_id": str, "customer": str, "amount": float})
        >>> totals = orders.group_by("customer").agg(total=es.col("amount").sum()).to("customer-totals")
        >>> [output.topic for output in app.outputs]
        ['customer-totals']

    Args:
        name: The service's name, also that of its state and its lease.
        log: Where topics live: a folder, or `kafka://host:9092`. `EVERSTATE_LOG` and the project's file come first; by
            default `./.everstate`.
        state_dir: Where state and checkpoints live; by default inside the log's folder.
        on_error: What happens to a record that cannot be processed: "dead-letter" (it goes to the output's dead-letter
            topic), "fail" or "skip".
        shards: Parallel shares of each output's key space; by default the cores at its first start.
    """

    def __init__(
        self,
        name: str,
        *,
        log: str | Path | None = None,
        state_dir: str | Path | None = None,
        on_error: Literal["dead-letter", "fail", "skip"] = "dead-letter",
        shards: int | None = None,
    ) -> None:
        location = caller()
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", name):
            raise DefinitionError(
                f"{name!r} cannot be the name of a service",
                location=location,
                hint="Use letters, digits, '.', '_' and '-', beginning with a letter or digit, at most 100 characters.",
            )
        one_of("on_error", on_error, _POLICIES, location)
        if shards is not None:
            whole_number("shards", shards, location)
        for option, place in {"log": log, "state_dir": state_dir}.items():
            if place is not None and (not isinstance(place, (str, os.PathLike)) or not str(place).strip()):
                raise DefinitionError(
                    f"{option}={shown(place)} is not a folder", location=location, hint=f"Write {option}='./folder'"
                )
        self.name = name
        self.log = log
        self.state_dir = state_dir
        self.on_error = on_error
        self.shards = shards
        self.location = location
        self.configuration: dict[str, object] = {}
        self.on_change: dict[str, OnChange] = {}
        self._outputs: list[Output] = []
        self._kept: set[str] = set()
        self._sources: dict[str, Source] = {}
        self._runner: Any = None
        self.spark_steps = SparkSteps()

    def stream(  # noqa: PLR0913 - all that a user may say of a source, each by name
        self,
        topic: str,
        *,
        key: str | Sequence[str] = "key",
        schema: object,
        key_type: object = str,
        key_format: KeyForm = "text",
        format: Format = "json",  # noqa: A002 - the word users know
        keep_history: bool = False,
        time: str | pl.Expr | None = None,
        on_missing_time: Literal["dead-letter", "record"] = "dead-letter",
        idle_after: str | timedelta | None = None,
    ) -> Stream:
        """Read a topic as a stream: every record is an independent event.

        Args:
            topic: The topic.
            key: The column that holds the record's key, or several for a composite key.
            schema: The value's columns: a dict of types, a dataclass, a TypedDict, an Arrow schema, or a scalar type.
            key_type: The key's type, where the schema does not name the key column.
            key_format: How keys are written: "text", or "number" (as Kafka's own serialisers of numbers do).
            format: How values are written: "json", "string", "bytes" or "number" (as Kafka's own serialisers of numbers
                do), or `es.Avro()` or `es.Protobuf(Message)`.
            keep_history: Archive the topic's records while the service runs, so that a changed version can be
                recalculated from all of them even after the topic has dropped the old ones. No result depends on it.
            time: When a row happened, for windows: a column or expression that gives a datetime, or whole milliseconds
                since 1970; by default the record's timestamp.
            on_missing_time: What becomes of a row for which `time` gives nothing, or a time before 1970: it becomes a
                dead letter, or with "record" it has the record's timestamp.
            idle_after: After how long without new records, such as "1m", steps that depend on time no longer wait for a
                partition. Its later records count as no older than the others were then. By default they wait; but a
                partition that has never had a record is passed over after a minute.
        """
        columns = KeyOf(key, key_type, key_format)
        at = Timed(time, on_missing_time, idle_after)
        source = self._source(topic, Kind.STREAM, columns, schema, format, caller(), at)
        self.spark_steps.read(source, source)
        return Stream(self, self._keeping(source, keep_history))

    def table(  # noqa: PLR0913 - as for a stream
        self,
        topic: str,
        *,
        key: str | Sequence[str] = "key",
        schema: object,
        key_type: object = str,
        key_format: KeyForm | Window = "text",
        format: Format = "json",  # noqa: A002 - the word users know
        keep_history: bool = False,
        idle_after: str | timedelta | None = None,
        history: str | timedelta | None = None,
        versioned: bool = False,
    ) -> Table:
        """Read a topic as a table: the latest value of each key; a tombstone deletes it.

        With `versioned=True` the latest value is the one with the highest time, whatever arrives last. The same holds
        with `history="1d"`, which also keeps earlier values for that long: a stream that joins the table then meets the
        value as of its row's time. With `key_format=es.tumbling("5m")` the keys are those of such windows as Kafka
        Streams writes them; the last two columns of the key are start and end of the window. Other arguments as for
        `stream`.
        """
        columns = KeyOf(key, key_type, key_format)
        source = self._source(topic, Kind.TABLE, columns, schema, format, caller(), Timed(idle_after=idle_after))
        kept = self._keeping(source, keep_history)
        timed = switch("versioned", versioned, source.location) or history is not None
        node = by_time(kept, history) if timed else latest(kept)
        self.spark_steps.read(node, source)
        return Table(self, node)

    def global_table(
        self,
        topic: str,
        *,
        key: str | Sequence[str] = "key",
        schema: object,
        key_type: object = str,
        key_format: KeyForm = "text",
        format: Format = "json",  # noqa: A002 - the word users know
        keep_history: bool = False,
    ) -> GlobalTable:
        """Read a topic as a table that every shard holds in full, to join with: other rows need not move to it.

        At the first start it is read to its end before the first row of a stream; after that its changes go to every
        shard. Each shard keeps a copy, for each join: a large table is better joined as `app.table()`, to which rows
        move. Arguments as for `stream`.

        Example:
            >>> import everstate as es
            >>> app = es.Service("docs")
            >>> orders = app.stream("orders", key="id", schema={"shop": str, "amount": int})
            >>> shops = app.global_table("shops", key="shop", schema={"shop": str, "city": str})
            >>> _ = orders.join(shops, on="shop").to("orders-with-city")
            >>> driver = es.testing.Driver(app)
            >>> driver.send("shops", "s1", {"city": "Oslo"})
            >>> driver.send("orders", "o1", {"shop": "s1", "amount": 5})
            >>> [record.value for record in driver.records("orders-with-city")]
            [{'shop': 's1', 'amount': 5, 'city': 'Oslo'}]
        """
        columns = KeyOf(key, key_type, key_format)
        source = self._source(topic, Kind.TABLE, columns, schema, format, caller(), Timed())
        return GlobalTable(self, self._keeping(source, keep_history))

    def config(self, name: str, default: Any) -> Any:
        """A configuration value, of the default's type.

        It comes from `--set name=value`, `--config FILE`, the environment variable `EVERSTATE_CONFIG_<NAME>`, the
        project's file, or it is the default, in this order.

        Raises:
            ConfigurationError: If a given value is not of the default's type.
        """
        text("name", name, caller(), "app.config('least', 100)")
        if not isinstance(default, (str, int, float, bool)):
            raise SchemaError(
                f"config({name!r}): the default {shown(default)} is neither text nor a number, True or False",
                location=caller(),
                hint=f"Its type says how a given value is read: app.config({name!r}, 100)",
            )
        value = config.lookup(name, default, caller())
        self.configuration[name] = value
        secrets.remember({name: value})
        return value

    @property
    def settings(self) -> Mapping[str, object]:
        """The configuration values that the service has read, by name."""
        return MappingProxyType(self.configuration)

    @property
    def kept_topics(self) -> tuple[str, ...]:
        """The source topics whose history is kept, sorted.

        Example:
            >>> import everstate as es
            >>> app = es.Service("shop")
            >>> clicks = app.stream("clicks", schema=str, keep_history=True)
            >>> app.kept_topics
            ('clicks',)
        """
        return tuple(sorted(self._kept))

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The declared outputs, in the order of their declaration."""
        return tuple(self._outputs)

    def units(self) -> list[Unit]:
        """Each output with what feeds it, in the order of declaration (an output that another reads comes first)."""
        return [Unit.of(self.name, output) for output in self._outputs]

    def describe(self) -> Description:
        """What the service consists of; `str()` gives text, `.to_json()` a dict."""
        from everstate.fingerprints.noted.phrases import texts  # noqa: PLC0415 - only who looks reads sources

        units = self.units()
        return Description(self.name, self.on_error, units, texts(units, self.configuration))

    def declare(
        self,
        node: Node,
        topic: str,
        partitions: int | None,
        fmt: Format,
        location: Location | None,
        on_change: OnChange = "recalculate",
        sides: object | None = None,
        key_format: KeyFormat = "text",
    ) -> Node:
        """Declare an output (what `.to()` does); returns the node that reads it back."""
        check_topic_name(topic, location=location)
        record = node.schema if node.key_in_value else node.values
        require_format(record, fmt, location=location, writing=True)
        if partitions is not None:
            whole_number("partitions", partitions, location)
        one_of("on_change", on_change, get_args(OnChange), location)
        self.on_change[topic] = on_change
        output = Output(
            inputs=(node,),
            kind=node.kind,
            key=node.key,
            schema=node.schema,
            key_in_value=node.key_in_value,
            location=location,
            topic=topic,
            format=on_topic(fmt, topic),
            partitions=partitions,
            windows=written_windows(node, key_format, location),
        )
        output = replace(output, routes=routes(Unit.of(self.name, output), sides))
        require_own_topics(self.name, output, self._outputs)
        require_no_cycle(self.name, [*self._outputs, output])
        read_back = self._read_back(output)
        self.spark_steps.written(read_back, output)
        self._outputs.append(output)
        return read_back

    def add(self, output: Output) -> None:
        """Declare an output that is described already, without looking at what it writes to."""
        self._outputs.append(output)

    def _read_back(self, output: Output) -> Node:
        source = read_back(output)
        return latest(source) if output.kind is Kind.TABLE else source

    def _source(
        self,
        topic: str,
        kind: Kind,
        key: KeyOf,
        schema: object,
        fmt: Format,
        location: Location | None,
        at: Timed,
    ) -> Source:
        source = declared(topic, kind, key, schema, fmt, location, at)
        self._refuse_other_reading(source)
        return source

    def _refuse_other_reading(self, source: Source) -> None:
        """Other columns of a topic may be read; with another key or type all its records would be dead letters."""
        known = self._sources.setdefault(source.topic, source)
        what = contradiction(known, source)
        if what:
            raise NameClashError(
                f"topic {source.topic!r} is already read with a different {what}",
                location=source.location,
                hint=f"It is read at {known.location}: use that, and select() the columns that are needed.",
            )

    def _keeping(self, source: Source, keep_history: bool) -> Source:  # noqa: FBT001 - as the user wrote it
        # Beside the node, not in it: whether history is kept changes no result, so it is no part of a fingerprint.
        if switch("keep_history", keep_history, source.location):
            self._kept.add(source.topic)
        return source

    def _display(self) -> Display:
        return of_service(self)

    def as_table(self, node: Node) -> Table:
        """A table of this service (for `Grouped`)."""
        return Table(self, node)

    def run(self, *, once: bool = False, **options: Unpack[RunOptions]) -> None:
        """Run until stopped, or with `once=True` until everything that is there has been processed.

        Args:
            once: Drain and return.
            options: What `everstate run` takes, by the same names: `log`, the operational settings (`trigger`,
                `max_records`, `memory` and so on), and `recalculate`, `accept_truncated`, `keep_topic`, `approve`,
                `take_over`, `standby`, `effects` and `plan`; `show=False` is `--quiet`.

        Raises:
            ConfigurationError: If an option is unknown or does not fit.
            EverstateError: If the service cannot be started, or an output fails.
        """
        switch("once", once, caller())
        self._start_runner(options).run(once=once)

    def start(self, **options: Unpack[RunOptions]) -> None:
        """Run in the background; `stop()` ends it. Options as for `run`."""
        self._start_runner(options).start()

    def stop(self) -> None:
        """Finish the running micro-batches and stop; what was committed stays, the next run goes on from there."""
        if self._runner is not None:
            self._runner.stop()

    def clear_state(self) -> None:
        """Delete this service's state, never a topic; refused while it runs. The next run rebuilds it."""
        _engine("clearing").clear_state(self)

    def _start_runner(self, options: RunOptions) -> Any:
        try:
            self._runner = _engine("runner").Runner(self, **options)
        except EverstateError as error:
            error.location = error.location or caller()
            raise
        return self._runner


def _engine(module: str) -> Any:
    # A description does not depend on the engine: only running needs Spark, and tests run without it.
    return importlib.import_module(f"everstate.engine.commands.{module}")
