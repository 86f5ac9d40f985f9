"""What is raised where a plan refuses an output and someone wants to carry it out anyway."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everstate.errors import EverstateError, HistoryTruncatedError, LogError, TopicNotFoundError

if TYPE_CHECKING:
    from everstate.location import Location
    from everstate.plan.actions import Refuse


def refusal(action: Refuse, location: Location | None = None) -> EverstateError:
    """The error for an output that is refused.

    Args:
        action: The refusal.
        location: The user's line that declares the output or the source.

    Example:
        >>> from everstate.plan.actions import Refuse
        >>> refused = Refuse(output="totals", fingerprint="f", problem="topic orders has ...", hint="", truncated=True)
        >>> type(refusal(refused)).__name__
        'HistoryTruncatedError'
    """
    if action.missing:
        return TopicNotFoundError(action.missing, location=location)
    kind = HistoryTruncatedError if action.truncated else LogError
    return kind(f"output {action.output!r}: {action.problem}", location=location, hint=action.hint)
