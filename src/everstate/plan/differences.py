"""What differs between two versions of an output, in the user's words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everstate.plan.categories import Category, Difference
from everstate.plan.matching import Match, source_topic, source_topics
from everstate.plan.parts import called, changed_parts, configured, joined, part_differences
from everstate.plan.words import an
from everstate.topology.names import noun

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everstate.fingerprints.prints import NodePrint, UnitPrint

__all__ = ["Category", "Difference", "differences"]


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
        *_parts(match, comparable=old.scheme == new.scheme),
        *_rewired(match),
        *_settings(old, new, match),
        *_packages(old, new),
        *_output(old, new),
    ]
    if not found:
        # The fingerprints differ: to say nothing would leave old results in place.
        last = new.nodes[-1]
        found = [Difference(Category.LOGIC, last.name, "The steps are in a different order.", last.location)]
    return tuple(sorted(found, key=lambda difference: list(Category).index(difference.category)))


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
            yield Difference(Category.LOGIC, node.name, f"The topic {topic} is read in one more place.", node.location)
        elif topic:
            cause = f"The topic {topic} is now read."
            yield Difference(Category.NEW_SOURCE, node.name, cause, node.location, new=topic)
    for node in match.removed:
        topic = source_topic(node)
        if topic and topic in after:
            yield Difference(Category.LOGIC, node.name, f"The topic {topic} is read in one fewer place.", node.location)
        elif topic:
            cause = f"The topic {topic} is no longer read."
            yield Difference(Category.REMOVED_SOURCE, node.name, cause, node.location, old=topic)


def _steps(match: Match) -> Iterator[Difference]:
    """Steps that were added or removed, but for sources and the tables that belong to them."""
    came = {node.name for node in match.added if source_topic(node)}
    for node in match.added:
        if not _of_source(node, came):
            category = _step_category(node, Category.MORE_STATE)
            cause = f"{_an(node)}{' that keeps state' if node.stateful else ''} was added."
            yield Difference(category, node.name, cause, node.location, new=_text(node))
    went = {node.name for node in match.removed if source_topic(node)}
    for node in match.removed:
        if not _of_source(node, went):
            category = _step_category(node, Category.LESS_STATE)
            cause = f"{_an(node)} was removed{', along with its state' if node.stateful else ''}."
            yield Difference(category, node.name, cause, node.location, old=_text(node))


def _of_source(node: NodePrint, sources: set[str]) -> bool:
    return not node.inputs or (node.traits.holds_source and set(node.inputs) <= sources)


def _step_category(node: NodePrint, with_state: Category) -> Category:
    traits = node.traits
    if traits.regroups and not (traits.accumulates or traits.refers):
        return Category.GROUPING  # it gives rows another key, and does nothing else
    return with_state if node.stateful else Category.LOGIC


def _parts(match: Match, *, comparable: bool) -> Iterator[Difference]:
    for was, now in match.kept:
        fed_otherwise = now.name in match.fed_otherwise
        yield from part_differences(was, now, fed_otherwise=fed_otherwise, comparable=comparable)


def _rewired(match: Match) -> Iterator[Difference]:
    for was, now in match.rewired:
        cause = f"The {called(now)} gets its rows from a different step."
        yield Difference(Category.LOGIC, now.name, cause, now.location, ", ".join(was.inputs), ", ".join(now.inputs))


def _settings(old: UnitPrint, new: UnitPrint, match: Match) -> Iterator[Difference]:
    """Settings whose value changed; each is named once, at the first step that it reaches."""
    changed = [(now, list(changed_parts(was, now))) for was, now in match.kept]
    reached = [node for node, parts in changed if any(configured(both) for both in parts)]
    place = next(iter(reached or [node for node, parts in changed if parts]), new.nodes[-1])
    shared = [name for name in new.settings if name in old.settings]
    other = [name for name in shared if new.settings[name].digest != old.settings[name].digest]
    for name in other:
        cause = f"The setting {name} changed."
        was, now = old.settings[name].text, new.settings[name].text
        yield Difference(Category.CONFIGURATION, place.name, cause, place.location, was, now)
    if not other:
        for node in reached:
            cause = f"A setting of the {called(node)} changed."
            yield Difference(Category.CONFIGURATION, node.name, cause, node.location)


def _packages(old: UnitPrint, new: UnitPrint) -> Iterator[Difference]:
    for name in sorted(old.packages.keys() | new.packages.keys()):
        was, now = old.packages.get(name), new.packages.get(name)
        if was is None:
            yield Difference(Category.PACKAGE, "", f"The package {name} is now used.", new=now)
        elif now is None:
            yield Difference(Category.PACKAGE, "", f"The package {name} is no longer used.", old=was)
        elif was != now:
            yield Difference(Category.PACKAGE, "", f"The version of the package {name} changed.", old=was, new=now)


def _output(old: UnitPrint, new: UnitPrint) -> Iterator[Difference]:
    last = new.nodes[-1]
    if old.kind != new.kind:
        cause = f"The output is now a {new.kind}; it was a {old.kind}."
        yield Difference(Category.LOGIC, last.name, cause, last.location, old.kind, new.kind)
    if old.policy != new.policy:
        cause = "Records that cannot be processed are handled differently."
        yield Difference(Category.POLICY, "", cause, old=old.policy, new=new.policy)


def _an(node: NodePrint) -> str:
    words = an(noun(node.operation, node.traits))
    return words[0].upper() + words[1:]


def _text(node: NodePrint) -> str | None:
    shown = (part for part in node.parts.values() if part.kind not in {"schema", "semantics", "key"})
    return joined(shown)
