"""A plan on the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.text import Text

from everstate.errors.texts import one_line
from everstate.plan.actions import Begin, Keep
from everstate.plan.guards import Limits
from everstate.plan.text import Line, Style, text

if TYPE_CHECKING:
    from everstate.generations.deploy.settings import Settings
    from everstate.plan.actions import Plan

_COLOURS: Final[dict[Style, str]] = {
    Style.PLAIN: "",
    Style.OUTPUT: "bold",
    Style.ACTION: "bold cyan",
    Style.CATEGORY: "magenta",
    Style.OLD: "red",
    Style.NEW: "green",
    Style.PLACE: "dim",
    Style.WARNING: "yellow",
    Style.CHANGED: "yellow",
    Style.SAME: "dim",
}
#: Lines are never made narrower: what is shown must be read, and can be scrolled.
_NARROW: Final = 40


def print_plan(
    plan: Plan, settings: Settings, *, doing: bool = False, command: str | None = None, stderr: bool = False
) -> None:
    """Print a plan, in colours where the terminal has them.

    Args:
        plan: The plan.
        settings: They say how many tombstones are too many.
        doing: It is being carried out; else it only might be.
        command: What carries it out; a run of the service if nothing is said.
        stderr: On the error stream, beside the progress of a run.
    """
    console = Console(stderr=stderr, highlight=False, soft_wrap=True)
    width = max(console.width, _NARROW)
    lines = text(plan, limits=limits(settings), root=str(Path.cwd()), doing=doing, command=command, width=width)
    for line in lines:
        console.print(_coloured(line))


def limits(settings: Settings) -> Limits:
    """How many tombstones are too many."""
    return Limits(share=settings.tombstone_share, least=settings.tombstone_least)


def replaces_something(plan: Plan) -> bool:
    """Whether something that is on a topic may change; a first deployment onto an empty one changes nothing."""
    return any(not isinstance(action, Keep) and not _is_first(action) for action in plan.actions)


def _is_first(action: object) -> bool:
    return isinstance(action, Begin) and not action.closed


def _coloured(line: Line) -> Text:
    return Text.assemble(*((one_line(span.text), _COLOURS[span.style]) for span in line))
