"""Configuration values that end up in an output."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from everstate.errors import secrets
from everstate.fingerprints.prints import Setting
from everstate.fingerprints.tree import Atom, Tree, atom, atoms, digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: Values that occur in code for any number of reasons.
_TRIVIAL: Final = frozenset(atom(value) for value in (True, False, 0, 1, -1, 0.0, 1.0, -1.0, ""))


class Settings:
    """The settings a service has read, and which of them an output's parts hold."""

    def __init__(self, values: Mapping[str, Any], trees: Iterable[Tree]) -> None:
        self._values = dict(values)
        found = Counter(leaf for tree in trees for leaf in atoms(tree))
        names: dict[Atom, list[str]] = {}
        for name, value in sorted(values.items()):
            leaf = atom(value)
            if leaf is not None:
                names.setdefault(leaf, []).append(name)
        self._held = {leaf: held for leaf, held in names.items() if leaf in found}
        # A value such as True may stand there for another reason, so that only its one occurrence is the setting.
        self._clear = {
            leaf: "|".join(held) for leaf, held in self._held.items() if leaf not in _TRIVIAL or found[leaf] == 1
        }

    def name_of(self, leaf: Atom) -> str | None:
        """The setting that a value comes from."""
        return self._clear.get(leaf)

    def prints(self) -> dict[str, Setting]:
        """The settings that occur, by name."""
        names = sorted(name for held in self._held.values() for name in held)
        return {name: Setting(digest([name, atom(self._values[name])]), self._shown(name)) for name in names}

    def masked(self, text: str) -> str:
        """A text in which no secret is to be read."""
        return secrets.hidden(text, secrets.named(self._values).values())

    def _shown(self, name: str) -> str:
        return secrets.shown(name, self._values[name])
