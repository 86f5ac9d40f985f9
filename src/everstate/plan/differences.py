"""What differs between two versions of an output, in the user's words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import TYPE_CHECKING, Final

from everstate.plan.matching import Match, source_topic, source_topics

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from everstate.topology.prints import NodePrint, Part, PartKind, UnitPrint


class Category(StrEnum):
    """What kind of difference it is; a plan lists them in this order."""

    NEW_OUTPUT = "new output"
    REMOVED_OUTPUT = "removed output"
    NEW_SOURCE = "new source topic"
    REMOVED_SOURCE = "removed source topic"
    SOURCE_KEY = "changed source key"
    MORE_STATE = "more intermediate state"
    LESS_STATE = "less intermediate state"
    SCHEMA = "changed private schema"
    CONFIGURATION = "changed configuration"
    LOGIC = "changed logic"
    GROUPING = "changed grouping"
    PACKAGE = "changed package"
    LIBRARY = "changed library"
    POLICY = "changed policy"
    SHARDS = "changed shards"


@dataclass(frozen=True)
class Difference:
    """One difference between the active version of an output and the new one.

    Attributes:
        category: What kind it is.
        node: Name of the node; empty where it concerns the output as a whole.
        cause: One sentence in the user's words.
        location: The user's file and line, as "file:line"; that of the old version where something was removed.
        old: What it was, short; None where there was nothing or nothing can be shown.
        new: What it is.
    """

    category: Category
    node: str
    cause: str
    location: str = ""
    old: str | None = None
    new: str | None = None


_ORDER: Final = {category: place for place, category in enumerate(Category)}

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

#: What a step hands on to those after it.
_PASSED_ON: Final = frozenset({"key", "schema"})
#: Steps whose columns the user declares, so that they change by the user's hand only.
_DECLARING: Final = frozenset({"source", "map", "flat_map", "stateful"})
#: Nodes that only hold what a source gives: named with it, not apart.
_TABLES: Final = frozenset({"table", "global table"})


def differences(old: UnitPrint | None, new: UnitPrint | None) -> tuple[Difference, ...]:
    """What differs between two versions of one output; empty exactly where their fingerprints are equal.

    Args:
        old: The active version; None if there is none.
        new: The version to deploy; None if the output is no longer declared.
    """
    if old is None and new is None:
        return ()
    if old is None or new is None:
        return (_whole_output(old, new),)
    if old.fingerprint == new.fingerprint:
        return ()
    match = Match.of(old, new)
    found = [
        *_sources(old, new, match),
        *_steps(match),
        *(difference for pair in match.kept for difference in _parts(*pair, match)),
        *_rewired(match),
        *_settings(old, new, match),
        *_packages(old, new),
        *_output(old, new),
    ]
    if not found:
        # The fingerprints differ: to say nothing would leave old results in place.
        last = new.nodes[-1]
        found = [Difference(Category.LOGIC, last.name, "Steps were put into another order.", last.location)]
    return tuple(sorted(found, key=lambda difference: _ORDER[difference.category]))


def _whole_output(old: UnitPrint | None, new: UnitPrint | None) -> Difference:
    if new is not None:
        node = new.nodes[-1]
        return Difference(Category.NEW_OUTPUT, node.name, f"The output {new.output} is new.", node.location)
    assert old is not None
    node = old.nodes[-1]
    cause = f"The output {old.output} is no longer declared."
    return Difference(Category.REMOVED_OUTPUT, node.name, cause, node.location)


def _sources(old: UnitPrint, new: UnitPrint, match: Match) -> Iterator[Difference]:
    before, after = set(source_topics(old)), set(source_topics(new))
    for node in match.added:
        topic = source_topic(node)
        if topic and topic in before:
            yield Difference(Category.LOGIC, node.name, f"The topic {topic} is read once more.", node.location)
        elif topic:
            cause = f"The topic {topic} is read, which was not before."
            yield Difference(Category.NEW_SOURCE, node.name, cause, node.location, new=topic)
    for node in match.removed:
        topic = source_topic(node)
        if topic and topic in after:
            yield Difference(Category.LOGIC, node.name, f"The topic {topic} is read once less.", node.location)
        elif topic:
            cause = f"The topic {topic} is no longer read."
            yield Difference(Category.REMOVED_SOURCE, node.name, cause, node.location, old=topic)


def _steps(match: Match) -> Iterator[Difference]:
    """Steps that were added or removed, but for sources and the tables that belong to them."""
    came = {node.name for node in match.added if source_topic(node)}
    for node in match.added:
        if not _of_source(node, came):
            category = _step_category(node, Category.MORE_STATE)
            cause = f"{_an(node)} was added{', which keeps state' if node.stateful else ''}."
            yield Difference(category, node.name, cause, node.location, new=_text(node))
    went = {node.name for node in match.removed if source_topic(node)}
    for node in match.removed:
        if not _of_source(node, went):
            category = _step_category(node, Category.LESS_STATE)
            cause = f"{_an(node)} was removed{', with its state' if node.stateful else ''}."
            yield Difference(category, node.name, cause, node.location, old=_text(node))


def _of_source(node: NodePrint, sources: set[str]) -> bool:
    return node.operation == "source" or (node.operation in _TABLES and set(node.inputs) <= sources)


def _step_category(node: NodePrint, with_state: Category) -> Category:
    if node.operation == "rekey":
        return Category.GROUPING
    return with_state if node.stateful else Category.LOGIC


def _parts(old: NodePrint, new: NodePrint, match: Match) -> Iterator[Difference]:
    """What differs inside one step: one difference for each category and line of the user's code."""
    changed = [(name, *both) for name, both in _changed(old, new) if not _configured(*both)]
    if any(_kind(*both) in _PASSED_ON for _, *both in changed) and _inherits(new, match):
        changed = [entry for entry in changed if _kind(*entry[1:]) not in _PASSED_ON]

    def place(entry: tuple[str, Part | None, Part | None]) -> tuple[int, bool, str]:
        _, was, now = entry
        return _ORDER[_category(new, _kind(was, now))], _kind(was, now) == "semantics", _location(was, now, new)

    for (order, semantics, location), entries in groupby(sorted(changed, key=place), place):
        category = list(Category)[order]
        group = list(entries)
        was, now = _joined(part for _, part, _ in group), _joined(part for _, _, part in group)
        alike = was == now
        cause = f"Everstate calculates the {_the(new)} in another way." if semantics else _cause(category, new, group)
        yield Difference(category, new.name, cause, location, None if alike else was, None if alike else now)


def _changed(old: NodePrint, new: NodePrint) -> Iterator[tuple[str, tuple[Part | None, Part | None]]]:
    for name in [*old.parts, *(name for name in new.parts if name not in old.parts)]:
        was, now = old.parts.get(name), new.parts.get(name)
        if was is None or now is None or was.digest != now.digest:
            yield name, (was, now)


def _configured(was: Part | None, now: Part | None) -> bool:
    """Whether only values of settings differ."""
    return was is not None and now is not None and was.shape == now.shape


def _inherits(node: NodePrint, match: Match) -> bool:
    """Whether a step has other columns or keys only because steps before it have changed."""
    if node.operation in _DECLARING:
        return False
    after = {now.name: (was, now) for was, now in match.kept}
    gone = {other.name for other in match.removed}
    pending = list(node.inputs)
    while pending:
        pair = after.get(pending.pop())
        if pair is None or not gone.isdisjoint(pair[0].inputs):
            return True
        if any(not _configured(*both) for _, both in _changed(*pair)):
            return True
        pending.extend(pair[1].inputs)
    return node.name in after and not gone.isdisjoint(after[node.name][0].inputs)


def _kind(was: Part | None, now: Part | None) -> PartKind:
    part = now or was
    assert part is not None
    return part.kind


def _category(node: NodePrint, kind: PartKind) -> Category:
    if kind == "key" and node.operation not in {"source", *_TABLES}:
        return Category.GROUPING
    return _CATEGORIES[kind]


def _location(was: Part | None, now: Part | None, node: NodePrint) -> str:
    part = now or was
    return (part.location if part is not None else "") or node.location


def _joined(parts: Iterable[Part | None]) -> str | None:
    return ", ".join(part.text for part in parts if part is not None) or None


def _cause(category: Category, node: NodePrint, group: list[tuple[str, Part | None, Part | None]]) -> str:
    if category is Category.SOURCE_KEY:
        return f"The key of the {_the(node)} is another."
    if category is Category.SCHEMA:
        return f"The columns of the {_the(node)} are others."
    if category is Category.GROUPING:
        return f"The {_the(node)} goes by another key."
    _, *both = group[0]
    names = {part.text for part in both if part is not None and part.kind == "function"}
    if len(group) == len(names) == 1:
        return f"The function {names.pop()} of the {_the(node)} was changed."
    return f"The {_the(node)} was changed."


def _rewired(match: Match) -> Iterator[Difference]:
    for was, now in match.rewired:
        cause = f"The {_the(now)} takes its rows from another step."
        yield Difference(Category.LOGIC, now.name, cause, now.location, ", ".join(was.inputs), ", ".join(now.inputs))


def _settings(old: UnitPrint, new: UnitPrint, match: Match) -> Iterator[Difference]:
    """Settings with another value; each is named once, at the first step that it reaches."""
    touched = [now for was, now in match.kept if any(_configured(*both) for _, both in _changed(was, now))]
    others = [now for was, now in match.kept if any(True for _ in _changed(was, now))]
    place = next(iter(touched or others), new.nodes[-1])
    shared = [name for name in new.settings if name in old.settings]
    changed = [name for name in shared if new.settings[name].digest != old.settings[name].digest]
    for name in changed:
        cause = f"The setting {name} has another value."
        was, now = old.settings[name].text, new.settings[name].text
        yield Difference(Category.CONFIGURATION, place.name, cause, place.location, was, now)
    if not changed:
        for node in touched:
            cause = f"A setting of the {_the(node)} has another value."
            yield Difference(Category.CONFIGURATION, node.name, cause, node.location)


def _packages(old: UnitPrint, new: UnitPrint) -> Iterator[Difference]:
    for name in sorted(old.packages.keys() | new.packages.keys()):
        was, now = old.packages.get(name), new.packages.get(name)
        if was is None:
            yield Difference(Category.PACKAGE, "", f"The package {name} is used, which was not before.", new=now)
        elif now is None:
            yield Difference(Category.PACKAGE, "", f"The package {name} is no longer used.", old=was)
        elif was != now:
            yield Difference(Category.PACKAGE, "", f"The package {name} has another version.", old=was, new=now)


def _output(old: UnitPrint, new: UnitPrint) -> Iterator[Difference]:
    last = new.nodes[-1]
    if old.kind != new.kind:
        cause = f"The output is a {new.kind}, which was a {old.kind}."
        yield Difference(Category.LOGIC, last.name, cause, last.location, old.kind, new.kind)
    if old.policy != new.policy:
        cause = "Records that cannot be processed are treated in another way."
        yield Difference(Category.POLICY, "", cause, old=old.policy, new=new.policy)


def _the(node: NodePrint) -> str:
    topic = source_topic(node)
    return f"source {topic}" if topic else node.operation


def _an(node: NodePrint) -> str:
    return f"{'An' if node.operation[:1] in 'aeiou' else 'A'} {node.operation}"


def _text(node: NodePrint) -> str | None:
    shown = (part for part in node.parts.values() if part.kind not in {"schema", "semantics", "key"})
    return _joined(shown)
