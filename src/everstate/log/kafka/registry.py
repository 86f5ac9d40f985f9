"""Leases and documents of services, in one compacted topic per service.

Keys: `lease/<name>` has the token and its holder, `beat/<name>` a sign of life, `doc/<name>` a document, `ids/<lease>`
every transactional id that writes under that lease. A lease's records go through the lease's own id; signs of life
decide nothing, and do not. Times are the broker's: nobody's clock is compared with another's.
"""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from everstate.errors import FencedError, LogUnavailableError
from everstate.log import leasing
from everstate.log.descriptions import Holder, Lease
from everstate.log.kafka.clients import ASK_S
from everstate.log.kafka.failures import named, naming
from everstate.log.kafka.journal import Journal
from everstate.log.kafka.writer import Writer
from everstate.log.leasing import Tenure
from everstate.log.timing import wall_clock
from everstate.schema.topic_names import INTERNAL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from confluent_kafka import KafkaError, Message

    from everstate.log.descriptions import Commit
    from everstate.log.kafka.clients import Clients
    from everstate.log.kafka.journal import Entry
    from everstate.log.kafka.reading import Reader
    from everstate.log.kafka.writer import Fill, Transaction

_IDS: Final = "ids/"
_REGISTRY: Final = ".registry"
#: So many ids are taken at the same time.
_AT_ONCE: Final = 8


def service_of(lease: str) -> str:
    """The service that a lease belongs to: that of building is named after it."""
    return lease.partition(":")[0]


class Registry:
    """The registries and commits of all services.

    Args:
        clients: Make producers.
        reader: Reads topics.
    """

    def __init__(self, clients: Clients, reader: Reader) -> None:
        self._clients = clients
        self._reader = reader
        self._journals: dict[str, Journal] = {}
        self._writers: dict[str, Writer] = {}
        self._guard = threading.RLock()

    # -- what everything goes by ------------------------------------------------------------------------------------

    def journal(self, service: str) -> Journal:
        """The leases and documents of a service."""
        return self._journal(f"{INTERNAL}{service}{_REGISTRY}", append_time=True)

    def commits(self, service: str) -> Journal:
        """Its commits."""
        return self._journal(f"{INTERNAL}{service}.commits", append_time=False)

    def _journal(self, topic: str, *, append_time: bool) -> Journal:
        with self._guard:
            if topic not in self._journals:
                self._journals[topic] = Journal(self._reader, topic, append_time=append_time)
            return self._journals[topic]

    def output_writer(self, service: str, output: str) -> Writer:
        """What publishes an output."""
        return self._writer(f"es/{service}/out/{output}")

    def share_id(self, commit: Commit, number: int) -> str:
        """The id of one of the publishers of an output, if it has several."""
        return f"es/{commit.service}/out/{commit.output}/{number}"

    def share_writer(self, commit: Commit, number: int) -> Writer:
        """One of the publishers of an output: its id was announced by the process that has the lease."""
        return self._writer(self.share_id(commit, number), announced=True)

    def lease_writer(self, name: str) -> Writer:
        """What writes under a lease and nothing else."""
        return self._writer(f"es/{service_of(name)}/lease/{name}")

    def _writer(self, identity: str, *, announced: bool = False) -> Writer:
        with self._guard:
            if identity not in self._writers:
                self._writers[identity] = Writer(
                    self._clients,
                    self._reader.topics,
                    identity,
                    lambda leases: None if announced else self.announce([identity], leases),
                    self.require,
                )
            return self._writers[identity]

    def close(self) -> None:
        """Let go of all producers."""
        with self._guard:
            writers, self._writers = self._writers, {}
        for writer in writers.values():
            writer.drop()

    # -- leases -----------------------------------------------------------------------------------------------------

    def acquire(self, name: str, asking: Holder, *, take_over: bool) -> Lease:
        """Take a lease, and with it the right to write of whoever had it.

        Raises:
            LeaseHeldError: If its holder lives and is not to be replaced.
        """
        service = service_of(name)
        journals = [self.journal(service), self.commits(service)]
        for journal in journals:
            journal.create()
        if name == service:
            self._reader.topics.warn_of_few_copies([journal.topic for journal in journals])
        # A look first: who is refused should not have fenced the holder's producer before.
        if not take_over:
            before, now_ms = self._judged(name, asking)
            leasing.granted(name, before, asking, now_ms, take_over=False)
        writer = self.lease_writer(name)
        writer.drop()
        if self.journal(service).pending():
            # Whoever died in the middle of a transaction would otherwise be waited for until its time is up.
            self._fence(service, writer.identity)

        def attempt(_fresh: bool) -> tuple[tuple[Tenure | None, Lease], Fill]:  # noqa: FBT001
            entries = self.journal(service).read(settled=True)
            known, now_ms = self._judged(name, asking)
            granted = leasing.granted(name, known, asking, now_ms, take_over=take_over)
            ids = _ids(entries, name) | {writer.identity}

            def fill(transaction: Transaction) -> None:
                self._send(transaction, service, f"lease/{name}", _lease_document(granted))
                self._send(transaction, service, _IDS + name, {"ids": sorted(ids)})

            return (known, Lease(name, granted.token, asking)), fill

        known, lease = writer.run((), attempt)
        for other in list(self._writers.values()):
            other.doubt(name)
        writer.grant(lease)
        if known is not None and (known.held or name == service):
            self._fence(service, writer.identity)
        return lease

    def _fence(self, service: str, own: str) -> None:
        """Take every id that may write for a service: what was pending is over before anything is read."""
        ids = _ids(self.journal(service).read()) - {own}

        def take(identity: str) -> None:
            writer = self._writer(identity)
            writer.open()
            writer.drop()

        with ThreadPoolExecutor(min(_AT_ONCE, max(1, len(ids)))) as pool:
            list(pool.map(take, sorted(ids)))

    def announce(self, identities: Sequence[str], leases: Sequence[Lease]) -> None:
        """Have ids known before they are used for the first time: a takeover fences those that it knows."""
        if not leases or self.lease_writer(leases[0].name).identity in identities:
            return
        name = leases[0].name
        service = service_of(name)
        ids = _ids(self.journal(service).read(), name)
        if not ids.issuperset(identities):
            document = {"ids": sorted(ids.union(identities))}
            self.lease_writer(name).run(
                leases[:1],
                lambda _fresh: (None, lambda transaction: self._send(transaction, service, _IDS + name, document)),
            )

    def require(self, leases: Sequence[Lease]) -> None:
        """Refuse leases that are not held, after everything that was begun has come to its end."""
        for lease in leases:
            entries = self.journal(service_of(lease.name)).read(settled=True)
            leasing.check(lease.name, self._tenure(entries, lease.name), lease.token)

    def holder(self, name: str, asking: Holder) -> Holder | None:
        """Who holds a lease and lives."""
        tenure, now_ms = self._judged(name, asking)
        if tenure is None or not tenure.held:
            return None
        return tenure.holder if leasing.lives(tenure, asking, now_ms) else None

    def tenure(self, name: str) -> Tenure | None:
        """What is known of a lease."""
        return self._tenure(self.journal(service_of(name)).read(), name)

    def heartbeat(self, lease: Lease) -> None:
        """Say that the holder lives.

        Raises:
            FencedError: If the lease belongs to another process.
        """
        service = service_of(lease.name)
        leasing.check(lease.name, self._tenure(self.journal(service).read(), lease.name), lease.token)
        self._say(service, f"beat/{lease.name}", json.dumps({"token": lease.token}).encode())

    def release(self, lease: Lease) -> None:
        """Give a lease back, if it is still held."""
        service = service_of(lease.name)

        def attempt(_fresh: bool) -> tuple[None, Fill]:  # noqa: FBT001
            given_back = Tenure(lease.token, lease.holder, 0, held=False)
            return None, lambda transaction: self._send(
                transaction, service, f"lease/{lease.name}", _lease_document(given_back)
            )

        try:
            self.lease_writer(lease.name).run([lease], attempt)
        except FencedError:
            return
        for writer in list(self._writers.values()):
            writer.doubt(lease.name)

    def _tenure(self, entries: Mapping[str, Entry], name: str) -> Tenure | None:
        entry = entries.get(f"lease/{name}")
        if entry is None:
            return None
        found = json.loads(entry.value)
        holder = Holder(found["host"], found["pid"], found["started"])
        beat = entries.get(f"beat/{name}")
        alive = beat is not None and json.loads(beat.value)["token"] == found["token"]
        heard = max(entry.at_ms, beat.at_ms) if beat is not None and alive else entry.at_ms
        return Tenure(found["token"], holder, heard, found["held"])

    def _judged(self, name: str, asking: Holder) -> tuple[Tenure | None, int]:
        """What decides about a lease: what is known of it, and what time it is.

        That is the broker's where it matters: a holder of this machine is asked for by its number. Somebody's open
        transaction hides signs of life, and the question itself; so it is waited for.
        """
        service = service_of(name)
        tenure = self._tenure(self.journal(service).read(), name)
        if tenure is None or not tenure.held or tenure.holder.host == asking.host:
            return tenure, wall_clock()
        probe = f"probe/{name}"
        self._say(service, probe, b"{}")
        entries = self.journal(service).read(settled=True)
        return self._tenure(entries, name), entries[probe].at_ms

    # -- documents --------------------------------------------------------------------------------------------------

    def documents(self, service: str, prefix: str = "") -> dict[str, str]:
        """All documents of a service whose names begin like this, by name."""
        entries = self.journal(service).read()
        wanted = f"doc/{prefix}"
        return {
            key.removeprefix("doc/"): entries[key].value.decode() for key in sorted(entries) if key.startswith(wanted)
        }

    def write_document(self, service: str, name: str, value: str | None, leases: Sequence[Lease]) -> None:
        """Store a document, if these leases are held."""
        self.journal(service).create()
        content = None if value is None else value.encode()
        if not leases:
            self._say(service, f"doc/{name}", content)
            return
        self.lease_writer(leases[0].name).run(
            leases,
            lambda _fresh: (None, lambda transaction: self._put(transaction, service, f"doc/{name}", content)),
        )

    def services(self) -> list[str]:
        """The services that have documents."""
        kept = (name for name in self._reader.topics.all_names() if name.startswith(INTERNAL))
        found = [name.removeprefix(INTERNAL).removesuffix(_REGISTRY) for name in kept if name.endswith(_REGISTRY)]
        return sorted(service for service in found if self.documents(service))

    def put_document(self, transaction: Transaction, service: str, name: str, value: str | None) -> None:
        """The same as part of a transaction."""
        self._put(transaction, service, f"doc/{name}", None if value is None else value.encode())

    def forget(self, service: str) -> None:
        """Delete a service's documents."""
        for key in self.journal(service).read():
            if key.startswith("doc/"):
                self._say(service, key, None)

    # -- writing ----------------------------------------------------------------------------------------------------

    def wrote(self, places: Mapping[tuple[str, int], int]) -> None:
        """Note what another process has written for this one."""
        self._reader.topics.wrote(places)

    def _send(self, transaction: Transaction, service: str, key: str, document: Mapping[str, Any]) -> None:
        self._put(transaction, service, key, json.dumps(document).encode())

    def _put(self, transaction: Transaction, service: str, key: str, value: bytes | None) -> None:
        transaction.put(self.journal(service).topic, key, value)

    def _say(self, service: str, key: str, value: bytes | None) -> None:
        self.say(self.journal(service).topic, key, value)

    def say(self, topic: str, key: str, value: bytes | None) -> None:
        """Write one entry outside of any transaction, and wait until it is there."""
        failed: list[KafkaError | None] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            failed.append(error)
            if error is None:
                self._reader.topics.wrote({(topic, 0): int(message.offset() or 0)})

        producer = self._clients.plain()
        self._clients.introduce(producer, topic)
        with naming(f"topic {topic!r} cannot be written to", topic=topic):
            producer.produce(topic, value, key.encode(), partition=0, on_delivery=delivered)
        producer.flush(ASK_S)
        if not failed:
            raise LogUnavailableError(
                f"topic {topic!r} could not be written to within {ASK_S:.0f} s",
                hint="Nothing is lost: make sure that the brokers run, then run it again.",
            )
        if failed[0] is not None:
            raise named(failed[0], f"topic {topic!r} cannot be written to", topic=topic)


def _lease_document(tenure: Tenure) -> dict[str, Any]:
    return {"token": tenure.token, "held": tenure.held, **vars(tenure.holder)}


def _ids(entries: Mapping[str, Entry], lease: str | None = None) -> set[str]:
    """The ids that write under a lease, or under any: each lease has its own list, since each has its own writer."""
    lists = [json.loads(entry.value) for key, entry in entries.items() if _lists(key, lease)]
    return {identity for found in lists for identity in found["ids"]}


def _lists(key: str, lease: str | None) -> bool:
    return key.startswith(_IDS) if lease is None else key == _IDS + lease
