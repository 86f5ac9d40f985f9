"""Gets what a Kafka broker for tests needs: Maven from the system's package manager as root, then Apache Kafka with it.

Nothing but tests needs it, so what is missing is said and does not stop the set-up.
"""

from __future__ import annotations

import os
import shutil
import sys

import kafka_broker
from setup_java import run

#: By package manager: what to run first, and how to install Maven.
MANAGERS: dict[str, tuple[list[str], list[str]]] = {
    "apt-get": (
        ["apt-get", "update", "-qq"],
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=60", "maven"],
    ),
    "dnf": ([], ["dnf", "install", "-y", "-q", "maven"]),
    "apk": ([], ["apk", "add", "--quiet", "maven"]),
}


def install_maven() -> None:
    """Installs Maven where that is possible."""
    manager = next((name for name in MANAGERS if shutil.which(name)), None)
    if manager is None or os.geteuid() != 0:
        return
    print(f"Installing Maven with {manager} ...", flush=True)
    refresh, install = MANAGERS[manager]
    if refresh:
        run(refresh)
    run(install)


def main() -> int:
    """Says what is missing, and what follows from it."""
    if kafka_broker.missing() is not None and shutil.which("mvn") is None:
        install_maven()
    try:
        kafka_broker.fetch()
    except kafka_broker.BrokerError as error:
        print(f"TESTS ON KAFKA WILL BE SKIPPED: {error}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
