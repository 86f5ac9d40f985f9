"""Whether the state of the active version can be carried over to a new one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from everstate.plan.conversion import conversion
from everstate.plan.matching import Match, source_topics
from everstate.plan.needs import downstream
from everstate.plan.parts import changed_parts
from everstate.plan.words import an
from everstate.topology.names import noun

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everstate.fingerprints.prints import NodePrint, PartKind, UnitPrint

#: What decides which rows meet in a store; no conversion of single values makes up for a change of it.
_PLACING: Final[frozenset[PartKind]] = frozenset({"topic", "key", "grouping"})


def obstacle(old: UnitPrint, new: UnitPrint, *, converts: bool) -> str:
    """Why the state of the old version does not serve the new one, as a clause; empty if it does.

    Args:
        old: The active version.
        new: The version to deploy.
        converts: Stored values are converted first (`on_change="migrate"`), so their keys must be the same, and there
            must be a way to convert them.
    """
    found = next(_obstacles(old, new, converts=converts), "")
    return found or (conversion(old, new).obstacle if converts else "")


def _obstacles(old: UnitPrint, new: UnitPrint, *, converts: bool) -> Iterator[str]:
    if old.kind != new.kind:
        yield f"the output is now a {new.kind}"
    if source_topics(old) != source_topics(new):
        yield "it reads different topics"
    match = Match.of(old, new)
    yield from (f"the {_noun(node)} has no state yet" for node in match.added if node.stateful)
    yield from (f"{an(_noun(node))} was removed along with its state" for node in match.removed if node.stateful)
    yield from (f"{an(_noun(node))} was added" for node in match.added if _moves(node))
    yield from (f"{an(_noun(node))} was removed" for node in match.removed if _moves(node))
    if _crossed(old, match) or match.rewired:
        yield "its steps get their rows from different steps than before"
    if not converts:
        yield from _taken_back(old, new, match)
    for was, now in match.kept:
        kinds = {part.kind for both in changed_parts(was, now) for part in both if part is not None}
        if kinds & _PLACING:
            yield f"the {_noun(now)} uses a different key"
        if not converts and _stores_otherwise(now, kinds - _PLACING, fed_otherwise=now.name in match.fed_otherwise):
            yield f"the {_noun(now)} now stores something different"


def _taken_back(old: UnitPrint, new: UnitPrint, match: Match) -> Iterator[str]:
    """Steps between a table and its aggregate that have changed.

    A change of a row takes back what its old value added. The new step would look at that old value in its own way, and
    take back what was never added.
    """
    changed = [now for was, now in match.kept if any(True for _ in changed_parts(was, now))]
    for unit, nodes, word in ((new, changed, "changed"), (new, match.added, "added"), (old, match.removed, "removed")):
        tables = {node.name for node in unit.nodes if node.kind == "table"}
        retracting = {n.name for n in unit.nodes if n.traits.accumulates and tables.issuperset(n.inputs)}
        for node in nodes:
            on_table = not node.stateful and node.inputs and tables.issuperset(node.inputs)
            if on_table and not retracting.isdisjoint(downstream(unit, node.name)):
                step = an(_noun(node))
                yield f"{step} was {word} upstream of an aggregate that takes back what earlier rows added"


def _noun(node: NodePrint) -> str:
    return noun(node.operation, node.traits)


def _moves(node: NodePrint) -> bool:
    """Whether rows lie elsewhere downstream of a step than upstream of it."""
    return node.traits.scatters and bool(node.inputs)


def _crossed(old: UnitPrint, match: Match) -> bool:
    """Whether steps with state have changed places: state goes by their order."""
    places = {node.name: place for place, node in enumerate(old.nodes)}
    order = [places[was.name] for was, _ in match.kept if was.stateful]
    return order != sorted(order)


def _stores_otherwise(node: NodePrint, changed: set[PartKind], *, fed_otherwise: bool) -> bool:
    if node.traits.own_state:
        return "parameter" in changed or "semantics" in changed  # the state is the function's own
    # Rows may be stored as they come in. A function works on what is stored; all else in a step gives it its form.
    return (node.stateful or not node.inputs) and (fed_otherwise or bool(changed - {"function"}))
