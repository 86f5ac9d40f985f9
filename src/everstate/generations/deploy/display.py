"""Where a deployment says what it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everstate.generations.deploy.executor import Execution


class Display(Protocol):
    """Shows a deployment to people; nothing depends on it."""

    def update(self) -> None:
        """Show what has changed; called often."""

    def tell(self, text: str) -> None:
        """Say something that happened once."""

    def approves(self, why: str) -> bool:
        """Ask someone who watches whether a cutover that has to be approved may go on; False if nobody does.

        Args:
            why: What it would do.
        """

    def finished(self, executions: Sequence[Execution]) -> None:
        """Remember what these have done; they are not looked at any more."""
