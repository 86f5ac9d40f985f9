"""The test driver: a whole service in the test's own process, deployed and run as `everstate run` does, without Spark.

Everything that decides results is the engine's own code: decoding, kernels, pages, shards and encoding, plans, the
registry of generations, comparison, guards, migration and cutover. Only what lies below is different: the log is in
memory, and the executor runs micro-batches in the caller's thread.

What it does not simulate: Spark (its planning, checkpoints, lost workers; what `from_spark` would read is sent by the
test, and functions of `to_spark` are not called), a log on disk, several processes, and time that passes by itself:
nothing expires and no topic is compacted, so `keep_history=True` has no effect. The old version ends when an upgrade
begins; on Spark it goes on until the new one is ready. A version that was replaced is not kept, so going back to it is
a recalculation like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from everstate.dsl.absent import Guiding
from everstate.dsl.arguments import one_of, shown, switch, whole_number
from everstate.dsl.windows import duration
from everstate.errors import ConfigurationError, DefinitionError
from everstate.errors.calls import explained_class
from everstate.generations.deploy.options import Wishes
from everstate.location import caller
from everstate.plan.guards import Policy
from everstate.schema.topic_names import check_topic_name
from everstate.testing.arguments import are_headers, output_names, require_service
from everstate.testing.deployment import Deployment, seen
from everstate.testing.schemas import Schemas
from everstate.testing.topics import Sent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from everstate.dsl.service import Service
    from everstate.log.descriptions import Record
    from everstate.plan.actions import Plan


@dataclass(frozen=True)
class DriverRecord:
    """A record on a topic, decoded.

    Attributes:
        key: The key; a tuple for a composite one.
        value: The value, None for a tombstone.
        ts: Its timestamp in milliseconds.
        partition: The partition that it is in.
        offset: Its offset there.
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
        records: What it has published to replace the old one: new and changed values, tombstones, and everything that a
            new output begins with; by output, those that feed others first. Not what followed downstream.
        dead_letters: The same on the dead-letter topics: a tombstone for a record that can be processed now.
        rebuilt: By output, why it was recalculated although the plan was to migrate its state.
    """

    plan: Plan
    records: list[DriverRecord]
    dead_letters: list[DriverRecord]
    rebuilt: dict[str, str]


@explained_class
class Driver(Guiding):
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
        partitions: Partitions of every source topic; outputs have as many unless they say otherwise.
        shards: Shards of every output; results do not depend on it.
        topics: What topics hold before the first deployment: a value by key, or pairs of both. The service need not
            know these topics yet. If it has an output whose topic already exists, the keys there are treated as those
            of an earlier version.
    """

    def __init__(
        self,
        service: Service,
        partitions: int = 1,
        *,
        shards: int = 1,
        topics: Mapping[str, Mapping[Any, Any] | Iterable[tuple[Any, Any]]] | None = None,
    ) -> None:
        location = caller()
        require_service(service, location)
        whole_number("partitions", partitions, location, kind=ConfigurationError)
        whole_number("shards", shards, location, kind=ConfigurationError)
        if not service.outputs and topics is None:
            raise DefinitionError(
                f"service {service.name!r} has no output", location=location, hint="Declare one: .to('topic')"
            )
        self._deployment = Deployment(partitions, shards)
        self._batching = False
        self._highest = 0
        self._waiting: dict[str, list[Sent]] = {}
        self._schemas = Schemas()
        self._schemas.learn(service.units())
        if topics:
            self._fill(topics)
        # Printed now: what the functions read may be changed by the time of an upgrade. Whether their meaning can be
        # seen matters only then, unless there is something to be compared with already.
        prints, self._unseen = seen(service)
        if topics and self._unseen is not None:
            raise self._unseen
        self._deployment.deploy(service, prints, Policy.APPROVE, Wishes())

    def _fill(self, topics: Mapping[str, Mapping[Any, Any] | Iterable[tuple[Any, Any]]]) -> None:
        if not isinstance(topics, Mapping):
            raise ConfigurationError(
                "topics= is not a dict", location=caller(), hint="topics={'orders': {'o1': {'amount': 5.0}}}"
            )
        for topic, content in topics.items():
            check_topic_name(topic, location=caller())
            self._schemas.allow(topic)
            pairs = content.items() if isinstance(content, Mapping) else content
            self._deployment.topics.ensure(topic)
            self._waiting[topic] = [Sent(*self._schemas.written(topic, key, value), ts=0) for key, value in pairs]
        self._flush()

    def send(
        self,
        topic: str,
        key: Any,
        value: Any,
        ts: int | None = None,
        partition: int | None = None,
        headers: dict[str, bytes] | None = None,
    ) -> None:
        """Put a record on a source topic and, outside `batch()`, process it.

        Args:
            topic: A source topic of the service or of an earlier version, or one that `topics` named.
            key: The key (a tuple for a composite one), or its bytes; None for a stream record without a key.
            value: The value, or its bytes as they are; None is a tombstone.
            ts: Milliseconds; by default the highest timestamp so far.
            partition: By default where Kafka's partitioner sends the key.
            headers: By name.
        """
        self._check_place(ts, partition, headers)
        key_bytes, value_bytes = self._schemas.written(topic, key, value)
        ts = self._highest if ts is None else ts
        self._waiting.setdefault(topic, []).append(Sent(key_bytes, value_bytes, ts, partition, headers))
        self._highest = max(self._highest, ts)
        self._process()

    def _check_place(self, ts: object, partition: object, headers: object) -> None:
        location = caller()
        if ts is not None and (not isinstance(ts, int) or isinstance(ts, bool) or abs(ts) >= 1 << 63):
            raise ConfigurationError(
                f"ts={shown(ts)} is not a number of milliseconds",
                location=location,
                hint="Pass whole milliseconds: ts=int(moment.timestamp() * 1000)",
            )
        if partition is not None and partition not in range(self._deployment.topics.partitions):
            raise ConfigurationError(
                f"partition={shown(partition)} is not one of 0 to {self._deployment.topics.partitions - 1}",
                location=location,
                hint="Make a driver with more: Driver(app, partitions=3)",
            )
        if headers is not None and not are_headers(headers):
            raise ConfigurationError(
                f"headers={shown(headers)} are not bytes by name", location=location, hint="headers={'trace': b'1'}"
            )

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

    def advance(self, ts: int | None = None, *, clock: int | None = None) -> None:
        """Move time: stream time, or the wall clock.

        Both are remembered: an upgrade finds that they moved at the same place. The wall clock is 0 to begin with, and
        only this moves it. Partitions that have been quiet for longer than their source's `idle_after=` by then are
        passed over.

        Args:
            ts: Where the stream time of all source partitions goes, in milliseconds; by default the highest so far.
            clock: Where the wall clock goes instead; it never goes back.

        Example:
            >>> import everstate as es
            >>> app = es.Service("docs")
            >>> carts = app.table("carts", key="user", schema={"user": str, "items": int})
            >>> _ = carts.expire(after="1h", clock="wall").to("open-carts")
            >>> driver = es.testing.Driver(app)
            >>> driver.send("carts", "ada", {"items": 2}, ts=0)
            >>> driver.advance(clock=3_600_000)
            >>> driver.table("open-carts")
            {}
        """
        self._check_place(ts, None, None)
        if clock is not None:
            whole_number("clock", clock, caller(), least=0, kind=ConfigurationError)
            self._flush()
            self._deployment.process()
            self._deployment.tick(clock)
            if ts is None:
                return
        self._highest = max(self._highest, self._highest if ts is None else ts)
        self._flush()
        self._deployment.advance(self._highest)

    def remove_quiet(self, topic: str, *, after: str, clock: Literal["event", "wall"] = "event") -> int:
        """Run the tombstone service on a topic, as `everstate tombstone TOPIC --once` does.

        Args:
            topic: A table's topic, whoever writes it.
            after: How long a key must be quiet before it is removed.
            clock: Which clock decides: "event", the time of the topic's records, or "wall", the clock that
                `advance(clock=)` sets.

        Returns:
            How many keys were removed; what was removed is on the topic `TOPIC.removed`.

        Example:
            >>> import everstate as es
            >>> app = es.Service("docs")
            >>> _ = app.table("visits", schema={"n": int}).to("visitors")
            >>> driver = es.testing.Driver(app)
            >>> driver.send("visits", "ada", {"n": 1}, ts=0)
            >>> driver.send("visits", "bob", {"n": 1}, ts=60_000)
            >>> driver.remove_quiet("visitors", after="1m")
            1
            >>> driver.table("visitors")
            {'bob': {'n': 1}}
        """
        location = caller()
        check_topic_name(topic, location=location)
        length = duration("after", after, location)
        one_of("clock", clock, ["event", "wall"], location, ConfigurationError)
        self._flush()
        if not self._deployment.topics.has_topic(topic):
            self._schemas.require(topic)
        self._schemas.allow_removals(topic)
        removed = self._deployment.remove_quiet(topic, length, clock)
        self._deployment.process()
        return removed

    def upgrade(
        self,
        service: Service,
        *,
        approval: Literal["approve", "wait", "fail"] = "approve",
        recalculate: Sequence[str] = (),
        keep_topic: bool = False,
    ) -> Upgrade:
        """Replace the service with a different version of it, as a deployment does.

        Outputs that changed are recalculated from everything that was sent, and what differs is published: new and
        changed values, and tombstones for keys that the new version does not produce. Side effects (`peek`) do not
        happen during that. If anything fails, nothing has been published, and the old version goes on.

        Args:
            service: The new version.
            approval: "wait" and "fail" raise before a cutover that would remove a lot, "approve" goes on.
            recalculate: Outputs to rebuild even if nothing has changed.
            keep_topic: The keys of an output that the new version does not declare stay on its topic.

        Raises:
            ApprovalNeededError: If a cutover has to be approved.
            ConfigurationError: If an argument names something that does not exist.

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
        location = caller()
        require_service(service, location)
        one_of("approval", approval, [str(word) for word in Policy], location, ConfigurationError)
        switch("keep_topic", keep_topic, location)
        names = output_names(recalculate, [output.topic for output in service.outputs], location)
        self._schemas.learn(service.units())
        prints, unseen = seen(service)
        for hidden in (self._unseen, unseen):
            if hidden is not None:
                raise hidden
        wishes = Wishes(recalculate=names, keep_topic=keep_topic, approval_command="upgrade(approval='approve')")
        self._flush()
        successor = self._deployment.copy()
        done = successor.deploy(service, prints, approval, wishes)
        self._deployment = successor
        outputs = {action.output for action in done.plan.actions}
        records = [self._decoded(record.topic, record) for record in done.records]
        return Upgrade(
            done.plan,
            [record for record in records if record.topic in outputs],
            [record for record in records if record.topic not in outputs],
            done.rebuilt,
        )

    def table(self, topic: str) -> dict[Any, Any]:
        """The latest value of every key on a topic, tombstones left out; sorted by the key's bytes."""
        self._schemas.require(topic)
        latest = {record.key: record for record in self._all(topic)}
        live = [record for record in latest.values() if record.value is not None]
        pairs = [(self._schemas.key(topic, r.key), self._schemas.value(topic, r.value)) for r in live]
        return dict(sorted(pairs, key=lambda pair: str(pair[0])))

    def records(self, topic: str) -> list[DriverRecord]:
        """All records of a topic, in the order of their publication."""
        self._schemas.require(topic)
        return [self._decoded(topic, record) for record in self._all(topic)]

    def counts(self, topic: str) -> dict[str, int]:
        """What an output counted: dead letters (`dead`), rows dropped (`dropped.null_key`, ...)."""
        counts = self._deployment.counts
        if topic not in counts:
            raise self._schemas.unknown(topic, sorted(counts), "The outputs are")
        return dict(counts[topic])

    def _all(self, topic: str) -> Iterator[Record]:
        self._flush()
        return self._deployment.topics.all(topic)

    def _decoded(self, topic: str, record: Record) -> DriverRecord:
        return DriverRecord(
            self._schemas.key(topic, record.key),
            self._schemas.value(topic, record.value),
            record.ts,
            record.partition,
            record.offset,
            dict(record.headers),  # type: ignore[arg-type]  # null only where a test has sent null
            topic,
        )

    def _process(self) -> None:
        if not self._batching:
            self._flush()
            self._deployment.process()

    def _flush(self) -> None:
        """Put what was sent on the topics, those of one micro-batch together."""
        waiting, self._waiting = self._waiting, {}
        for topic, sent in waiting.items():
            self._deployment.topics.send(topic, sent)
