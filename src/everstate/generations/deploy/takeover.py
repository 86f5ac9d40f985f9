"""Which leases a run takes, and from whom.

A new version may replace a process that builds another one, and, when it is ready, the process that publishes. A second
process of the same version may not, unless it is asked to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from everstate.errors import LeaseHeldError
from everstate.generations.deploy import transitions

if TYPE_CHECKING:
    from collections.abc import Callable

    from everstate.generations.deploy.leases import Leases
    from everstate.generations.deploy.options import Wishes
    from everstate.generations.deploy.planning import Planned
    from everstate.generations.deploy.site import Site


def take_leases(plan: Callable[[], Planned], site: Site, wishes: Wishes) -> Planned:
    """Take what the plan needs.

    Returns:
        The plan as it is now that nobody else builds.

    Raises:
        LeaseHeldError: If a process of the same version runs or is being deployed.
    """
    leases = site.leases
    planned = plan()
    suspended = _take_building(planned, leases, wishes)
    for output, versions in site.registry.generations().items():
        if suspended and versions.building is not None:
            # The process that was replaced may wake up: nobody continues from the checkpoint that it writes to.
            transitions.discard(output, versions.building.number, site)
        transitions.tidy(output, site)
    planned = plan()
    changed = bool(planned.plan.changes)
    try:
        leases.take_publishing(take_over=wishes.take_over, standby=wishes.standby and not changed)
    except LeaseHeldError:
        # Without an active generation the holder is about to deploy the first one: nothing older is to be replaced.
        deployed = any(versions.active is not None for versions in planned.generations.values())
        if not changed or not deployed:
            raise
        # Else the old version goes on in its own process until the cutover.
    return planned


def _take_building(planned: Planned, leases: Leases, wishes: Wishes) -> bool:
    """Take the lease of building; says whether a process that was replaced is still there."""
    try:
        leases.take_building()
    except LeaseHeldError:
        another = any(action.discards is not None for action in planned.plan.actions)
        if not (another or wishes.take_over or wishes.approve):
            raise
        return leases.take_building_over()
    return False
