"""Kafka's errors in the words of a log."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaError, KafkaException

from everstate.errors import (
    EverstateError,
    LogDeniedError,
    LogError,
    LogUnavailableError,
    TopicExistsError,
    TopicNotFoundError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

UNKNOWN_TOPIC: Final = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001 - the client's own names begin so
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
    KafkaError.UNKNOWN_TOPIC_ID,
    KafkaError._NOENT,  # noqa: SLF001 - no leader of any partition: the topic is not there, or not yet
)
#: A partition that has just been created, or moves to another broker; it passes.
MOVING: Final = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.KAFKA_STORAGE_ERROR,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
)
_AWAY: Final = (
    KafkaError._TRANSPORT,  # noqa: SLF001
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
    KafkaError._TIMED_OUT,  # noqa: SLF001
    KafkaError._TIMED_OUT_QUEUE,  # noqa: SLF001
    KafkaError._MSG_TIMED_OUT,  # noqa: SLF001
    KafkaError._RESOLVE,  # noqa: SLF001
    KafkaError._STATE,  # noqa: SLF001
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_ENOUGH_REPLICAS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)
_DENIED: Final = (
    KafkaError._AUTHENTICATION,  # noqa: SLF001
    KafkaError._SSL,  # noqa: SLF001
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)
_ALTER: Final = "kafka-configs.sh --bootstrap-server HOST:PORT --alter --topic {topic} --add-config"
_TOO_LARGE: Final = (
    f"Let the topic accept larger ones: {_ALTER} max.message.bytes=BYTES. Small records are sent together, up to a "
    "million bytes of them, so it should be no less than that."
)
_ANY_TIME: Final = 2**63 - 1
_OTHER_TIME: Final = (
    "Its time is further from the broker's clock than the topic allows. Allow any time: "
    f"{_ALTER} message.timestamp.after.max.ms={_ANY_TIME},message.timestamp.before.max.ms={_ANY_TIME}"
)
_AGAINST_RULES: Final = (
    "Check the rules of the topic and of the cluster; a compacted topic accepts no record without a key."
)
#: Why a broker does not take a record, and what helps; it will not take it the next time, either.
_REFUSED: Final = {
    KafkaError.MSG_SIZE_TOO_LARGE: _TOO_LARGE,
    KafkaError.RECORD_LIST_TOO_LARGE: _TOO_LARGE,
    KafkaError.INVALID_TIMESTAMP: _OTHER_TIME,
    KafkaError.INVALID_RECORD: _AGAINST_RULES,
    KafkaError.POLICY_VIOLATION: _AGAINST_RULES,
}
#: How the client reports what a broker has refused.
_REPORTED: Final = re.compile(r"ProduceRequest for (?P<topic>\S+) \[\d+\] .*? failed: (?P<why>.*?)(?: \(broker .*)?$")
_WAIT: Final = "Nothing is lost: make sure that the brokers run and can be reached from here, then run it again."
_RIGHTS: Final = (
    "Correct the credentials (EVERSTATE_KAFKA_CONFIG, EVERSTATE_KAFKA_SASL_PASSWORD and the like), or have the rights "
    "given: kafka-acls.sh --bootstrap-server HOST:PORT --add --allow-principal User:NAME --operation All --topic '*', "
    "and the same with --transactional-id es/ --resource-pattern-type prefixed instead of the topic."
)


def code_of(error: KafkaException) -> int:
    """Kafka's number of an error."""
    found = error.args[0]
    return int(found.code()) if isinstance(found, KafkaError) else KafkaError.UNKNOWN


def named(error: KafkaException | KafkaError, what: str, *, topic: str | None = None) -> EverstateError:
    """The error for something that Kafka refused or did not answer.

    Args:
        error: What the client raised.
        what: What was tried, in words that go on with a colon.
        topic: The topic that it was about.
    """
    cause = error.args[0] if isinstance(error, KafkaException) else error
    if not isinstance(cause, KafkaError):
        return LogError(f"{what}: {cause}", hint="See what the broker says about it.")
    code = cause.code()
    if topic is not None and code in UNKNOWN_TOPIC:
        return TopicNotFoundError(topic)
    if topic is not None and code == KafkaError.TOPIC_ALREADY_EXISTS:
        return TopicExistsError(topic)
    if code in _DENIED:
        return LogDeniedError(f"{what}: {cause.str()}", hint=_RIGHTS)
    if code in _AWAY:
        return LogUnavailableError(f"{what}: {cause.str()}", hint=_WAIT)
    return LogError(f"{what}: {cause.str()} ({cause.name()})", hint="See what the broker says about it.")


def away(error: KafkaException, what: str) -> LogUnavailableError:
    """The error for a topic that is there, although the client does not find it: none of its brokers leads it."""
    return LogUnavailableError(f"{what}: {error.args[0].str()}", hint=_WAIT)


def held_back(topic: str) -> LogUnavailableError:
    """The error for a transaction, whoever's, that does not come to its end."""
    return LogUnavailableError(
        f"an open transaction holds topic {topic!r} back",
        hint="It ends by itself, or the broker ends it when it times out. Look for it: "
        "kafka-transactions.sh --bootstrap-server HOST:PORT find-hanging",
    )


def refusal(error: KafkaException, what: str, *, topic: str | None = None) -> EverstateError | None:
    """The error for what the brokers will refuse as often as it is tried; None if it may pass.

    Args:
        error: What the client raised.
        what: What was tried, in words that go on with a colon.
        topic: The topic that it was about, if that is known.
    """
    code, cause = code_of(error), error.args[0]
    if code in _DENIED:
        return named(error, what)
    if code not in _REFUSED:
        return None
    reported = _REPORTED.match(cause.str())
    place, why = (reported["topic"], reported["why"]) if reported else (topic or "TOPIC", cause.str())
    where = f"topic {place!r} does not take a record" if reported or topic else what
    return LogError(f"{where}: {why}", hint=_REFUSED[code].format(topic=place))


@contextmanager
def naming(what: str, *, topic: str | None = None) -> Iterator[None]:
    """Have what the client raises in this block go on under its name."""
    try:
        yield
    except KafkaException as error:
        raise named(error, what, topic=topic) from error
