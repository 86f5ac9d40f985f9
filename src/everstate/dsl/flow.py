"""What streams and tables have in common: the stateless operations, grouping and outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, Self

from everstate.dsl import operations
from everstate.dsl.absent import Guiding, refuse_subscript
from everstate.dsl.arguments import shown, switch
from everstate.dsl.display import Display, Displayed, of_flow
from everstate.dsl.grouped import Grouped
from everstate.dsl.joins.global_table import GlobalTable
from everstate.errors import DefinitionError, UnsupportedError
from everstate.errors.calls import explained_class
from everstate.location import caller

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import polars as pl

    from everstate.dsl.service import Service
    from everstate.dsl.written import KeyFormat
    from everstate.formats.descriptions import Format
    from everstate.location import Location
    from everstate.schema.keys import KeyForm
    from everstate.schema.schema import Schema
    from everstate.topology.nodes import Node, OnChange

#: What gives one, by its class.
_METHODS: Final = {"Stream": "stream", "Table": "table", "GlobalTable": "global_table"}


@explained_class
class Flow(Guiding, Displayed):
    """A stream or a table of a service.

    Every method leaves this object as it is and returns a new one, so one flow can feed any number of chains.
    """

    def __init__(self, service: Service, node: Node) -> None:
        self.service = service
        self.node = node

    @property
    def schema(self) -> Schema:
        """The columns, key columns first."""
        return self.node.schema

    def filter(
        self,
        condition: pl.Expr | str | Callable[..., Any],
        *,
        stateful: bool = False,
        migrate: Callable[..., Any] | None = None,
    ) -> Self:
        """Keep the rows for which the condition is true.

        A condition that is null counts as false. On a table a row that stops matching is deleted downstream: its key
        gets a tombstone.

        Example:
            >>> import everstate as es
            >>> app = es.Service("docs")
            >>> orders = app.table("orders", key="id", schema={"id": str, "status": str})
            >>> _ = orders.filter(es.col("status") != "void").to("valid-orders")
            >>> driver = es.testing.Driver(app)
            >>> driver.send("orders", "o1", {"status": "new"})
            >>> driver.send("orders", "o1", {"status": "void"})
            >>> [record.value for record in driver.records("valid-orders")]
            [{'status': 'new'}, None]

        Args:
            condition: A Boolean expression, or a function of the row.
            stateful: On a stream: the function gets the state of the row's key as its second argument.
            migrate: With `stateful=True`, as for `apply`.
        """
        if switch("stateful", stateful, caller()):
            return self._stateful(condition, "filter", None, migrate)
        operations.refuse_migrate(migrate, caller())
        return self._with(operations.filtered(self.node, condition, caller()))

    def select(self, *columns: str | pl.Expr, **named: str | pl.Expr) -> Self:
        """Keep these columns and no others.

        The key stays the key. Output values repeat it only if its column is selected here by name.

        Example:
            >>> import everstate as es
            >>> app = es.Service("docs")
            >>> orders = app.table("orders", key="id", schema={"id": str, "net": int, "tax": int})
            >>> orders.select(gross=es.col("net") + es.col("tax")).schema.names
            ('id', 'gross')
        """
        return self._with(operations.selected(self.node, columns, named, caller()))

    def with_columns(self, *columns: str | pl.Expr, **named: str | pl.Expr) -> Self:
        """Add columns, or replace those of the same name. The key cannot be replaced: that is `rekey`."""
        return self._with(operations.extended(self.node, columns, named, caller()))

    def rename(self, names: Mapping[str, str]) -> Self:
        """Give columns new names, `{"old": "new"}`; key columns, too."""
        return self._with(operations.renamed(self.node, names, caller()))

    def drop(self, *names: str) -> Self:
        """Leave columns out. The key stays the key."""
        return self._with(operations.dropped(self.node, names, caller()))

    def map(self, fn: Callable[..., Any], schema: object | None = None) -> Self:
        """Replace each row's value with the result of a Python function. The key stays.

        The function gets a dict of all columns, key included (the bare value where the schema is scalar), and must give
        the same result for the same row: on a table it runs again on the old row to take back what it gave. A row for
        which it raises goes to the dead-letter topic.

        Args:
            fn: row -> value.
            schema: What it returns, as for a source; by default the function's return annotation.
        """
        return self._with(operations.mapped(self.node, fn, schema, caller()))

    def peek(self, fn: Callable[..., Any]) -> Self:
        """Call a function with each row for its side effect; on a table with each new value. Rows pass unchanged."""
        return self._with(operations.peeked(self.node, fn, caller()))

    def branch(self, *conditions: pl.Expr | str | Callable[..., Any]) -> tuple[Self, ...]:
        """Split by conditions: each row goes to the first one that is true, and nowhere if none is."""
        location = caller()
        if not conditions:
            raise DefinitionError(
                "branch() needs at least one condition", location=location, hint="branch(col('amount') > 100, ...)"
            )
        return tuple(
            self._with(operations.filtered(self.node, condition, location, conditions[:place]))
            for place, condition in enumerate(conditions)
        )

    def rekey(
        self,
        *columns: str | pl.Expr | Callable[..., Any],
        key_type: object | None = None,
        key_format: KeyForm = "text",
        name: str | None = None,
        **named: str | pl.Expr,
    ) -> Self:
        """Give the rows a different key; the old key's columns stay as columns of the value.

        On a table several old keys may map to one new key: the one with the highest (timestamp, old key) wins, and
        deleting it brings the next one back. Rows whose new key is null are dropped and counted.

        Args:
            columns: Column names or expressions, or one function of the row.
            key_type: What the function returns; text by default.
            key_format: How the key is written: "text", or "number" as Kafka's own serialisers of numbers do.
            name: The key column's name, for a function; by default that of the present key.
            named: Expressions by the name of the key column.
        """
        location = caller()
        options = {"key_type": key_type, "key_format": key_format, "name": name}
        by = operations.keying(self.node, columns, named, options, location)
        return self._with(operations.rekeyed(self.node, by, location))

    def group_by(
        self,
        *columns: str | pl.Expr | Callable[..., Any],
        key_type: object | None = None,
        key_format: KeyForm = "text",
        name: str | None = None,
        **named: str | pl.Expr,
    ) -> Grouped:
        """Bring rows of one group together, for `agg`, `reduce` or `aggregate`.

        The group becomes the key of the result. Rows whose group is null are dropped and counted. Parameters as for
        `rekey`.
        """
        location = caller()
        options = {"key_type": key_type, "key_format": key_format, "name": name}
        by = operations.keying(self.node, columns, named, options, location)
        return Grouped(self.service, self.node, by)

    def to(
        self,
        topic: str,
        *,
        partitions: int | None = None,
        format: Format = "json",  # noqa: A002 - the word users know
        on_change: OnChange = "recalculate",
        sides: Mapping[str, str | None] | None = None,
        key_format: KeyFormat = "text",
    ) -> Self:
        """Declare an output: its own query, state and versions. Returns what is on the topic, to build on.

        A table is published as its changelog: at most one record per key and micro-batch, none where the value did not
        change, a tombstone where the key has gone. The topic is created if necessary.

        Args:
            topic: The topic, and the output's name.
            partitions: Partitions of a new topic; by default as many as the source with the most.
            format: How values are written: "json", "string", "bytes" or "number" for a scalar schema, `es.Avro()` or
                `es.Protobuf(Message)`.
            on_change: What a new version does: "recalculate" the output from the history of its sources and publish
                what differs; "continue" with the existing state, so that only new records meet the new logic; or
                "migrate" that state: columns that a source has gained are null in it, the functions given as `migrate=`
                convert the user's own values, and results are derived again. A sample of keys is recalculated first; if
                it does not agree, or if state cannot be converted, the output is recalculated.
            sides: The topic of each side of a processor before it, by name; None for one that goes nowhere. They are
                streams, keyed like the processor's rows, with as many partitions as this output, and each micro-batch
                is committed on all of them or on none.
            key_format: How keys of windows are written: "text", as all keys are, or "kafka-windowed", as Kafka Streams
                does: the group's key, then the bounds; all windows of a group are in one partition.
        """
        node = self.service.declare(self.node, topic, partitions, format, caller(), on_change, sides, key_format)
        return self._with(node)

    def from_spark(
        self,
        fn: Callable[..., Any],
        *,
        partitions: int = 1,
        on_change: Literal["recalculate", "continue"] = "recalculate",
    ) -> Self:
        """Let Spark feed this source: the rows of a streaming data frame become records of its topic, exactly once.

        The service reads the topic as it reads any other, so state, corrections and recalculations work as they always
        do. Call it directly on `app.stream(...)` or `app.table(...)`; the topic is created if necessary.

        Example:
            >>> import everstate as es
            >>> def read_orders(spark):
            ...     return spark.readStream.schema("id string, amount long").json("/data/orders")
            >>> app = es.Service("shop")
            >>> orders = app.stream("orders", key="id", schema={"id": str, "amount": int}).from_spark(read_orders)

        Args:
            fn: Gets the Spark session and returns a streaming DataFrame without aggregations, joins of streams or other
                state. It has the source's columns, those of the key included, and may have `$timestamp` (the record's
                time; by default that of its arrival) and, for a table, `$deleted` (true for a tombstone).
            partitions: Of the topic, if it is created.
            on_change: What happens when the function has changed: by default the service does not start, since what is
                on the topic came from the earlier one; "continue" uses the new one from the next row on.
        """
        options = {"partitions": partitions, "on_change": on_change}
        self.service.spark_steps.feed(self.service, self.node, fn, options, caller())
        return self

    def to_spark(
        self,
        fn: Callable[..., Any],
        *,
        on_change: Literal["recalculate", "continue"] = "recalculate",
    ) -> Self:
        """Hand what this output publishes to Spark, batch by batch, at least once. Call it directly on `.to(...)`.

        Example:
            >>> import everstate as es
            >>> def write_totals(frame, batch_id):
            ...     frame.write.mode("overwrite").parquet(f"/data/totals/batch={batch_id}")
            >>> app = es.Service("shop")
            >>> orders = app.table("orders", key="id", schema={"id": str, "amount": int})
            >>> totals = orders.group_by("id").agg(total=es.col("amount").sum()).to("totals").to_spark(write_totals)

        Args:
            fn: Gets a DataFrame and the number of the batch. The columns are those of key and value, `$timestamp`,
                `$partition`, `$offset` and `$deleted`; for a table there is one row per key, the last one, and a
                tombstone is a row with `$deleted`. After a crash a batch comes again under the same number, which no
                other batch ever gets.
            on_change: What happens when the function has changed: by default it gets the whole topic, from the first
                record on; "continue" delivers what has not been delivered yet.
        """
        self.service.spark_steps.deliver(self.node, fn, on_change, caller())
        return self

    def __getitem__(self, key: object) -> NoReturn:
        refuse_subscript(type(self).__name__, key)

    def __setitem__(self, key: object, value: object) -> NoReturn:
        refuse_subscript(type(self).__name__, key)

    def _no_operator(self, _: object = None) -> NoReturn:
        raise UnsupportedError(
            f"a {type(self).__name__} has no operators: it stands for all its rows",
            location=caller(),
            hint="Calculate with columns, with_columns(total=col('price') * col('count')); put flows together with "
            "join(other) or merge(other).",
        )

    __add__ = __radd__ = __sub__ = __mul__ = __truediv__ = __and__ = __rand__ = __or__ = __ror__ = _no_operator
    __lt__ = __le__ = __gt__ = __ge__ = __rshift__ = __lshift__ = __neg__ = __invert__ = _no_operator

    def __len__(self) -> int:
        raise UnsupportedError(
            f"a {type(self).__name__} has no length: rows keep coming",
            location=caller(),
            hint="Count them per group: group_by('customer').agg(orders=es.count())",
        )

    def __bool__(self) -> bool:
        return True

    def _display(self) -> Display:
        return of_flow(self)

    def _columns(self) -> tuple[str, ...]:
        # While an instance is copied or unpickled there is no node yet, and asking for one would come back here.
        return self.__dict__["node"].schema.names if "node" in self.__dict__ else ()

    def _require_table(self, other: object, rule: str, location: Location | None) -> None:
        """Refuse what is neither a table nor a global table of this service."""
        from everstate.dsl.table import Table  # noqa: PLC0415 - a table is a flow

        self._require_own(other, GlobalTable if isinstance(other, GlobalTable) else Table, rule, location)

    def _require_own(self, other: object, kind: type[Flow | GlobalTable], rule: str, location: Location | None) -> None:
        """Refuse what cannot be put together with this one: another kind, or something of another service."""
        if not isinstance(other, kind):
            raise UnsupportedError(
                f"{rule}, this is {shown(other)}",
                location=location,
                hint=f"Read the topic with app.{_METHODS[kind.__name__]}(), or aggregate the stream first.",
            )
        if other.service is not self.service:
            title = "global table" if kind is GlobalTable else kind.__name__.lower()
            raise UnsupportedError(
                f"this {title} belongs to another service, {other.service.name!r}",
                location=location,
                hint=f"Read its topic in this one: app.{_METHODS[kind.__name__]}('topic', key=..., schema=...)",
            )

    def _with(self, node: Node) -> Self:
        return type(self)(self.service, node)

    def _stateful(self, fn: Any, mode: str, schema: object | None, migrate: Any = None) -> Self:
        del fn, schema, migrate
        raise UnsupportedError(
            f"{mode}(stateful=True) works on streams, but this is a table",
            location=caller(),
            hint="Its rows may be corrected later; use group_by(...).aggregate(init, add, remove), or app.stream().",
        )
