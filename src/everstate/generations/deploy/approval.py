"""Guards before a cutover: what it would write is counted first, while the active generation goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everstate.errors import ApprovalNeededError
from everstate.plan.actions import Continue, Retire
from everstate.plan.guards import Limits, Policy, concerns, decision
from everstate.plan.preview import Counts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everstate.generations.compare.comparison import Comparison
    from everstate.generations.deploy.options import Wishes
    from everstate.generations.deploy.planning import Planned
    from everstate.generations.deploy.site import Site
    from everstate.plan.actions import Action
    from everstate.plan.guards import Concern


def counts(comparison: Comparison) -> Counts:
    """A comparison as the guards and previews count it."""
    table = comparison.table
    return Counts(
        new=table.new,
        changed=table.changed,
        stale=table.stale,
        unchanged=table.unchanged,
        newly_dead=comparison.letters.new,
    )


def concerns_about(action: Action, planned: Planned, site: Site, *, file: str) -> tuple[Concern, ...]:
    """Why the cutover of an output should not happen unasked.

    Args:
        action: What happens to the output.
        planned: The plan.
        site: Where.
        file: The service's file, for commands in hints.
    """
    limits = Limits(share=site.settings.tombstone_share, least=site.settings.tombstone_least)
    counted = _counted(action, planned, site)
    return concerns(counted, action, limits, file=file, expired=_expired(action, site))


def require_approval(found: Sequence[Concern], policy: Policy, wishes: Wishes) -> None:
    """Stop before a cutover that would take away more than it may.

    Args:
        found: Why it should not happen unasked.
        policy: What to do then.
        wishes: What was asked for.

    Raises:
        ApprovalNeededError: If it has to be approved; it says what would happen and how to approve it.
    """
    if decision(found, policy, approved=wishes.approve) is not Policy.APPROVE:
        raise ApprovalNeededError(
            "\n".join(
                [
                    "the cutover waits for approval, and the active version stays in place.",
                    *(concern.message for concern in found),
                ]
            ),
            hint=f"If this is intended: {wishes.approval_command}" if wishes.approval_command else found[0].hint,
        )


def _counted(action: Action, planned: Planned, site: Site) -> Counts:
    if isinstance(action, (Retire, Continue)):
        return Counts()
    generation = site.registry.read(action.output).building
    if generation is None:
        return Counts()
    return counts(site.comparisons.compare(planned.units[action.output], generation))


def _expired(action: Action, site: Site) -> list[str]:
    """Topics that had lost records when the generation began to read them; one that was active before published so."""
    generation = site.registry.read(action.output).building
    if generation is None or generation.was_active:
        return []
    truncated = (topic for topic, offsets in generation.initial.items() if any(offsets.values()))
    return sorted({*truncated, *generation.missing})
