"""Logs whose batches several processes can send: for one of them alone, a large batch would take too long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@runtime_checkable
class Spreading(Protocol):
    """A log that can have its batches sent by several."""

    def spread(self, publishers: int, run: Callable[[Sequence[Any]], Sequence[Any]]) -> None:
        """Have large batches sent by several publishers, each in one step of its own.

        Args:
            publishers: How many: partition p is sent by the one of number p mod so many.
            run: Is given what each of them sends, has `send` called for it by the same log in any process, and gives
                what that gave.
        """
        ...

    def send(self, share: Any) -> Any:
        """Send what one publisher sends, once, however often and wherever it is called."""
        ...
