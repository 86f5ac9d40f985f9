"""The address of a Spark cluster's master: what it may be, and what is refused by name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from everstate.errors import ConfigurationError

SCHEME: Final = "spark://"
_HOST: Final = re.compile(r"(?P<host>[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\]):(?P<port>[0-9]{1,5})")
_HINT: Final = "Write the address that the master shows: --master spark://host:7077"
#: What Spark knows besides, by how it begins.
_OTHERS: Final = {
    "local": ("Spark in this process is what runs without --master", "Leave --master out; --cores N says how many."),
    "sc://": (
        "Spark Connect is not supported: paged state, Python sources and atomic batches need the classic API",
        "Name the standalone master itself: --master spark://host:7077",
    ),
    "yarn": ("YARN is not supported, only standalone clusters are", _HINT),
    "k8s": ("Kubernetes as a Spark master is not supported, only standalone clusters are", _HINT),
    "mesos": ("Mesos is not supported, only standalone clusters are", _HINT),
}


@dataclass(frozen=True)
class Master:
    """Where a standalone cluster is.

    Attributes:
        addresses: Host and port of each master: one works, others may stand by.
    """

    addresses: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, text: str) -> Master:
        """Read an address.

        Raises:
            ConfigurationError: If it is not one, or names a kind of cluster that is not supported.

        Example:
            >>> str(Master.of("spark://one:7077,two:7077"))
            'spark://one:7077,two:7077'
        """
        for beginning, (why, hint) in _OTHERS.items():
            if text.startswith(beginning):
                raise ConfigurationError(f"the setting master cannot be {text!r}: {why}", hint=hint)
        found = [_HOST.fullmatch(part) for part in text.removeprefix(SCHEME).split(",")]
        if not text.startswith(SCHEME) or not all(found):
            raise ConfigurationError(f"the setting master cannot be {text!r}: it is not the address of one", hint=_HINT)
        return cls(tuple((part["host"].strip("[]"), int(part["port"])) for part in found if part))

    def __str__(self) -> str:
        hosts = (f"[{host}]" if ":" in host else host for host, _ in self.addresses)
        return SCHEME + ",".join(f"{host}:{port}" for host, (_, port) in zip(hosts, self.addresses, strict=True))
