"""Whether a service is still the one that built the state."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from everstate.topology.describe import unit_json
from everstate.topology.errors import ServiceChangedError

if TYPE_CHECKING:
    from everstate.topology.unit import Unit


def fingerprint(unit: Unit, policy: str) -> str:
    """A digest of what a unit is described as; places in files do not count."""
    document = {"unit": _without_places(unit_json(unit)), "on_error": policy}
    return hashlib.sha256(json.dumps(document, sort_keys=True, default=str).encode()).hexdigest()


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


def _without_places(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_places(item) for name, item in value.items() if name != "location"}
    if isinstance(value, list):
        return [_without_places(item) for item in value]
    return value
