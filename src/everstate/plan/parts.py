"""What differs inside one step."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final, TypeAlias

from everstate.plan.categories import Category, Difference
from everstate.plan.matching import source_topic
from everstate.topology.expressions.python_text import python_text
from everstate.topology.names import noun

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from everstate.fingerprints.prints import NodePrint, Part, PartKind

#: A part before and after; None where it is not there.
Both: TypeAlias = "tuple[Part | None, Part | None]"

_CATEGORIES: Final[dict[PartKind, Category]] = {
    "topic": Category.LOGIC,
    "key": Category.SOURCE_KEY,
    "schema": Category.SCHEMA,
    "grouping": Category.GROUPING,
    "expression": Category.LOGIC,
    "function": Category.LOGIC,
    "parameter": Category.LOGIC,
    "semantics": Category.LOGIC,
}
#: Kinds of parts that may hold code, which versions of Everstate may read differently.
_WITH_CODE: Final[frozenset[PartKind]] = frozenset({"function", "grouping", "parameter"})


def part_differences(
    old: NodePrint, new: NodePrint, *, fed_otherwise: bool, comparable: bool = True
) -> Iterator[Difference]:
    """What differs inside one step: one difference for each category and line of the user's code.

    Values of settings are left out.

    Args:
        old: The step as it was.
        new: The step as it is.
        fed_otherwise: The steps that feed it give other columns or keys than before.
        comparable: The same way of reading code made both.
    """
    changed = [both for both in changed_parts(old, new) if not configured(both)]
    changed = _by_hand(changed, new, fed_otherwise=fed_otherwise)

    def place(both: Both) -> tuple[int, bool, str]:
        kind = _kind(both)
        return list(Category).index(_CATEGORIES[kind]), kind == "semantics", _location(both, new)

    for (order, semantics, location), entries in groupby(sorted(changed, key=place), place):
        category, group = list(Category)[order], list(entries)
        was, now = joined(part for part, _ in group), joined(part for _, part in group)
        alike = was == now
        if semantics:
            cause = f"Everstate now calculates the {called(new)} differently."
        elif not comparable and alike and any(_kind(both) in _WITH_CODE for both in group):
            cause = f"This version of Everstate reads code differently, so the {called(new)} may have changed."
        else:
            cause = _cause(category, new, group)
        yield Difference(category, new.name, cause, location, None if alike else was, None if alike else now)


def changed_parts(old: NodePrint, new: NodePrint) -> Iterator[Both]:
    """The parts of a step that do not mean the same any more."""
    for name in [*old.parts, *(name for name in new.parts if name not in old.parts)]:
        was, now = old.parts.get(name), new.parts.get(name)
        if was is None or now is None or was.digest != now.digest:
            yield was, now


def configured(both: Both) -> bool:
    """Whether a part differs in nothing but the values of settings."""
    was, now = both
    return was is not None and now is not None and was.shape == now.shape


def called(node: NodePrint) -> str:
    """A step in a sentence."""
    topic = source_topic(node)
    return f"source {topic}" if topic else noun(node.operation, node.traits)


def joined(parts: Iterable[Part | None]) -> str | None:
    """The texts of parts; earlier versions kept expressions as Polars prints them."""
    return ", ".join(python_text(part.text) for part in parts if part is not None) or None


def _by_hand(changed: list[Both], node: NodePrint, *, fed_otherwise: bool) -> list[Both]:
    """Only what the user changed at this step: most steps have other columns because of something else."""
    schemas = [both for both in changed if _kind(both) == "schema"]
    if not schemas or not node.inputs:
        return changed
    others = [both for both in changed if _kind(both) != "schema"]
    retyped = [(was, now) for was, now in schemas if was is None or now is None or was.text != now.text]
    if fed_otherwise:
        return others + (retyped if node.traits.declares_columns else [])
    came_or_went = [both for both in others if None in both and _kind(both) == "expression"]
    if came_or_went:  # the columns tell it better than their expressions
        return [both for both in others if both not in came_or_went] + schemas
    follows = any(_kind(both) in {"expression", "grouping", "parameter"} for both in others)
    return others if follows else others + schemas


def _kind(both: Both) -> PartKind:
    part = both[1] or both[0]
    assert part is not None
    return part.kind


def _location(both: Both, node: NodePrint) -> str:
    part = both[1] or both[0]
    return (part.location if part is not None else "") or node.location


def _cause(category: Category, node: NodePrint, group: list[Both]) -> str:
    if category is Category.SOURCE_KEY:
        return f"The key of the {called(node)} changed."
    if category is Category.SCHEMA:
        return f"The schema of the {called(node)} changed."
    if category is Category.GROUPING:
        return f"The {called(node)} uses a different key."
    names = {part.text for part in group[0] if part is not None and part.kind == "function"}
    if len(group) == len(names) == 1:
        return f"The function {names.pop()} of the {called(node)} changed."
    return f"The {called(node)} changed."
