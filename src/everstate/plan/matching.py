"""Which node of an old print is which node of a new one.

Names do not tell: a filter that is inserted before another of its kind takes over the other's name. So nodes that are
the same to the last digest are paired first, in their order, then those that were written the same, and names alone
count only among what is left.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from everstate.fingerprints.prints import NodePrint, UnitPrint


@dataclass(frozen=True)
class Match:
    """Two prints of one output, node by node.

    Attributes:
        kept: (old node, new node) of those that are in both, in the new order.
        added: Nodes that only the new print has.
        removed: Nodes that only the old print has.
        rewired: Of the kept ones, those that take their rows from other nodes than before although nothing was added or
            removed in between.
        fed_otherwise: New names of the kept ones whose inputs give other columns or keys than before.
    """

    kept: tuple[tuple[NodePrint, NodePrint], ...]
    added: tuple[NodePrint, ...]
    removed: tuple[NodePrint, ...]
    rewired: tuple[tuple[NodePrint, NodePrint], ...]
    fed_otherwise: frozenset[str]

    @classmethod
    def of(cls, old: UnitPrint, new: UnitPrint) -> Match:
        """Pair the nodes of two prints."""
        partner = _Pairing(old, new).run()
        before, after = ({node.name: node for node in unit.nodes} for unit in (old, new))
        kept = tuple((before[partner[node.name]], node) for node in new.nodes if node.name in partner)
        taken = set(partner.values())
        rewired = tuple((was, now) for was, now in kept if _rewired(was, now, partner, taken))
        return cls(
            kept=kept,
            added=tuple(node for node in new.nodes if node.name not in partner),
            removed=tuple(node for node in old.nodes if node.name not in taken),
            rewired=rewired,
            fed_otherwise=frozenset(
                now.name
                for was, now in kept
                if [_gives(before[name]) for name in was.inputs] != [_gives(after[name]) for name in now.inputs]
            ),
        )


def source_topic(node: NodePrint) -> str:
    """The topic that a node reads; empty for any node but a source."""
    if node.inputs:
        return ""
    return next((part.text for part in node.parts.values() if part.kind == "topic"), "")


def source_topics(unit: UnitPrint) -> tuple[str, ...]:
    """The topics that an output reads, sorted."""
    return tuple(sorted({topic for topic in map(source_topic, unit.nodes) if topic}))


@dataclass
class _Pairing:
    """The search for partners: likeness is tried from the strictest kind to the loosest."""

    old: UnitPrint
    new: UnitPrint
    partner: dict[str, str] = field(default_factory=dict)

    def run(self) -> dict[str, str]:
        """New names to old names."""
        followed_old, followed_new = _followers(self.old), _followers(self.new)

        def same_followers(was: NodePrint, now: NodePrint) -> bool:
            return followed_old[was.name] == {self.partner.get(name, "") for name in followed_new[now.name]}

        for likeness in (_meaning, _form):
            self._align(likeness)
            self._pair(likeness, lambda was, now: was.name == now.name)
            self._pair(likeness, self._same_inputs)
            self._pair(likeness, lambda _was, _now: True)
        self._pair(_place, lambda was, now: was.name == now.name)
        self._pair(_place, self._same_inputs)
        self._pair(_place, same_followers)
        return self.partner

    def _same_inputs(self, was: NodePrint, now: NodePrint) -> bool:
        return was.inputs == tuple(self.partner.get(name, "") for name in now.inputs)

    def _align(self, likeness: Callable[[NodePrint], object]) -> None:
        """Pair as many alike nodes as can be paired without two pairs crossing each other."""
        taken = set(self.partner.values())
        old = [node for node in self.old.nodes if node.name not in taken]
        new = [node for node in self.new.nodes if node.name not in self.partner]
        for was, now in _common([likeness(node) for node in old], [likeness(node) for node in new]):
            self.partner[new[now].name] = old[was].name

    def _pair(self, likeness: Callable[[NodePrint], object], fits: Callable[[NodePrint, NodePrint], bool]) -> None:
        """Pair the nodes that are alike and fit, in topological order."""
        taken = set(self.partner.values())
        alike: dict[object, list[NodePrint]] = {}
        for was in self.old.nodes:
            if was.name not in taken:
                alike.setdefault(likeness(was), []).append(was)
        for now in self.new.nodes:
            if now.name not in self.partner:
                candidates = alike.get(likeness(now), [])
                found = next((was for was in candidates if fits(was, now)), None)
                if found is not None:
                    candidates.remove(found)
                    self.partner[now.name] = found.name


def _common(old: list[object], new: list[object]) -> Iterator[tuple[int, int]]:
    """The places of a longest common subsequence."""
    longest = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in reversed(range(len(old))):
        for j in reversed(range(len(new))):
            same = old[i] == new[j]
            longest[i][j] = longest[i + 1][j + 1] + 1 if same else max(longest[i + 1][j], longest[i][j + 1])
    i = j = 0
    while i < len(old) and j < len(new):
        if old[i] == new[j]:
            yield i, j
            i, j = i + 1, j + 1
        elif longest[i + 1][j] >= longest[i][j + 1]:
            i += 1
        else:
            j += 1


def _meaning(node: NodePrint) -> object:
    return node.operation, tuple(sorted((name, part.digest) for name, part in node.parts.items()))


def _form(node: NodePrint) -> object:
    """What the user wrote at a step: not its columns, which follow from those before it, nor the values of settings."""
    parts = ((name, part.shape) for name, part in node.parts.items() if part.kind != "schema")
    return node.operation, tuple(sorted(parts))


def _place(node: NodePrint) -> object:
    # A source of a different topic is a different source, however alike the two are.
    return node.operation, source_topic(node)


def _gives(node: NodePrint) -> object:
    """Columns and key of the rows that a node hands on."""
    return sorted((name, part.digest) for name, part in node.parts.items() if part.kind in {"schema", "key"})


def _followers(unit: UnitPrint) -> dict[str, set[str]]:
    followers: dict[str, set[str]] = {node.name: set() for node in unit.nodes}
    for node in unit.nodes:
        for name in node.inputs:
            followers[name].add(node.name)
    return followers


def _rewired(was: NodePrint, now: NodePrint, partner: dict[str, str], taken: set[str]) -> bool:
    explained = any(name not in taken for name in was.inputs) or any(name not in partner for name in now.inputs)
    return not explained and was.inputs != tuple(_mapped(now, partner))


def _mapped(node: NodePrint, partner: dict[str, str]) -> Iterator[str]:
    return (partner[name] for name in node.inputs)
