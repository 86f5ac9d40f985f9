"""What is asked for with one run of a service, beside its settings."""

from __future__ import annotations

from dataclasses import dataclass

from everstate.plan.facts import Options


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What a user asks for with this run.

    Attributes:
        recalculate: Outputs to rebuild although nothing has changed.
        accept_truncated: Topics whose lost past is accepted.
        keep_topic: Topics of outputs that are no longer declared stay as they are.
        approve: Cutovers need no approval.
        take_over: The lease of a live process is taken although this is the same version.
        standby: Wait until the process of the same version has ended, instead of stopping with an error.
        effects: Side effects happen in a recalculation, too.
        plan: A plan that was written to a file: only what it says is done.
        file: The service's file, for commands in hints.
    """

    recalculate: tuple[str, ...] = ()
    accept_truncated: tuple[str, ...] = ()
    keep_topic: bool = False
    approve: bool = False
    take_over: bool = False
    standby: bool = False
    effects: bool = False
    plan: str | None = None
    file: str = "SERVICE.py"

    def options(self, shards: int | None) -> Options:
        """What a plan has to know of it."""
        return Options(
            recalculate=self.recalculate,
            accept_truncated=self.accept_truncated,
            keep_topic=self.keep_topic,
            shards=shards,
            file=self.file,
        )
