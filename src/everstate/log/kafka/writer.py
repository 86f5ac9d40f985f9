"""Transactions under leases.

Kafka fences by transactional id, and whoever called `init_transactions` last wins: that alone proves nothing, since a
process that lost its lease may be the last. So the right to write is a token in the registry, and compare-and-set is
*init, read to the end, write in that epoch*. Whoever takes the token afterwards inits this id, and what is written here
then fails. A producer that was kept open since it read needs neither again.

Kafka does not say whether a transaction failed because it took too long or because of a takeover. Only the token
decides: after any doubt the producer is given up, a new one is initialised, which finishes or undoes what was pending,
and the registry is read.
"""

from __future__ import annotations

import random
import threading
import time
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from confluent_kafka import KafkaError, KafkaException

from everstate.errors import LogUnavailableError
from everstate.log.crash import Crash
from everstate.log.kafka.clients import ASK_S, TRANSACTION_MS, told
from everstate.log.kafka.failures import code_of, named, refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import polars as pl
    from confluent_kafka import Message, Producer

    from everstate.log.descriptions import Lease
    from everstate.log.kafka.clients import Clients
    from everstate.log.kafka.topics import Topics

Result = TypeVar("Result")
Fill: TypeAlias = "Callable[[Transaction], None]"

#: The header by which a generation knows its own records.
GENERATION: Final = "es-generation"

#: How long it is tried to get through to the brokers before a batch counts as failed: a restarted one is back by then.
PATIENCE_S: Final = 120.0
_AGAIN_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 10.0
_REPORTS_S: Final = 1.0
_LOOK_S: Final = 0.01
_CHANCE: Final = random.SystemRandom()


class UnsettledError(Exception):
    """A transaction has neither failed for good nor succeeded for sure: begin again, and look."""


class Writer:
    """The transactions of one id; one thread at a time.

    Args:
        clients: Make producers.
        topics: Is told what was written, so that this process sees its own writes.
        identity: The transactional id.
        announce: Called before the first init with the leases under which it is: others must be able to fence it.
        check: Reads the registry to its end and refuses leases that are not held.
    """

    def __init__(
        self,
        clients: Clients,
        topics: Topics,
        identity: str,
        announce: Callable[[Sequence[Lease]], None],
        check: Callable[[Sequence[Lease]], None],
    ) -> None:
        self.identity = identity
        self._clients = clients
        self._topics = topics
        self._announce = announce
        self._check = check
        self._guard = threading.RLock()
        self._producer: Producer | None = None
        self._verified: dict[str, int] = {}

    def run(
        self,
        leases: Sequence[Lease],
        attempt: Callable[[bool], tuple[Result, Fill | None]],
    ) -> Result:
        """Do something under leases, in one transaction.

        Args:
            leases: All of them are held when `attempt` is called, and nobody can take one before the transaction ends
                without undoing it.
            attempt: Is told whether anybody else may have written since it was called last. Gives the result and what
                to produce; None to leave all as it is.

        Raises:
            FencedError: If one of the leases belongs to another process.
            LogUnavailableError: If the brokers do not come back.
        """
        deadline, pause = time.monotonic() + PATIENCE_S, _AGAIN_S
        with self._guard:
            while True:
                try:
                    fresh = self._hold(leases)
                    result, fill = attempt(fresh)
                    if fill is not None:
                        self._transact(fill)
                except UnsettledError as error:
                    self.drop()
                    if time.monotonic() > deadline:
                        raise LogUnavailableError(
                            f"a transaction of {self.identity!r} did not finish: {error}",
                            hint="Either all of it counts or nothing does: run the service again.",
                        ) from error
                    # Two that fence each other over and over would never come to an end with their transactions.
                    time.sleep(_CHANCE.uniform(pause / 2, pause))
                    pause = min(2 * pause, _LONGEST_PAUSE_S)
                else:
                    return result

    def _hold(self, leases: Sequence[Lease]) -> bool:
        fresh = self._producer is None
        if self._producer is None:
            self._announce(leases)
            self.open()
        wanted = {lease.name: lease.token for lease in leases}
        if any(self._verified.get(name) != token for name, token in wanted.items()):
            self._check(leases)
            self._verified |= wanted
            fresh = True
        return fresh

    def open(self) -> None:
        """Take the id: what was pending under it is over, and whoever had it can write no more."""
        with self._guard:
            self.drop()
            producer = self._clients.producer(self.identity)
            self._clients.require_transactions()
            with told("Waiting up to %.0f s for the brokers to end what %s has begun", PATIENCE_S, self.identity):
                self._init(producer)
            self._producer = producer

    def _init(self, producer: Producer) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                producer.init_transactions(ASK_S)
            except KafkaException as error:
                self._clients.require_access()
                if not error.args[0].retriable() or time.monotonic() > deadline:
                    raise named(error, f"the transactional id {self.identity!r} cannot be used") from error
            else:
                return

    def drop(self) -> None:
        """Give the producer up, with what it has pending."""
        with self._guard:
            self._producer = None
            self._verified = {}

    def doubt(self, lease: str) -> None:
        """Somebody may have taken a lease, or given it back: look before the next transaction."""
        with self._guard:
            self._verified.pop(lease, None)

    def grant(self, lease: Lease) -> None:
        """This id has just written that the lease is this one."""
        self._verified[lease.name] = lease.token

    def _transact(self, fill: Fill) -> None:
        producer = self._producer
        assert producer is not None
        transaction = Transaction(producer, self._clients)
        try:
            producer.begin_transaction()
            fill(transaction)
        except KafkaException as error:
            raise self._failure(producer, _reason(producer, error)) from error
        except Crash:
            self.drop()  # as a kill would: whoever takes the id next undoes what is pending
            raise
        except BaseException:
            self._abort(producer)
            raise
        self._commit(producer)
        producer.poll(0)
        self._topics.wrote(transaction.places)

    def _commit(self, producer: Producer) -> None:
        deadline = time.monotonic() + TRANSACTION_MS / 1000
        while True:
            try:
                producer.commit_transaction(ASK_S)
            except KafkaException as error:
                cause: KafkaError = error.args[0]
                if cause.retriable() and not cause.txn_requires_abort() and time.monotonic() < deadline:
                    continue
                if cause.txn_requires_abort():
                    self._abort(producer)
                raise self._failure(producer, error) from error
            else:
                return

    def _failure(self, producer: Producer, error: KafkaException) -> Exception:
        """What a transaction that was not committed means: to begin again and look, or that it is of no use."""
        found = refusal(error, f"what {self.identity!r} writes is refused")
        if found is None:
            return UnsettledError(str(error.args[0]))
        self._abort(producer)
        self.drop()
        return found

    def _abort(self, producer: Producer) -> None:
        # The client ends a transaction only when all reports have been fetched, and does not fetch them by itself.
        producer.purge()
        deadline = time.monotonic() + _REPORTS_S
        while len(producer) and time.monotonic() < deadline:
            producer.poll(_LOOK_S)
        try:
            producer.abort_transaction(ASK_S)
        except KafkaException:
            self.drop()


def _reason(producer: Producer, error: KafkaException) -> KafkaException:
    """Why a transaction takes nothing more, where the client has only said that it does not."""
    if code_of(error) == KafkaError._STATE:  # noqa: SLF001 - the client's own names begin so
        try:
            producer.begin_transaction()  # cannot be, and says why
        except KafkaException as found:
            return found
    return error


class Transaction:
    """What is produced between the beginning and the commit.

    Attributes:
        places: The offset of the last record by topic and partition, known when it has been committed.
    """

    def __init__(self, producer: Producer, clients: Clients) -> None:
        self._producer = producer
        self._clients = clients
        self.places: dict[tuple[str, int], int] = {}

    def _find(self, topic: str) -> None:
        """Know where a topic is; a broker that comes back has lost nothing, so wait as long as a commit does."""
        self._clients.introduce(self._producer, topic, TRANSACTION_MS / 1000)

    def put(self, topic: str, key: str, value: bytes | None) -> None:
        """Write one entry of a journal."""
        self._find(topic)
        self._produce(topic, value, key.encode(), {"partition": 0, "on_delivery": self._delivered})

    def rows(self, topic: str, partition: int, content: pl.DataFrame, generation: str | None = None) -> None:
        """Write records of one partition, in order.

        Args:
            topic: Where.
            partition: Always named: the client's own choice is not Kafka's usual one.
            content: The records.
            generation: They say that they are of this one, unless they say of which they are.
        """
        self._find(topic)
        headers = _headers(content, generation)
        rows = zip(*(content.get_column(name).to_list() for name in ("key", "value", "ts")), headers, strict=True)
        last = content.height - 1
        for place, (key, value, ts, named_headers) in enumerate(rows):
            # For the client, 0 stands for now: the first millisecond of 1970 cannot be written.
            given: dict[str, Any] = {"partition": partition, "timestamp": max(1, ts)}
            if named_headers:
                given["headers"] = named_headers
            if place == last:
                given["on_delivery"] = self._delivered
            self._produce(topic, value, key, given)

    def _produce(self, topic: str, value: bytes | None, key: bytes | None, given: dict[str, Any]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                self._producer.produce(topic, value, key, **given)
            except BufferError:
                if time.monotonic() > deadline:
                    raise UnsettledError(f"records for topic {topic!r} do not get through") from None
                self._producer.poll(_AGAIN_S)
            except KafkaException as error:
                found = refusal(error, "a record cannot be sent", topic=topic)
                if found is not None:
                    raise found from error
                raise
            else:
                return

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.places[str(message.topic()), int(message.partition() or 0)] = int(message.offset() or 0)


_Headers = list[tuple[str, bytes | None]]


def _headers(content: pl.DataFrame, generation: str | None) -> list[_Headers]:
    """The headers of each row as the client takes them."""
    column = content.get_column("headers")
    own: _Headers = [] if generation is None else [(GENERATION, generation.encode())]
    if column.null_count() == len(column):
        return [own] * len(column)
    first = column.head(1)
    if len(column) > 1 and column.eq_missing(first.new_from_index(0, len(column))).all():
        return [_named(first.to_list()[0], own)] * len(column)
    return [_named(found, own) for found in column.to_list()]


def _named(found: list[dict[str, Any]] | None, own: _Headers) -> _Headers:
    headers: _Headers = [(header["name"], header["value"]) for header in found or ()]
    return headers if any(name == GENERATION for name, _ in headers) else [*headers, *own]
