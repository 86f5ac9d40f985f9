"""Topics of a Kafka cluster: creating, describing, and where their partitions begin and end."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import IsolationLevel, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import ConfigResource, NewTopic, OffsetSpec

from everstate.errors import TopicExistsError, TopicNotFoundError
from everstate.log.checks import check_config
from everstate.log.descriptions import TopicConfig, TopicInfo
from everstate.log.kafka.clients import ASK_S, answer
from everstate.log.kafka.failures import MOVING, UNKNOWN_TOPIC, away, code_of, named, naming
from everstate.schema.topic_names import check_topic_name, is_internal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from everstate.log.descriptions import Vector
    from everstate.log.kafka.clients import Clients

logger = logging.getLogger(__name__)

#: A topic that has just been created is not known to every part of a broker at once.
_SETTLING_S: Final = 10.0
_LOOK_S: Final = 0.02
#: The brokers show what was committed within milliseconds, unless somebody else's transaction is in the way.
_SEEN_S: Final = 2.0
#: As many copies of everything as is usual, where there are so many brokers.
_REPLICAS: Final = 3
_MIN_ISR: Final = 2
_FOR_EVER: Final = -1


@dataclass(frozen=True)
class Topics:
    """The topics that the brokers have.

    Attributes:
        unseen: The offsets of what this process has committed last, as long as nobody has looked.
    """

    clients: Clients
    unseen: dict[tuple[str, int], int] = field(default_factory=dict)

    def create(self, name: str, config: TopicConfig, *, exist_ok: bool, more: Mapping[str, str] | None = None) -> None:
        """Create a topic.

        Args:
            name: Its name.
            config: How it keeps its records.
            exist_ok: One that is there is left as it is.
            more: Settings of Kafka's beyond those.

        Raises:
            TopicExistsError: If it is there, which is not allowed.
        """
        check_topic_name(name)
        check_config(name, config)
        admin = self.clients.admin()
        with naming(f"topic {name!r} cannot be created"):
            brokers = len(admin.list_topics(topic=name, timeout=ASK_S).brokers)
        replicas = config.replication or min(_REPLICAS, brokers)
        settings = {**kafka_settings(config, replicas), **(more or {})}
        wanted = NewTopic(name, config.partitions, replicas, config=settings)
        try:
            answer(admin.create_topics([wanted], operation_timeout=ASK_S, request_timeout=ASK_S)[name])
        except KafkaException as error:
            found = named(error, f"topic {name!r} cannot be created", topic=name)
            if not isinstance(found, TopicExistsError):
                found.hint = f"{found.hint} By hand: {creation_command(name, config, settings, replicas)}"
            if not (isinstance(found, TopicExistsError) and exist_ok):
                raise found from error
        self._settle(name)  # also if somebody else has made it a moment ago

    def warn_of_few_copies(self, names: Sequence[str]) -> None:
        """Say so if a disk that is lost may take topics along."""
        copies = min((len(found.partitions[0].replicas) for found in self.described(names).values()), default=_REPLICAS)
        if copies < _REPLICAS:
            logger.warning(
                "This cluster keeps %d cop%s of the service's topics, where %d are usual: a lost disk may take with "
                "it what the service has published and recorded",
                copies,
                "y" if copies == 1 else "ies",
                _REPLICAS,
            )

    def _settle(self, name: str) -> None:
        """Wait until a new topic can be asked for."""
        deadline = time.monotonic() + _SETTLING_S
        while True:
            try:
                self.ends([name])
            except TopicNotFoundError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_LOOK_S)
            else:
                return

    def delete(self, name: str) -> None:
        """Delete a topic, and wait until it is gone."""
        check_topic_name(name)
        with naming(f"topic {name!r} cannot be deleted", topic=name):
            admin = self.clients.admin()
            answer(admin.delete_topics([name], operation_timeout=ASK_S, request_timeout=ASK_S)[name])
        deadline = time.monotonic() + _SETTLING_S
        while self.exists(name) and time.monotonic() < deadline:
            time.sleep(_LOOK_S)
        self.clients.forget()

    def names(self) -> list[str]:
        """All topics but those of Kafka and Everstate themselves."""
        return [name for name in self.all_names() if not name.startswith("__") and not is_internal(name)]

    def all_names(self) -> list[str]:
        """All topics, sorted."""
        with naming("the topics cannot be listed"):
            return sorted(self.clients.admin().list_topics(timeout=ASK_S).topics)

    def described(self, names: Sequence[str]) -> dict[str, Any]:
        """What the brokers say of topics; those that are not there are left out."""
        if not names:
            return {}
        once = list(dict.fromkeys(names))  # who reads what it writes to names it twice, and brokers refuse that
        futures = self.clients.admin().describe_topics(TopicCollection(once), request_timeout=ASK_S)
        found = {}
        for name, future in futures.items():
            try:
                found[name] = answer(future)
            except KafkaException as error:
                if code_of(error) not in UNKNOWN_TOPIC:
                    raise named(error, f"topic {name!r} cannot be described", topic=name) from error
        return found

    def exists(self, name: str) -> bool:
        """Whether there is such a topic."""
        return name in self.described([name])

    def ids(self, names: Sequence[str]) -> dict[str, str]:
        """The ids of topics.

        Raises:
            TopicNotFoundError: If one is not there.
        """
        return {name: str(found.topic_id) for name, found in self._all(names).items()}

    def partitions(self, names: Sequence[str]) -> dict[str, list[int]]:
        """The numbers of the partitions of topics."""
        return {name: sorted(part.id for part in found.partitions) for name, found in self._all(names).items()}

    def _all(self, names: Sequence[str]) -> dict[str, Any]:
        found = self.described(names)
        for name in names:
            if name not in found:
                check_topic_name(name)
                raise TopicNotFoundError(name)
        return found

    def begins(self, names: Sequence[str]) -> Vector:
        """The first offset of every partition."""
        return self._offsets(names, OffsetSpec.earliest(), IsolationLevel.READ_UNCOMMITTED)

    def ends(self, names: Sequence[str], *, committed: bool = True) -> Vector:
        """The offset of every partition up to which all is decided, or if that is asked for, up to which it is written.

        An open transaction holds the first one back. Of several partitions, each is asked for on its own.
        """
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        return self._offsets(names, OffsetSpec.latest(), level)

    def _offsets(self, names: Sequence[str], spec: Any, level: Any) -> Vector:
        places = [(name, number) for name, numbers in self.partitions(names).items() for number in numbers]
        deadline = time.monotonic() + _SETTLING_S
        while True:
            try:
                found = self.asked(places, spec, level)
            except KafkaException as error:
                # Where a topic was created again, the client may still ask for the one before.
                what = f"the offsets of {', '.join(names)} cannot be read"
                if code_of(error) not in UNKNOWN_TOPIC:
                    raise named(error, what, topic=names[0]) from error
                if time.monotonic() > deadline:
                    self._all(names)  # says so if one is gone
                    raise away(error, what) from error
                self.clients.forget()
                time.sleep(_LOOK_S)
            else:
                vector: Vector = {name: {} for name in names}
                for (name, number), offset in sorted(found.items()):
                    vector[name][number] = offset
                return vector

    def asked(self, places: Sequence[tuple[str, int]], spec: Any, level: Any) -> dict[tuple[str, int], int]:
        """Offsets of partitions that are known to be there; of what this process has committed, all is seen."""
        deadline = time.monotonic() + _SEEN_S
        while True:
            found = self._ask(places, spec, level)
            behind = [place for place in places if place in self.unseen and found[place] <= self.unseen[place]]
            latest = level == IsolationLevel.READ_COMMITTED
            if not latest or not behind or time.monotonic() > deadline:
                for place in places if latest else ():
                    self.unseen.pop(place, None)
                return found
            time.sleep(_LOOK_S / 10)

    def _ask(self, places: Sequence[tuple[str, int]], spec: Any, level: Any) -> dict[tuple[str, int], int]:
        if not places:
            return {}
        asked = {TopicPartition(name, number): spec for name, number in places}
        deadline = time.monotonic() + ASK_S
        while True:
            futures = self.clients.admin().list_offsets(asked, isolation_level=level, request_timeout=ASK_S)
            try:
                return {(at.topic, at.partition): answer(future).offset for at, future in futures.items()}
            except KafkaException as error:
                if code_of(error) not in MOVING or time.monotonic() > deadline:
                    raise
            time.sleep(_LOOK_S)

    def wrote(self, places: Mapping[tuple[str, int], int]) -> None:
        """Note what a transaction of this process has written: it is decided, but a broker may not show it at once."""
        self.unseen.update(places)

    def settings(self, name: str) -> dict[str, str]:
        """Kafka's own settings of a topic."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, name)
        with naming(f"topic {name!r} cannot be described", topic=name):
            found = answer(self.clients.admin().describe_configs([resource], request_timeout=ASK_S)[resource])
        return {entry.name: entry.value for entry in found.values()}

    def id_of(self, name: str) -> str:
        """The id of a topic."""
        return self.ids([name])[name]

    def config(self, name: str) -> TopicConfig:
        """How a topic keeps its records."""
        found = self._all([name])[name]
        return config_of(self.settings(name), len(found.partitions), len(found.partitions[0].replicas))

    def describe(self, name: str) -> TopicInfo:
        """Configuration and offsets; how many records there are, nobody knows."""
        found = self._all([name])[name]
        return TopicInfo(
            name,
            str(found.topic_id),
            config_of(self.settings(name), len(found.partitions), len(found.partitions[0].replicas)),
            self.begins([name])[name],
            self.ends([name])[name],
            None,
            None,
        )


def kafka_settings(config: TopicConfig, replicas: int) -> dict[str, str]:
    """How Kafka calls what a topic is to do with its records."""
    expires = config.retention_ms is not None
    policy = {(True, True): "compact,delete", (True, False): "compact"}.get((config.compact, expires), "delete")
    min_isr = config.min_isr or max(1, min(_MIN_ISR, replicas - 1))
    return {
        "cleanup.policy": policy,
        # Retention goes by the time in the records, so a table's would go that was last changed long ago.
        "retention.ms": str(_FOR_EVER if config.retention_ms is None else config.retention_ms),
        "delete.retention.ms": str(config.delete_retention_ms),
        "message.timestamp.type": "LogAppendTime" if config.append_time else "CreateTime",
        "min.insync.replicas": str(min_isr),
    }


def config_of(settings: Mapping[str, str], partitions: int, replicas: int) -> TopicConfig:
    """The other way round."""
    policy = settings.get("cleanup.policy", "delete").split(",")
    retention = int(settings.get("retention.ms", _FOR_EVER))
    return TopicConfig(
        partitions=partitions,
        compact="compact" in policy,
        retention_ms=retention if "delete" in policy and retention >= 0 else None,
        delete_retention_ms=int(settings.get("delete.retention.ms", 0)),
        replication=replicas,
        min_isr=int(settings.get("min.insync.replicas", 1)),
        append_time=settings.get("message.timestamp.type") == "LogAppendTime",
    )


def creation_command(name: str, config: TopicConfig, settings: Mapping[str, str], replicas: int) -> str:
    """What somebody with the right to do so would type."""
    options = " ".join(f"--config {key}={value}" for key, value in settings.items())
    return (
        f"kafka-topics.sh --bootstrap-server HOST:PORT --create --topic {name} --partitions {config.partitions} "
        f"--replication-factor {replicas} {options}"
    )
