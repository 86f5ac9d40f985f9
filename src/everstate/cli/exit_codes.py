"""How a command ends, so that whoever deploys by machine can tell one outcome from another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from everstate.errors import (
    ApprovalNeededError,
    HistoryTruncatedError,
    LeaseError,
    PlanDriftError,
)

if TYPE_CHECKING:
    from everstate.errors import EverstateError

#: Any error without a code of its own. 2 is that of a wrong option.
ERROR: Final = 1
#: A cutover waits for approval.
APPROVAL: Final = 3
#: Another process runs the service, or has taken over from a run that was to be done.
LEASE: Final = 4
#: Code or history are not those of the plan.
DRIFT: Final = 5
#: A source has lost records that are needed.
HISTORY: Final = 6
#: With --detailed-exitcode: the plan has changes.
CHANGES: Final = 10

_CODES: Final[dict[type[EverstateError], int]] = {
    ApprovalNeededError: APPROVAL,
    LeaseError: LEASE,
    PlanDriftError: DRIFT,
    HistoryTruncatedError: HISTORY,
}


def exit_code(error: EverstateError) -> int:
    """The code for an error.

    Example:
        >>> from everstate.errors import FencedError
        >>> exit_code(FencedError("another process has taken over"))
        4
    """
    return next((code for kind, code in _CODES.items() if isinstance(error, kind)), ERROR)
