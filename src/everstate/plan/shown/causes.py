"""Each cause of a plan once, with all the outputs and steps that it concerns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from everstate.plan.categories import Category

if TYPE_CHECKING:
    from collections.abc import Iterable

    from everstate.plan.actions import Action
    from everstate.plan.categories import Difference
    from everstate.plan.edits import Edit

#: The output itself says it.
_OUTPUTS: Final = frozenset({Category.NEW_OUTPUT, Category.REMOVED_OUTPUT})


@dataclass
class Cause:
    """Something that was changed.

    Attributes:
        difference: The first difference that it led to.
        edit: What the user wrote differently; None if that cannot be told, and the difference's sentence says it.
        categories: What it is, in the order of the categories.
        outputs: The outputs that it concerns.
        ways: The ways on which it reaches steps: (chain, step, place of the step), each once.
    """

    difference: Difference
    edit: Edit | None
    categories: list[Category] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    ways: list[tuple[tuple[str, ...], str, str]] = field(default_factory=list)


def causes_of(actions: Iterable[Action]) -> tuple[Cause, ...]:
    """The causes of a plan, in the order in which its outputs name them."""
    found: dict[tuple[object, ...], Cause] = {}
    for action in actions:
        for difference in action.differences:
            if difference.category in _OUTPUTS:
                continue
            for edit in difference.edits or (None,):
                key = edit.identity if edit is not None else _identity(difference)
                cause = found.setdefault(key, Cause(difference, edit))
                _add(cause, difference, edit, action.output)
    return tuple(found.values())


def _identity(difference: Difference) -> tuple[object, ...]:
    # Two outputs may have a step of one line, whose names differ with the outputs.
    return difference.category, difference.cause, difference.location, difference.old, difference.new


def _add(cause: Cause, difference: Difference, edit: Edit | None, output: str) -> None:
    if difference.category not in cause.categories:
        cause.categories.append(difference.category)
        cause.categories.sort(key=list(Category).index)
    if output not in cause.outputs:
        cause.outputs.append(output)
    if edit is not None and edit.step:
        way = (edit.chain, edit.step, edit.step_location)
        if way not in cause.ways:
            cause.ways.append(way)
