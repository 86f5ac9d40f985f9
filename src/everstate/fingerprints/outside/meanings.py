"""What the expressions of a function stand for, as far as that can be told without running it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final

from everstate.fingerprints.code.slots import MISSING
from everstate.fingerprints.outside import origins

if TYPE_CHECKING:
    from everstate.fingerprints.code.slots import Surroundings
    from everstate.fingerprints.outside.usage import Usage

#: How often a name is followed to what was assigned to it.
_DEPTH: Final = 8


@dataclass(frozen=True, eq=False)
class Meanings:
    """A function's names, inside and outside.

    Attributes:
        around: Its globals and closure.
        usage: What it does with names.
        sets: Attributes of its own object that hold sets.
    """

    around: Surroundings
    usage: Usage
    sets: frozenset[str] = frozenset()

    def value(self, node: ast.expr | None) -> Any:
        """What a name or a chain of attributes outside the function stands for; `MISSING` if that cannot be told."""
        if isinstance(node, ast.Attribute):
            return attribute(self.value(node.value), node.attr)
        if isinstance(node, ast.Name):
            return self.named(node.id)
        return MISSING

    def named(self, name: str) -> Any:
        """What a name outside the function stands for; `MISSING` if the function binds it."""
        return MISSING if name in self.usage.bound else self.around.named(name)

    def called(self, node: ast.expr | None) -> Any:
        """What an expression calls; `MISSING` if it is no call, or that cannot be told."""
        return self.value(node.func) if isinstance(node, ast.Call) else MISSING

    def sources(self, node: ast.expr, depth: int = _DEPTH) -> list[ast.expr]:
        """An expression, or what was assigned to it if it is a variable of the function."""
        if isinstance(node, ast.Name) and node.id in self.usage.assigned and depth:
            return [part for given in self.usage.assigned[node.id] for part in self.sources(given, depth - 1)]
        return [node]


def attribute(thing: Any, name: str) -> Any:
    """An attribute of a module, class or object, without running code of the user's to get it."""
    if thing is MISSING:
        return MISSING
    if isinstance(thing, (ModuleType, type)) or origins.of_object(type(thing)).kind != "user":
        return getattr(thing, name, MISSING)
    own = getattr(thing, "__dict__", {})
    found = own.get(name, MISSING)
    if found is not MISSING:
        return found
    made = next((vars(base)[name] for base in type(thing).__mro__ if name in vars(base)), MISSING)
    return MISSING if isinstance(made, (property, FunctionType)) or hasattr(made, "__get__") else made
