"""The clients of one log: one that asks and creates, some that read, and producers as they are needed.

A client has threads and connections of its own: it is never shared over a fork, and is closed with the log.
"""

from __future__ import annotations

import logging
import re
import socket
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, ConfigResource

from everstate.errors import ConfigurationError, LogDeniedError, LogError, LogUnavailableError
from everstate.log.kafka.failures import naming

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from concurrent.futures import Future

    from everstate.log.kafka.settings import ClientSettings

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")

#: How long a broker may take to answer a question.
ASK_S: Final = 30.0
#: How long a transaction may take; the broker undoes it after that.
TRANSACTION_MS: Final = 60_000
#: Whoever waits for longer than this is told what for.
_SLOW_S: Final = 3.0
#: What is asked for is given up first, with what it waited for; a client that gives nothing up is left.
_MARGIN_S: Final = 15.0
#: What Kafka keeps of transactions; the first one creates it.
_TRANSACTIONS: Final = "__transaction_state"
_COPIES: Final = "transaction.state.log.replication.factor"
#: Brokers that do not answer at all within so long are taken for unreachable.
_FIRST_ANSWER_S: Final = 15.0
#: Nobody listens there, or there is no such host: an address that was never right is not waited for as long.
_NOBODY_S: Final = 5.0
#: What the client puts around the reason why a connection fails.
_CONNECTION: Final = re.compile(r"^(\[thrd:\S*\]: )?\S+?: (?P<why>.*?)(?: \(after \d+ms in state .*)?$", re.DOTALL)
#: What brokers do that expect something else: nothing but the end of the connection says so.
_CLOSED: Final = "closed by peer"
_OTHER_PROTOCOL: Final = (
    "Brokers do so with a client of a different security.protocol, and this one's is {protocol}: PLAINTEXT, SSL, "
    "SASL_PLAINTEXT or SASL_SSL, as the brokers' listener has it. EVERSTATE_KAFKA_SECURITY_PROTOCOL sets it, or "
    "security.protocol in the file that EVERSTATE_KAFKA_CONFIG names."
)
#: A client that is refused tries again every second. What was heard longer ago has passed: a token was renewed.
_DENIED_S: Final = 60.0


@contextmanager
def told(text: str, *words: object) -> Iterator[None]:
    """Say what is waited for, if the block takes so long that somebody might wonder."""
    timer = threading.Timer(_SLOW_S, logger.warning, (text, *words))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def answer(future: Future[Answer]) -> Answer:
    """What the brokers have answered; none at all is an error of Kafka's like the others."""
    try:
        return future.result(ASK_S + _MARGIN_S)
    except TimeoutError as error:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "the brokers do not answer")) from error  # noqa: SLF001 - its name


@contextmanager
def _configuring() -> Iterator[None]:
    """Name settings that the client refuses as it is made: no broker was asked."""
    try:
        yield
    except KafkaException as error:
        raise ConfigurationError(
            f"Kafka's client cannot be made with these settings: {error.args[0].str()}",
            hint="Correct them: EVERSTATE_KAFKA_CONFIG names their file, EVERSTATE_KAFKA_SSL_CA_LOCATION and the like "
            "stand for single settings, and win.",
        ) from error


def _is_known(host: str) -> bool:
    try:
        return bool(socket.getaddrinfo(host, None))
    except OSError:
        return False


class _Quiet:
    """Takes what librdkafka has to say: all that matters is raised as well, but for why a connection ended.

    Args:
        failed: Is told that.
    """

    def __init__(self, failed: Callable[[str], None]) -> None:
        self._failed = failed

    def log(self, level: int, text: str, *args: object) -> None:
        """Pass a line on to those that look for it."""
        del level
        logger.debug(text, *args)
        if args and args[0] == "FAIL":
            self._failed(str(args[-1]))


class Clients:
    """Makes and keeps the clients of one log.

    Args:
        servers: Where the brokers are.
        settings: What the user has set.
        reached: Whether brokers have answered at this address before.
    """

    def __init__(self, servers: str, settings: ClientSettings, *, reached: bool = False) -> None:
        self.servers = servers
        self._given: Mapping[str, str] = settings.values
        self._guard = threading.RLock()
        self._admin: AdminClient | None = None
        self._idle: list[Consumer] = []
        self._known: dict[int, set[str]] = {}
        self._plain: Producer | None = None
        self._denied: tuple[float, str] | None = None
        self._failed: str | None = None
        self._nobody = False
        self._reached = reached
        self._transactional = False

    def _options(self, **more: Any) -> dict[str, Any]:
        return {
            "client.id": "everstate",
            "socket.keepalive.enable": True,
            **self._given,
            "bootstrap.servers": self.servers,
            "logger": _Quiet(self._lost),
            "error_cb": self._heard,
            # A broker that comes back is noticed soon.
            "reconnect.backoff.max.ms": 1000,
            "retry.backoff.ms": 20,
            "allow.auto.create.topics": False,
            **more,
        }

    def _heard(self, error: Any) -> None:
        """What a client says of its connections: a refused password is not worth waiting for."""
        if error.name() in {"_AUTHENTICATION", "_SSL", "SASL_AUTHENTICATION_FAILED"}:
            self._denied = time.monotonic(), error.str()
        elif error.name() == "_ALL_BROKERS_DOWN":
            self._nobody = True

    def _lost(self, reason: str) -> None:
        """Why a connection failed or ended."""
        found = _CONNECTION.match(reason)
        self._failed = found["why"] if found else reason

    def require_access(self) -> None:
        """Stop if the brokers have refused the credentials lately.

        Raises:
            LogDeniedError: With what they said.
        """
        if self._denied is not None and time.monotonic() < self._denied[0] + _DENIED_S:
            raise LogDeniedError(
                f"the brokers at {self.servers} refuse this client: {self._denied[1]}",
                hint="Correct the credentials or certificates: EVERSTATE_KAFKA_CONFIG names their file, "
                "EVERSTATE_KAFKA_SASL_PASSWORD and the like stand for single settings.",
            )

    def admin(self) -> AdminClient:
        """The client that asks and creates; the brokers have answered it.

        Raises:
            LogUnavailableError: If no broker answers.
            LogDeniedError: If they refuse the credentials.
        """
        with self._guard:
            if self._admin is None:
                self._denied, self._failed, self._nobody = None, None, False
                options = {k: v for k, v in self._options().items() if k != "allow.auto.create.topics"}
                with _configuring():
                    admin = AdminClient(options)
                self._require_answer(admin)
                if not self._reached:
                    self._require_hosts(admin)
                self._admin, self._reached = admin, True
            return self._admin

    def _require_answer(self, admin: AdminClient) -> None:
        """Have the brokers answer for the first time; the reason why they do not is the connection's."""
        patience_s = _FIRST_ANSWER_S if self._reached else min(_NOBODY_S, _FIRST_ANSWER_S)
        what = f"no broker at {self.servers} answers"
        try:
            try:
                # A name that cannot be: all that is wanted is an answer.
                self._ask(admin, "__everstate", patience_s, what)
            except LogUnavailableError:
                if self._reached or self._nobody:
                    raise
                self._ask(admin, "__everstate", _FIRST_ANSWER_S - patience_s, what)
        except LogUnavailableError as error:
            if self._failed is None:
                raise
            protocol = self._given.get("security.protocol", "PLAINTEXT").upper()
            hint = _OTHER_PROTOCOL.format(protocol=protocol) if _CLOSED in self._failed else error.hint
            raise LogUnavailableError(f"{what}: {self._failed}", hint=hint) from error

    def _require_hosts(self, admin: AdminClient) -> None:
        """Brokers say where they are: a client that knows none of these hosts would wait for them in vain."""
        with naming(f"the brokers at {self.servers} do not say where they are"):
            brokers = admin.list_topics(topic="__everstate", timeout=ASK_S).brokers.values()
        if brokers and not any(_is_known(broker.host) for broker in brokers):
            places = ", ".join(f"{broker.host}:{broker.port}" for broker in brokers)
            raise LogUnavailableError(
                f"the brokers at {self.servers} answer, and give {places} as their address, which is not known here",
                hint="Have them give one that clients can reach (advertised.listeners in their settings), or make that "
                "name known here.",
            )

    def _ask(self, client: Any, topic: str, patience_s: float, what: str, *, about: str | None = None) -> None:
        """Have a client ask for a topic until it is answered; refused credentials are not worth asking again."""
        deadline = time.monotonic() + patience_s
        with naming(what, topic=about):
            while True:
                try:
                    client.list_topics(topic=topic, timeout=1.0)
                except KafkaException:
                    client.poll(0)
                    self.require_access()
                    if time.monotonic() > deadline:
                        raise
                else:
                    return

    @contextmanager
    def consumer(self) -> Iterator[Consumer]:
        """A consumer for this thread alone, for as long as the block; it reads what was committed."""
        with self._guard:
            consumer = self._idle.pop() if self._idle else None
        if consumer is None:
            self.admin()
            consumer = Consumer(
                self._options(
                    **{
                        "group.id": "everstate",  # asked for, never joined
                        "enable.auto.commit": False,
                        "enable.auto.offset.store": False,
                        "enable.partition.eof": True,
                        "isolation.level": "read_committed",
                        "auto.offset.reset": "error",
                        # A small batch would wait for half a second to become a larger one.
                        "fetch.wait.max.ms": 10,
                        "fetch.error.backoff.ms": 10,
                        # With 100,000 messages at hand the client stops fetching, by default for a second, in which
                        # they are long used up: large batches were read at less than half the speed.
                        "fetch.queue.backoff.ms": 10,
                        "queued.max.messages.kbytes": 65_536,
                        "check.crcs": True,
                    }
                )
            )
            self._known.pop(id(consumer), None)
        try:
            yield consumer
            consumer.unassign()
        except BaseException:
            # What it was doing is unknown; the next one starts over.
            self._known.pop(id(consumer), None)
            consumer.close()
            raise
        with self._guard:
            self._idle.append(consumer)

    def introduce(self, client: Consumer | Producer, topic: str, patience_s: float = ASK_S) -> None:
        """Have a client know where a topic is: by itself it would look only once a second."""
        with self._guard:
            known = self._known.setdefault(id(client), set())
            if topic in known:
                return
            known.add(topic)
        self._ask(client, topic, patience_s, f"topic {topic!r} cannot be found", about=topic)

    def forget(self) -> None:
        """Let go of all that may know of a topic that is gone: the next one of that name is another."""
        with self._guard:
            idle, self._idle, self._known = self._idle, [], {}
            self._admin = None
        for consumer in idle:
            consumer.close()

    def producer(self, transactional_id: str | None = None, *, timeout_ms: int = TRANSACTION_MS) -> Producer:
        """A new producer; with an id, one of transactions."""
        self.admin()
        more: dict[str, Any] = {
            "enable.idempotence": True,
            "linger.ms": 5,
            "compression.type": "lz4",
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 262_144,
            "batch.num.messages": 50_000,
            # How large a record may be is the topic's business.
            "message.max.bytes": 1_000_000_000,
        }
        if transactional_id is not None:
            more |= {"transactional.id": transactional_id, "transaction.timeout.ms": timeout_ms}
        producer = Producer(self._options(**more))
        self._known.pop(id(producer), None)  # one that is gone may have had the same number
        # With a connection at hand; else it would look for its coordinator half a second later.
        self.introduce(producer, "__everstate")
        return producer

    def require_transactions(self) -> None:
        """Stop if the cluster is too small for what it is to keep of transactions: it would be waited for in vain.

        Raises:
            LogError: With both numbers.
        """
        if self._transactional:
            return
        with naming("the cluster cannot be asked for its transactions"):
            known = self.admin().list_topics(topic=_TRANSACTIONS, timeout=ASK_S)
        if known.topics[_TRANSACTIONS].error is not None:
            copies = self._broker_setting(next(iter(known.brokers)), _COPIES)
            if copies is not None and int(copies) > len(known.brokers):
                raise LogError(
                    f"the cluster at {self.servers} cannot have transactions: it keeps {copies} copies of them "
                    f"({_COPIES}), and has {len(known.brokers)} broker{'s' if len(known.brokers) > 1 else ''}",
                    hint=f"Start more brokers, or set {_COPIES} (and transaction.state.log.min.isr) lower in the "
                    "settings of all brokers, and start them again.",
                )
        self._transactional = True

    def _broker_setting(self, broker: int, name: str) -> str | None:
        """A setting of a broker; None where it may not be asked for."""
        resource = ConfigResource(ConfigResource.Type.BROKER, str(broker))
        try:
            found = answer(self.admin().describe_configs([resource], request_timeout=ASK_S)[resource])
        except KafkaException:
            return None
        return found[name].value if name in found else None

    def plain(self) -> Producer:
        """The producer for what needs no transaction: signs of life, and documents that no lease guards."""
        with self._guard:
            if self._plain is None:
                self._plain = self.producer()
            return self._plain

    def close(self) -> None:
        """Let go of all of them; a later call makes new ones."""
        with self._guard:
            idle, self._idle, self._known = self._idle, [], {}
            self._admin = self._plain = None
        for consumer in idle:
            consumer.close()
