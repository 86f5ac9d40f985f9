"""What a running process says about itself: one small document per lease, replaced with every sign of life.

Where an output stands, what it published last and how far behind it is, the log knows by its commits. What it cannot
know is how fast a process works, and since when. No result depends on it, and no fingerprint covers it.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from everstate.generations.deploy.outputs import kept_tables
from everstate.generations.registry import now_ms

if TYPE_CHECKING:
    from everstate.generations.deploy.change import Changes
    from everstate.generations.state.reached import ReachedNotes
    from everstate.log.descriptions import Lease
    from everstate.log.protocol import Log

_PREFIX: Final = "status/"


@dataclass
class Reporter:
    """Makes the document of a process.

    Args:
        changes: What runs, and what is being built.
    """

    changes: Changes
    _started_ms: int = field(default_factory=now_ms)
    _before: dict[str, tuple[float, int]] = field(default_factory=dict)

    def report(self, *, building: bool) -> dict[str, Any]:
        """What can be said now; called from the thread that gives the signs of life.

        Args:
            building: Of what is being built, rather than of what publishes: these may be two processes.
        """
        if building:
            builds = {name: {"rate": _rounded(build.rate)} for name, build in self.changes.builds.items()}
            return {"started_ms": self._started_ms, "builds": builds}
        outputs = {
            name: {"rate": self._rate(name, execution.tally.read), "read": execution.tally.read}
            for name, execution in self.changes.executions.items()
        }
        return {"started_ms": self._started_ms, "outputs": outputs}

    def note_reached(self, notes: ReachedNotes, lease: Lease) -> None:
        """Note which outputs are at the end of the tables that they read."""
        for name, execution in self.changes.executions.items():
            notes.note(name, kept_tables(execution.output.unit), lease, now_ms())

    def _rate(self, name: str, read: int) -> float:
        """Records per second since the last report."""
        now = time.monotonic()
        since, before = self._before.get(name, (now, read))
        self._before[name] = (now, read)
        return _rounded((read - before) / (now - since)) if now > since and read >= before else 0.0


def _rounded(rate: float) -> float:
    """Two digits: whoever looks needs no more, and a document that has not changed need not be written."""
    return float(f"{rate:.2g}")


def publish(log: Log, service: str, lease: Lease, report: dict[str, Any]) -> None:
    """Replace the document of a lease.

    Raises:
        FencedError: If another process has taken the lease.
    """
    text = json.dumps({**report, "token": lease.token})
    if log.get_meta(service, _PREFIX + lease.name) != text:
        log.set_meta(service, _PREFIX + lease.name, text, leases=[lease])


def read_report(log: Log, service: str, lease: str, token: int) -> dict[str, Any]:
    """What the holder of a lease has said; empty if it has said nothing, or in a form that nobody knows any more."""
    try:
        report = json.loads(log.get_meta(service, _PREFIX + lease) or "{}")
    except ValueError:
        return {}
    return report if isinstance(report, dict) and report.get("token") == token else {}
