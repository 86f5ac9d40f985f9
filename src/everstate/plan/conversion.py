"""How the state of one version becomes that of another: which steps are converted, and what nothing converts.

A change has an effect on the rows of the steps downstream of it. Rows that have only got columns which may be null are
*wider*: what is stored of them stays right, with nulls. Where a new column has a default they are *filled*: a table's
stored rows get it. Rows that may be *other* ones make the state of a step wrong unless the user's function converts it.
Downstream of the last state nothing matters: results are derived from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TYPE_CHECKING

from everstate.fingerprints.earlier import earlier_step
from everstate.plan.matching import Match
from everstate.plan.parts import changed_parts
from everstate.plan.words import an
from everstate.topology.names import noun, step_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from everstate.fingerprints.prints import NodePrint, UnitPrint


class _Effect(IntEnum):
    """What a change does to the rows that a step gives."""

    NONE = 0
    WIDER = 1
    FILLED = 2
    OTHER = 3


@dataclass(frozen=True)
class Conversion:
    """What is done to the state of the active version.

    Attributes:
        converts: Names of the steps whose `migrate` function is called with what they store.
        checked: A sample of keys has to be recalculated; not where state stays as it is.
        derives_from: Name of the step from whose state the output's table is derived; empty for a stream.
        kept_letters: Steps of the active version, as dead letters call them, whose letters stand.
        derived_letters: Those whose letters are made again with the table. All other letters may no longer be
            letters, which nobody can tell without a recalculation.
        obstacle: Why it cannot be done, as a clause; empty if it can.
    """

    converts: tuple[str, ...] = ()
    checked: bool = False
    derives_from: str = ""
    kept_letters: frozenset[str] = frozenset()
    derived_letters: frozenset[str] = frozenset()
    obstacle: str = ""


def conversion(old: UnitPrint, new: UnitPrint) -> Conversion:
    """How the state of the old version serves the new one; whether its keys do has been looked at before."""
    walk = _Walk(old, new)
    walk.run()
    nearest = _nearest(new)
    derives_from = nearest.name if nearest is not None and new.kind == "table" else ""
    after = _after_state(old) if derives_from else frozenset()
    before = [node for node in old.nodes if node.name not in after]
    return Conversion(
        converts=tuple(walk.converts),
        checked=walk.checked,
        derives_from=derives_from,
        kept_letters=_steps(node for node in before if node.name not in walk.affected),
        derived_letters=_steps(node for node in old.nodes if node.name in after),
        obstacle=walk.obstacle
        or _versions(old, new)
        or _shape(new, nearest if derives_from else None, checked=walk.checked),
    )


@dataclass
class _Walk:
    """From the sources to the output, with what the change does to the rows of each step."""

    old: UnitPrint
    new: UnitPrint
    converts: list[str] = field(default_factory=list)
    affected: set[str] = field(default_factory=set)
    checked: bool = False
    obstacle: str = ""

    def run(self) -> None:
        match = Match.of(self.old, self.new)
        partner = {now.name: was for was, now in match.kept}
        removed = {node.name for node in match.removed}
        self.affected |= removed
        nodes = {node.name: node for node in self.new.nodes}
        effects: dict[str, _Effect] = {}
        for node in self.new.nodes:
            was = partner.get(node.name)
            comes = max((effects[name] for name in node.inputs), default=_Effect.NONE)
            if was is None or removed & set(was.inputs):
                comes = _Effect.OTHER
            effect = comes if was is None else max(comes, _own(was, node))
            if node.stateful and was is not None:
                of_table = nodes[node.inputs[0]].kind == "table"
                effect = self._stored(was, node, comes, effect, of_table=of_table)
            elif effect < _Effect.OTHER and was is not None and was.has_columns_of(node):
                effect = _Effect.NONE
            effects[node.name] = effect
            if effect is _Effect.OTHER and was is not None:
                self.affected.add(was.name)

    def _stored(self, was: NodePrint, node: NodePrint, comes: _Effect, effect: _Effect, *, of_table: bool) -> _Effect:
        """What the change does to a step's state, and to the rows downstream."""
        if effect is _Effect.NONE:
            return effect
        self.checked = True
        if effect < _Effect.OTHER and was.has_columns_of(node):
            return _Effect.NONE
        if effect is _Effect.WIDER or (effect is _Effect.FILLED and node.traits.fills_defaults):
            return effect
        if node.migrates:
            if of_table and comes is _Effect.OTHER and "remove" not in node.parts:
                self._stop(
                    f"the {node.operation} has no remove function, so it keeps the rows that it was given earlier"
                )
            self.converts.append(node.name)
        elif node.traits.converts:
            self._stop(f"the {noun(node.operation, node.traits)} has no migrate function")
        else:
            self._stop(f"what the {node.operation} stores cannot be converted")
        return _Effect.OTHER

    def _stop(self, reason: str) -> None:
        self.obstacle = self.obstacle or reason


def _logic(was: NodePrint, now: NodePrint) -> bool:
    """Whether a step means something else, whatever its columns are."""
    return any(part.kind != "schema" for both in changed_parts(was, now) for part in both if part is not None)


def _own(was: NodePrint, now: NodePrint) -> _Effect:
    """What has changed at a step itself."""
    if _logic(was, now):
        return _Effect.OTHER
    if not any(changed_parts(was, now)):
        return _Effect.NONE
    names = {column.name for column in was.columns}
    came = [column for column in now.columns if column.name not in names]
    kept = replace(now, columns=tuple(column for column in now.columns if column.name in names))
    if not (came and was.columns and kept.has_columns_of(was)):
        return _Effect.OTHER
    if all(column.nullable and column.default is None for column in came):
        return _Effect.WIDER
    filled = all(column.nullable or column.default is not None for column in came)
    return _Effect.FILLED if filled else _Effect.OTHER


def _versions(old: UnitPrint, new: UnitPrint) -> str:
    if old.policy != new.policy:
        return "records that cannot be processed are handled differently"
    return "" if old.packages == new.packages else "a package that its functions use changed"


def _shape(new: UnitPrint, derives_from: NodePrint | None, *, checked: bool) -> str:
    """Why results cannot be derived from state, or a sample cannot be recalculated without everything else."""
    if derives_from is not None and not derives_from.traits.holds_results:
        return f"the results of {an(noun(derives_from.operation, derives_from.traits))} are not in its state"
    if not checked:
        return ""
    if any(node.traits.timed or node.traits.clocked for node in new.nodes):
        return "time passes with the records of all keys, so a sample of keys cannot be recalculated on its own"
    above: dict[str, tuple[bool, bool]] = {}
    for node in new.nodes:
        stored = any(above[name][0] for name in node.inputs)
        moved = any(above[name][1] for name in node.inputs)
        if node.traits.regroups and stored:
            if node.traits.refers or moved or not _only_tables(node, new):
                return "a key's result depends on other keys, so a sample of keys cannot be recalculated on its own"
            moved = True
        above[node.name] = (stored or node.stateful, moved)
    return ""


def _only_tables(node: NodePrint, unit: UnitPrint) -> bool:
    """Whether no step before this one keeps state but tables as they are on their topics."""
    nodes = {other.name: other for other in unit.nodes}
    waiting, seen = list(node.inputs), set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if nodes[name].stateful and not nodes[name].traits.holds_source:
            return False
        waiting += nodes[name].inputs
    return True


def _after_state(unit: UnitPrint) -> frozenset[str]:
    """The names of the steps downstream of the last one with state."""
    nodes = {node.name: node for node in unit.nodes}
    current, found = unit.nodes[-1], set[str]()
    while not current.stateful:
        found.add(current.name)
        if not current.inputs:
            break
        current = nodes[current.inputs[0]]
    return frozenset(found)


def _steps(nodes: Iterable[NodePrint]) -> frozenset[str]:
    """What dead letters call steps, those of earlier versions as well."""
    return frozenset(
        text
        for node in nodes
        for text in (step_text(node.name, node.location), earlier_step(node.operation, node.location))
    )


def _nearest(unit: UnitPrint) -> NodePrint | None:
    """The last step with state before the output."""
    nodes = {node.name: node for node in unit.nodes}
    current = unit.nodes[-1]
    while current.inputs:
        current = nodes[current.inputs[0]]
        if current.stateful:
            return current
    return None
