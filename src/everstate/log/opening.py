"""Opening a log by its address."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from everstate.errors import ConfigurationError
from everstate.log.embedded import EmbeddedLog
from everstate.log.memory import MemoryLog

if TYPE_CHECKING:
    from pathlib import Path

    from everstate.log.kafka.settings import ClientSettings
    from everstate.log.protocol import Log

#: What somebody writes who means a cluster: the word, or hosts and ports.
_CLUSTER: Final = re.compile(r"kafka:/*(?P<named>[^/].*)|(?P<plain>[\w.-]+:\d+(,[\w.-]+:\d+)*)", re.IGNORECASE)


def check_address(address: str) -> None:
    """Refuse what would be taken for a folder and is meant for a cluster; a folder that is there is one.

    Raises:
        ConfigurationError: With the address as it has to be written.
    """
    found = _CLUSTER.fullmatch(address)
    if found is None or address.startswith("kafka://") or os.path.isdir(address):  # noqa: PTH112 - as it is written
        return
    servers = found["named"] or found["plain"]
    raise ConfigurationError(
        f"{address!r} is neither a folder nor the address of a Kafka cluster",
        hint=f"Write --log kafka://{servers} for the cluster, or --log ./{address} for a folder of that name.",
    )


def open_log(
    url_or_path: str | Path,
    *,
    trusted: bool = False,
    settings: ClientSettings | None = None,
    staging: Path | str | None = None,
) -> Log:
    """Open the log at a path; a folder that is not there yet is created with the first thing that is written.

    Args:
        url_or_path: Where it is: a folder, or `kafka://host:port`. `memory:` is a new log in memory, whose `url` opens
            it again in the same process.
        trusted: Another process of the same service has opened it before, and has found it whole.
        settings: Security and the like, for Kafka; by default what the environment says.
        staging: A folder for records on their way to Kafka, which all processes of a service see.

    Raises:
        ConfigurationError: If the address is of a kind that is not supported.
    """
    address = str(url_or_path)
    check_address(address)
    if address.startswith("memory:"):
        name = address.removeprefix("memory:")
        return MemoryLog.opened(name) if name else MemoryLog()
    scheme, separator, rest = address.partition("://")
    if separator and scheme == "file":
        return EmbeddedLog(rest, trusted=trusted)
    if separator and scheme == "kafka":
        return _kafka(rest.rstrip("/"), settings, staging, trusted=trusted)
    if separator:
        raise ConfigurationError(
            f"there is no log of the kind {scheme!r} ({address})",
            hint="Name a folder, for example --log ./.everstate, or a cluster: --log kafka://host:9092",
        )
    return EmbeddedLog(address, trusted=trusted)


def _kafka(servers: str, settings: ClientSettings | None, staging: Path | str | None, *, trusted: bool) -> Log:
    try:
        from everstate.log.kafka import KafkaLog  # noqa: PLC0415 - an extra, and it takes a while
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "confluent_kafka":
            raise
        raise ConfigurationError(
            f"kafka://{servers} needs a package that is not installed: confluent-kafka",
            hint="Install it: pip install 'everstate[kafka]'",
        ) from error
    return KafkaLog(servers, settings=settings, staging=staging, trusted=trusted)
