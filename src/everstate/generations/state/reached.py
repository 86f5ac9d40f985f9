"""When an output was last at the end of the tables that it reads: up to then it has seen every deletion.

Its last commit may be much older, if nothing came. A log that cannot say which tombstones it has dropped, as Kafka, can
only go by how long somebody was away; without this, a quiet weekend would look like one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from everstate.log import vectors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everstate.log.descriptions import Commit, Lease, Vector
    from everstate.log.protocol import Log

#: Tombstones are kept for hours at the least, so a note a minute is close enough.
EVERY_MS: Final = 60_000


@dataclass
class ReachedNotes:
    """Notes it, not more often than is of use.

    Args:
        log: The log.
        service: The service.
    """

    log: Log
    service: str
    _looked_ms: dict[str, int] = field(default_factory=dict)

    def note(self, output: str, tables: Sequence[str], lease: Lease, now_ms: int) -> None:
        """Note that an output is at the end of these topics, if it is.

        Raises:
            FencedError: If another process has taken the lease.
        """
        if not tables or now_ms - self._looked_ms.get(output, 0) < EVERY_MS:
            return
        self._looked_ms[output] = now_ms
        ends = self.log.end_offsets(tables)  # before the commit is looked at: what comes later was not there yet
        last = self.log.last_commit(self.service, output)
        if last is not None and all(last.end.get(topic) == ends[topic] for topic in tables):
            document = {"ms": now_ms, "end": json.loads(vectors.to_json(ends))}
            self.log.set_meta(self.service, _name(output), json.dumps(document), leases=[lease])


def complete_until(log: Log, service: str, output: str, last: Commit) -> int:
    """Up to when an output has seen all that its tables had: its last commit, or later if it was seen at the end."""
    committed = last.committed_ms or 0
    try:
        document = json.loads(log.get_meta(service, _name(output)) or "{}")
        noted: Vector = vectors.from_offsets(document.get("end", {}))
        at = int(document.get("ms", 0))
    except (ValueError, TypeError, AttributeError):
        return committed
    # State that is older than the note, as after a step back, has not seen what the note is about.
    seen = noted and all(
        last.end.get(topic, {}).get(number, -1) >= end for topic, ends in noted.items() for number, end in ends.items()
    )
    return max(committed, at) if seen else committed


def _name(output: str) -> str:
    return f"reached/{output}"
