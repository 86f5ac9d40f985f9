"""The registry: the generations of every output of a service, as documents in the log.

A step is written before it is acted on, under the lease of whoever takes it, so that a process which was replaced
meanwhile cannot write it any more.
"""

from __future__ import annotations

import getpass
import json
import os
import socket
import time
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final

from everstate.errors import LogError, formats
from everstate.generations.generation import Event, Generation, OutputGenerations, Status
from everstate.log import vectors
from everstate.log.archive.archive import gaps_from
from everstate.log.crash import crash_point

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everstate.log.descriptions import Lease
    from everstate.log.protocol import Log

#: Of these documents; every field that is added makes it one higher, since an earlier version cannot read it.
FORMAT: Final = 1
_PREFIX: Final = "generations/"
_AUDIT: Final = "audit/"
#: So many entries of the audit record share a document: one that held all would be written whole at every step.
_EVENTS: Final = 100
#: Earlier versions have written them of a generation; nothing goes by them.
_GONE: Final = frozenset({"open_from"})


class Registry:
    """The generations of a service.

    Args:
        log: Where it is kept.
        service: The service's name.
    """

    def __init__(self, log: Log, service: str) -> None:
        self._log = log
        self.service = service

    def generations(self) -> dict[str, OutputGenerations]:
        """All outputs that the service has or has had."""
        found = self._log.metas(self.service, _PREFIX)
        return {name.removeprefix(_PREFIX): from_json(text) for name, text in found.items()}

    def read(self, output: str) -> OutputGenerations:
        """The generations of an output; none if it has none yet."""
        text = self._log.get_meta(self.service, document(output))
        return OutputGenerations(output=output) if text is None else from_json(text)

    def audit(self, output: str) -> tuple[Event, ...]:
        """All that has happened to an output, oldest first."""
        versions = self.read(output)
        parts = self._log.metas(self.service, f"{_AUDIT}{output}/")
        # A part that the document still holds itself was left by a process that was killed before it said so.
        older = [text for name, text in sorted(parts.items()) if int(name.rpartition("/")[2]) < versions.archived]
        return (*(event for text in older for event in _events(json.loads(text))), *versions.audit)

    def _archive(self, versions: OutputGenerations, leases: Sequence[Lease]) -> OutputGenerations:
        """Move the oldest entries of the audit record to documents of their own."""
        while len(versions.audit) >= 2 * _EVENTS:
            name = f"{_AUDIT}{versions.output}/{versions.archived:09d}"
            text = json.dumps([asdict(event) for event in versions.audit[:_EVENTS]])
            self._log.set_meta(self.service, name, text, leases=leases)
            versions = replace(versions, audit=versions.audit[_EVENTS:], archived=versions.archived + _EVENTS)
        return versions

    def write(self, versions: OutputGenerations, leases: Sequence[Lease], *, step: str) -> None:
        """Store the generations of an output.

        Args:
            versions: The generations.
            leases: Those under which the step is taken.
            step: Its name among the crash points.

        Raises:
            FencedError: If another process has taken one of the leases.
        """
        crash_point(f"registry.{step}.before")
        kept = self._archive(versions, leases)
        self._log.set_meta(self.service, document(versions.output), to_json(kept), leases=leases)
        crash_point(f"registry.{step}.after")


def document(output: str) -> str:
    """The name of an output's document."""
    return _PREFIX + output


def to_json(versions: OutputGenerations) -> str:
    """As text that `from_json` reads."""
    return json.dumps({formats.KEY: FORMAT, **asdict(versions)}, sort_keys=True)


def from_json(text: str) -> OutputGenerations:
    """From the text of `to_json`.

    Raises:
        LogError: If it is not such a text, or a newer version of Everstate has written it.
    """
    try:
        known = formats.require(json.loads(text), FORMAT, LogError, "the registry of generations")
        generations = [
            Generation(
                **{
                    **{name: value for name, value in g.items() if name not in _GONE},
                    "status": Status(g["status"]),
                    "initial": vectors.from_offsets(g["initial"]),
                    "missing": gaps_from(g.get("missing", {})),
                    "begins": {int(number): begin for number, begin in g.get("begins", {}).items()},
                }
            )
            for g in known["generations"]
        ]
        return OutputGenerations(**{**known, "generations": tuple(generations), "audit": _events(known["audit"])})
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise LogError(
            f"the registry of generations is damaged: {error}", hint="Restore the log's folder from a backup."
        ) from error


def _events(known: list[dict[str, Any]]) -> tuple[Event, ...]:
    return tuple(Event(**entry) for entry in known)


def event(generation: Generation, why: str = "", counts: dict[str, int] | None = None) -> Event:
    """An entry of the audit record, by this process, now."""
    return Event(
        at_ms=generation.changed_ms,
        generation=generation.number,
        what=str(generation.status),
        who=f"{_user()}@{socket.gethostname()}, process {os.getpid()}",
        why=why,
        counts=counts or {},
    )


def now_ms() -> int:
    """The time in milliseconds."""
    return time.time_ns() // 1_000_000


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may run under a number without a name
        return str(os.getuid())
