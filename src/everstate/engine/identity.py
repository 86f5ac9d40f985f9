"""Whether a service is still the one that built the state."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from everstate.topology.errors import ServiceChangedError
from everstate.topology.fingerprint import fingerprint as topology_fingerprint

if TYPE_CHECKING:
    from everstate.topology.unit import Unit


def fingerprint(unit: Unit, policy: str) -> str:
    """A digest of everything that can change an output's results."""
    return hashlib.sha256(json.dumps([topology_fingerprint(unit), policy]).encode()).hexdigest()


def require_unchanged(unit: Unit, known: str, now: str) -> None:
    """Refuse to go on with state that another version has built.

    Raises:
        ServiceChangedError: If the fingerprints differ.
    """
    if known != now:
        raise ServiceChangedError(
            f"output {unit.output.topic!r} of service {unit.service!r} has changed since its state was built",
            location=unit.output.location,
            hint="Take the change back, or rebuild the state from the topics: "
            "everstate clear SERVICE.py, then run it again.",
        )
