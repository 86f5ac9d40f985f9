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
}


def print_plan(plan: Plan, settings: Settings, *, stderr: bool = False) -> None:
    """Print a plan, in colours where the terminal has them.

    Args:
        plan: The plan.
        settings: They say how many tombstones are too many.
        stderr: On the error stream, beside the progress of a run.
    """
    console = Console(stderr=stderr, highlight=False, soft_wrap=True)
    for line in text(plan, limits=limits(settings), root=str(Path.cwd())):
        console.print(_coloured(line))


def limits(settings: Settings) -> Limits:
    """How many tombstones are too many."""
    return Limits(share=settings.tombstone_share, least=settings.tombstone_least)


def replaces_something(plan: Plan) -> bool:
    """Whether something that is on a topic may change; a first deployment onto an empty one changes nothing."""
    return any(not isinstance(action, Keep) and not _is_first(action) for action in plan.actions)


def _is_first(action: object) -> bool:
    return isinstance(action, Begin) and not action.keys


def _coloured(line: Line) -> Text:
    return Text.assemble(*((one_line(span.text), _COLOURS[span.style]) for span in line))
