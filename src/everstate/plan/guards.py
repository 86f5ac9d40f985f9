"""What must not happen unasked: cutovers that would take away more than an edit usually does.

Guards go by counts alone, and decide before anything is published: the active generation stays in place meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING

from everstate.errors import ConfigurationError
from everstate.plan.actions import Retire
from everstate.plan.preview import Counts
from everstate.plan.words import counted, listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from everstate.plan.actions import Action, Plan


class Risk(StrEnum):
    """What a guard has seen."""

    MANY_TOMBSTONES = "many tombstones"
    EMPTIED_TABLE = "emptied table"
    RETIRED_OUTPUT = "retired output"
    DEAD_RECORDS = "dead records"
    EXPIRED_HISTORY = "expired history"


class Policy(StrEnum):
    """What to do about concerns."""

    #: Go on: for those who have looked, and for machines that are told to.
    APPROVE = "approve"
    #: Leave the active generation in place until someone approves.
    WAIT = "wait"
    #: Give the new generation up and stop with an error.
    FAIL = "fail"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How many tombstones are too many.

    Attributes:
        share: Of the live keys; a cutover may tombstone exactly this share, and no more.
        least: Live keys that a table must have for the share to count.

    Raises:
        ConfigurationError: If the share is not between 0 and 1, or the least number is negative.
    """

    share: float = 0.2
    least: int = 100

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ConfigurationError(
                f"the share of keys {self.share} is not between 0 and 1", hint="Write 0.2 for a fifth of them."
            )
        if self.least < 0:
            raise ConfigurationError(f"the minimum number of keys {self.least} is negative", hint="Use 0 for no limit.")


@dataclass(frozen=True)
class Concern:
    """A reason to ask before a cutover.

    Attributes:
        risk: What was seen.
        output: Of which output.
        message: One sentence with the counts.
        hint: How to approve.
    """

    risk: Risk
    output: str
    message: str
    hint: str


def concerns(
    counts: Counts,
    action: Action,
    limits: Limits | None = None,
    *,
    file: str = "SERVICE.py",
    expired: Sequence[str] = (),
) -> tuple[Concern, ...]:
    """Why an action should not be carried out unasked; empty if there is no reason to ask.

    Args:
        counts: What it would write.
        action: What happens to the output.
        limits: How many tombstones are too many.
        file: The service's file, for the command in the hint.
        expired: Topics that had lost records when the generation began to read them.
    """
    expired = expired or [reading.topic for reading in action.sources if reading.truncated]
    hint = f"If this is intended: everstate run {file} --approve"
    return tuple(
        Concern(risk, action.output, message, hint)
        for risk, message in _seen(counts, action, limits or Limits(), expired)
    )


def concerns_of(plan: Plan, limits: Limits | None = None) -> tuple[Concern, ...]:
    """All concerns about a plan, as far as they are known: outputs that were not previewed have no counts."""
    counts = {preview.output: preview.counts for preview in plan.previews}
    return tuple(
        concern
        for action in plan.actions
        for concern in concerns(counts.get(action.output, Counts()), action, limits, file=plan.options.file)
    )


def decision(found: Sequence[Concern], policy: Policy, *, approved: bool = False) -> Policy:
    """What to do now: `APPROVE` where nothing was found or someone has approved, else what the policy says."""
    return policy if found and not approved else Policy.APPROVE


def _seen(counts: Counts, action: Action, limits: Limits, expired: Sequence[str]) -> Iterator[tuple[Risk, str]]:
    if isinstance(action, Retire):
        # Without an active generation nothing was published, so there is nothing to lose.
        if action.active is not None:
            stays = action.keep_topic or not action.keys  # a stream has no keys to remove
            keys = "its topic stays" if stays else f"{counted(action.keys, 'key')} would be tombstoned"
            yield Risk.RETIRED_OUTPUT, f"{action.output} is no longer declared and would be retired: {keys}."
        return
    if not action.publishes or not counts.stale:
        return
    if counts.stale == counts.live:
        message = f"Every key of {action.output} would be tombstoned ({counted(counts.live, 'key')})."
        yield Risk.EMPTIED_TABLE, message
    elif counts.live >= limits.least and counts.stale > Fraction(str(limits.share)) * counts.live:
        share = f"{100 * counts.stale / counts.live:.3g} %"
        message = f"{counts.stale:,} of {counts.live:,} keys of {action.output} ({share}) would be tombstoned."
        yield Risk.MANY_TOMBSTONES, message
    if counts.newly_dead:
        message = (
            f"{counted(counts.stale, 'key')} of {action.output} would be tombstoned, and "
            f"{counted(counts.newly_dead, 'record')} that the active version accepts would be dead-lettered."
        )
        yield Risk.DEAD_RECORDS, message
    if expired:
        message = (
            f"{counted(counts.stale, 'key')} of {action.output} would be tombstoned, perhaps only because "
            f"{listed(tuple(expired))} lost the records that they came from."
        )
        yield Risk.EXPIRED_HISTORY, message
