"""The test driver: a whole service in the test's own process, with the engine's own kernels and pages.

What it does not simulate: Spark (planning, checkpoints, lost workers), a log on disk and its commits, several
processes, and time that passes by itself. Everything that decides results is the engine's own code: decoding, kernels,
pages, shards, encoding and Kafka's partitioner.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from everstate.testing.topics import Topics
from everstate.testing.unit_run import UnitRun
from everstate.testing.upgrade import Change
from everstate.topology.errors import ConfigurationError, RecordError, TopicNotFoundError
from everstate.topology.keys import decode_key, encode_key
from everstate.topology.nodes import Output, Source
from everstate.topology.values import check_row, decode_value, encode_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from everstate.dsl.service import Service
    from everstate.plan.actions import Plan
    from everstate.testing.topics import StoredRecord


@dataclass(frozen=True)
class DriverRecord:
    """A record on a topic, decoded.

    Attributes:
        key: The key; a tuple for a composite one.
        value: The value, None for a tombstone.
        ts: Its timestamp in milliseconds.
        partition: Where it lies.
        offset: Its place there.
        headers: By name.
        topic: Where it is.
    """

    key: Any
    value: Any
    ts: int
    partition: int = 0
    offset: int = 0
    headers: dict[str, bytes] = field(default_factory=dict)
    topic: str = ""


@dataclass(frozen=True)
class Upgrade:
    """What a new version has done.

    Attributes:
        plan: What followed from the change, for each output.
        records: What the cutovers published: new and changed values, and tombstones; not what followed downstream.
    """

    plan: Plan
    records: list[DriverRecord]


class Driver:
    """Runs a service record by record.

    Example:
        >>> import everstate as es
        >>> app = es.Service("docs")
        >>> words = app.stream("words", schema=str)
        >>> _ = words.group_by("value").agg(n=es.count()).to("counts")
        >>> driver = es.testing.Driver(app)
        >>> driver.send("words", None, "hello")
        >>> driver.send("words", None, "hello")
        >>> driver.table("counts")
        {'hello': {'n': 2}}

    Args:
        service: The service.
        partitions: Partitions of every topic.
        shards: Shards of every output; results do not depend on it.
    """

    def __init__(self, service: Service, partitions: int = 1, *, shards: int = 1) -> None:
        if partitions < 1 or shards < 1:
            raise ConfigurationError("a driver needs at least one partition and one shard")
        self._topics = Topics(partitions)
        self._shards = shards
        self._batching = False
        self._highest = 0
        self._sources: dict[str, Source] = {}
        self._outputs: dict[str, Output] = {}
        self._install(service, [UnitRun(unit, service.on_error, shards) for unit in service.units()])

    def _install(self, service: Service, runs: list[UnitRun]) -> None:
        self._service = service
        self._runs = runs
        # What an earlier version knew stays readable: its topics are still there.
        self._sources.update({source.topic: source for run in runs for source in run.unit.sources})
        self._outputs.update({run.unit.output.topic: run.unit.output for run in runs})

    def send(
        self,
        topic: str,
        key: Any,
        value: Any,
        ts: int | None = None,
        partition: int | None = None,
        headers: dict[str, bytes] | None = None,
    ) -> None:
        """Put a record on a source topic and, outside of `batch()`, process it.

        Args:
            topic: A source topic of the service.
            key: The key (a tuple for a composite one), or its bytes; None for a stream record without a key.
            value: The value, or its bytes as they are; None is a tombstone.
            ts: Milliseconds; by default the highest timestamp so far.
            partition: By default where Kafka's partitioner sends the key.
            headers: By name.
        """
        source = self._source(topic)
        self._topics.append(
            topic,
            key=_key_bytes(source, key),
            value=_value_bytes(source, value),
            ts=self._highest if ts is None else ts,
            partition=partition,
            headers=headers,
        )
        self._highest = max(self._highest, self._highest if ts is None else ts)
        self._process()

    def tombstone(self, topic: str, key: Any, ts: int | None = None, partition: int | None = None) -> None:
        """Delete a key of a table."""
        self.send(topic, key, None, ts, partition)

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Process everything that is sent inside in one micro-batch."""
        self._batching, before = True, self._batching
        try:
            yield
        finally:
            self._batching = before
        self._process()

    def advance(self, ts: int | None = None) -> None:
        """Move the stream time of all source partitions to `ts` (milliseconds; by default the highest so far)."""
        self._highest = max(self._highest, self._highest if ts is None else ts)
        for run in self._runs:
            run.advance(self._highest, self._topics.partitions)

    def upgrade(self, service: Service, *, approval: str = "approve", recalculate: Sequence[str] = ()) -> Upgrade:
        """Replace the service by another version of it, as a deployment does.

        Outputs that changed are recalculated from all that was sent, and what differs is published: new and changed
        values, and tombstones for keys that the new version does not produce.

        Args:
            service: The new version.
            approval: "wait" and "fail" raise before a cutover that would remove much, "approve" goes on.
            recalculate: Outputs to rebuild although nothing has changed.

        Raises:
            ApprovalNeededError: If a cutover has to be approved.

        Example:
            >>> import everstate as es
            >>> def version(least):
            ...     app = es.Service("docs")
            ...     orders = app.table("orders", key="id", schema={"id": str, "amount": int})
            ...     orders.filter(es.col("amount") >= least).to("large")
            ...     return app
            >>> driver = es.testing.Driver(version(least=1))
            >>> driver.send("orders", "a", {"amount": 5})
            >>> driver.send("orders", "b", {"amount": 50})
            >>> [(record.key, record.value) for record in driver.upgrade(version(least=10)).records]
            [('a', None)]
        """
        change = Change(
            old=self._service,
            new=service,
            runs={run.unit.output.topic: run for run in self._runs},
            topics=self._topics,
            approval=approval,
            recalculate=recalculate,
            shards=self._shards,
        )
        plan = change.plan()
        runs, published = change.carry_out(plan)
        self._install(service, list(runs.values()))
        return Upgrade(plan, [self._decoded(topic, record) for topic, record in published])

    def table(self, topic: str) -> dict[Any, Any]:
        """The latest value of every key on a topic, tombstones left out; sorted by the key's bytes."""
        return {key: record.value for key, record in sorted(self._latest(topic), key=lambda pair: str(pair[0]))}

    def records(self, topic: str) -> list[DriverRecord]:
        """All records of a topic, in the order of their publication."""
        return [self._decoded(topic, record) for record in self._topics.all(topic)]

    def _decoded(self, topic: str, record: StoredRecord) -> DriverRecord:
        return DriverRecord(
            self._key(topic, record.key),
            self._value(topic, record.value),
            record.ts,
            record.partition,
            record.offset,
            dict(record.headers),
            topic,
        )

    def counts(self, topic: str) -> dict[str, int]:
        """What an output counted: dead letters (`dead`), rows dropped (`dropped.null_key`, ...)."""
        return dict(next(run.counts for run in self._runs if run.unit.output.topic == topic))

    def _latest(self, topic: str) -> list[tuple[Any, DriverRecord]]:
        latest: dict[Any, DriverRecord] = {}
        for record in self.records(topic):
            latest.pop(record.key, None)
            if record.value is not None:
                latest[record.key] = record
        return list(latest.items())

    def _process(self) -> None:
        if self._batching:
            return
        for run in self._runs:
            run.micro_batch(self._topics)

    def _source(self, topic: str) -> Source:
        if topic not in self._sources:
            raise TopicNotFoundError(topic)
        return self._sources[topic]

    def _schema_of(self, topic: str) -> Output | Source | None:
        return self._outputs.get(topic) or self._sources.get(topic)

    def _key(self, topic: str, data: bytes | None) -> Any:
        node = self._schema_of(topic)
        if data is None or node is None:
            return None if data is None else data.decode()
        parts = decode_key(data, node.key)
        return parts[0] if len(parts) == 1 else tuple(parts)

    def _value(self, topic: str, data: bytes | None) -> Any:
        node = self._schema_of(topic)
        if data is None:
            return None
        if node is None:
            return json.loads(data)
        schema = node.record if isinstance(node, Output) else node.declared
        row = decode_value(data, schema, node.format)
        return row["value"] if schema.scalar else row


def _key_bytes(source: Source, key: Any) -> bytes | None:
    if key is None or isinstance(key, bytes):
        return key
    return encode_key(key, source.key)


def _value_bytes(source: Source, value: Any) -> bytes | None:
    """The value's bytes; one that does not fit the schema is written as it is, so that tests can send it."""
    if value is None or isinstance(value, bytes):
        return value
    absent = [name for name in source.key.names if not isinstance(value, dict) or name not in value]
    schema = source.declared.without(absent)
    try:
        return encode_value(check_row(value, schema), schema, source.format)
    except RecordError:
        return (value if isinstance(value, str) and source.format == "string" else json.dumps(value)).encode()
