"""How the state of one version becomes that of another: which steps are converted, and what nothing converts.

A change has an effect on the rows of the steps behind it. Rows that have only got columns which may be null are
*wider*: what is stored of them stays right, with nulls. Where a new column has a default they are *filled*: a table's
stored rows get it. Rows that may be *other* ones make the state of a step wrong unless the user's function converts it.
Behind the last state nothing matters: results are derived anew from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from everstate.plan.matching import Match
from everstate.plan.parts import changed_parts

if TYPE_CHECKING:
    from everstate.topology.prints import NodePrint, UnitPrint

#: Steps that bring rows together by another key than they had.
_REKEYING: Final = frozenset({"aggregate", "rekey", "foreign-key join"})

#: Steps whose state a column's default can be put into, or that keep no rows.
_FILLING: Final = frozenset({"table", "stateful"})

#: What users write for a selection of columns.
_PROJECTING: Final = frozenset({"select", "with_columns", "rename", "drop"})


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
        anew: Name of the step from whose state the output's table is derived; empty for a stream.
        kept_letters: Steps of the active version, as dead letters call them, whose letters stand.
        derived_letters: Those whose letters are made again with the table. Letters of all others may be no letters any
            more, which nobody can tell without a recalculation.
        obstacle: Why it cannot be done, as a clause; empty if it can.
    """

    converts: tuple[str, ...] = ()
    checked: bool = False
    anew: str = ""
    kept_letters: frozenset[str] = frozenset()
    derived_letters: frozenset[str] = frozenset()
    obstacle: str = ""


def conversion(old: UnitPrint, new: UnitPrint) -> Conversion:
    """How the state of the old version serves the new one; whether its keys do has been looked at before."""
    walk = _Walk(old, new)
    walk.run()
    nearest = _nearest(new)
    anew = nearest.name if nearest is not None and new.kind == "table" else ""
    behind = _behind(old) if anew else frozenset()
    before = [node for node in old.nodes if node.name not in behind]
    return Conversion(
        converts=tuple(walk.converts),
        checked=walk.checked,
        anew=anew,
        kept_letters=frozenset(_step(node) for node in before if node.name not in walk.affected),
        derived_letters=frozenset(_step(node) for node in old.nodes if node.name in behind),
        obstacle=walk.obstacle or _versions(old, new) or _shape(new, nearest if anew else None, checked=walk.checked),
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
                effect = self._stored(was, node, comes, effect, of_table=_of_table(node, nodes))
            elif effect < _Effect.OTHER and was is not None and was.columns == node.columns:
                effect = _Effect.NONE
            effects[node.name] = effect
            if effect is _Effect.OTHER and was is not None:
                self.affected.add(was.name)

    def _stored(self, was: NodePrint, node: NodePrint, comes: _Effect, effect: _Effect, *, of_table: bool) -> _Effect:
        """What the change does to a step's state, and to the rows behind it."""
        if effect is _Effect.NONE:
            return effect
        self.checked = True
        if effect < _Effect.OTHER and was.columns == node.columns:
            return _Effect.NONE
        if effect is _Effect.WIDER or (effect is _Effect.FILLED and node.operation in _FILLING):
            return effect
        if node.migrates:
            if of_table and comes is _Effect.OTHER and "remove" not in node.parts:
                self._stop(
                    f"the {node.operation} has no remove function, so it keeps the rows that it was given before"
                )
            self.converts.append(node.name)
        elif node.operation == "stateful" or "add" in node.parts:
            name = "stateful function" if node.operation == "stateful" else node.operation
            self._stop(f"the {name} has no migrate function")
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
    came = [column for column in now.columns if column not in was.columns]
    kept = [column for column in now.columns if column in was.columns]
    names = {column.partition(":")[0] for column in was.columns}
    new = all(column.partition(":")[0] not in names for column in came)
    if not (came and was.columns and new and kept == list(was.columns)):
        return _Effect.OTHER
    if all(column.endswith("?") for column in came):
        return _Effect.WIDER
    return _Effect.FILLED if all(column.endswith("?") or " = " in column for column in came) else _Effect.OTHER


def _versions(old: UnitPrint, new: UnitPrint) -> str:
    if old.policy != new.policy:
        return "records that cannot be processed are treated in another way"
    return "" if old.packages == new.packages else "a package that its functions use is another"


def _shape(new: UnitPrint, anew: NodePrint | None, *, checked: bool) -> str:
    """Why results cannot be derived from state, or a sample cannot be recalculated without everything else."""
    if anew is not None and anew.operation == "foreign-key join":
        return "the results of a foreign-key join are not in its state"
    if not checked:
        return ""
    above: dict[str, tuple[bool, bool]] = {}
    for node in new.nodes:
        stored = any(above[name][0] for name in node.inputs)
        moved = any(above[name][1] for name in node.inputs)
        if node.operation in _REKEYING and stored:
            if node.operation == "foreign-key join" or moved or not _only_tables(node, new):
                return "a key's result depends on other keys, so a sample of keys cannot be recalculated alone"
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
        if nodes[name].stateful and nodes[name].operation != "table":
            return False
        waiting += nodes[name].inputs
    return True


def _of_table(node: NodePrint, nodes: dict[str, NodePrint]) -> bool:
    """Whether a step takes changes of a table: behind all state but that of a stateful function is a table."""
    current = nodes[node.inputs[0]]
    while not current.stateful and current.inputs:
        current = nodes[current.inputs[0]]
    return current.stateful and current.operation != "stateful"


def _behind(unit: UnitPrint) -> frozenset[str]:
    """The names of the steps behind the last one with state."""
    nodes = {node.name: node for node in unit.nodes}
    current, found = unit.nodes[-1], set[str]()
    while not current.stateful:
        found.add(current.name)
        if not current.inputs:
            break
        current = nodes[current.inputs[0]]
    return frozenset(found)


def _step(node: NodePrint) -> str:
    """What dead letters call a step."""
    operation = "select" if node.operation in _PROJECTING else node.operation
    return f"{operation} at {node.location}" if node.location else operation


def _nearest(unit: UnitPrint) -> NodePrint | None:
    """The last step with state before the output."""
    nodes = {node.name: node for node in unit.nodes}
    current = unit.nodes[-1]
    while current.inputs:
        current = nodes[current.inputs[0]]
        if current.stateful:
            return current
    return None
