"""How this machine and a cluster reach each other."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from everstate.errors import EngineError

if TYPE_CHECKING:
    from everstate.generations.deploy.master import Master

_ANSWER_S: Final = 5.0


@dataclass(frozen=True)
class Route:
    """The way to a master.

    Attributes:
        own: The address from which this machine reaches it; workers, which reach the master, reach that.
        master: The master's address.
    """

    own: str
    master: str

    @property
    def stays_here(self) -> bool:
        """Whether the master is on this machine: only then do both ends have one address."""
        return self.own == self.master


def route_to(master: Master) -> Route:
    """How the first master that answers is reached.

    Raises:
        EngineError: If none does.
    """
    refused = []
    for host, port in master.addresses:
        try:
            with socket.create_connection((host, port), timeout=_ANSWER_S) as connection:
                return Route(str(connection.getsockname()[0]), str(connection.getpeername()[0]))
        except OSError as error:
            refused.append(f"{host}:{port}: {error.strerror or error}")
    raise EngineError(
        f"no Spark master answers at {master} ({'; '.join(refused)})",
        hint="Start it (spark-class org.apache.spark.deploy.master.Master --host HOST --port 7077), or correct "
        "--master; its own page shows the address that it listens on.",
    )
