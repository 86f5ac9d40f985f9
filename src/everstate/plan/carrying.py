"""Whether a new version can carry on the state of the active one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from everstate.plan.matching import Match, source_topics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everstate.topology.prints import NodePrint, PartKind, UnitPrint

#: What decides which rows meet in a store; no conversion of single values makes up for a change of it.
_PLACING: Final[frozenset[PartKind]] = frozenset({"topic", "key", "grouping"})


def obstacle(old: UnitPrint, new: UnitPrint, *, converts: bool) -> str:
    """Why the state of the old version does not serve the new one, as a clause; empty if it does.

    Args:
        old: The active version.
        new: The version to deploy.
        converts: Stored values are converted first (`on_change="migrate"`), so only their keys must be the same.
    """
    return next(_obstacles(old, new, converts=converts), "")


def _obstacles(old: UnitPrint, new: UnitPrint, *, converts: bool) -> Iterator[str]:
    if old.kind != new.kind:
        yield f"the output is a {new.kind} now"
    if source_topics(old) != source_topics(new):
        yield "it reads other topics"
    match = Match.of(old, new)
    yield from (f"the {node.operation} has no state yet" for node in match.added if node.stateful)
    yield from (f"a {node.operation} was removed with its state" for node in match.removed if node.stateful)
    for was, now in match.kept:
        kinds = _kinds_changed(was, now)
        if kinds & _PLACING:
            yield f"the {now.operation} goes by another key"
        # A user's function works on the user's own state; everything else in a stateful step shapes what is stored.
        stores = now.stateful or now.operation == "source"
        if stores and not converts and kinds - _PLACING - {"function"}:
            yield f"the {now.operation} stores something else"


def _kinds_changed(was: NodePrint, now: NodePrint) -> frozenset[PartKind]:
    changed = [
        part.kind
        for name in was.parts.keys() | now.parts.keys()
        for part in (now.parts.get(name) or was.parts[name],)
        if was.parts.get(name) is None or now.parts.get(name) is None or was.parts[name].digest != part.digest
    ]
    return frozenset(changed)
