"""What stands in the open slots of functions, and whether it stays there while the service runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from everstate.fingerprints.code import slots
from everstate.fingerprints.code.sources import rebound_names
from everstate.fingerprints.outside import origins
from everstate.fingerprints.tree import Atom, Tree, atom

if TYPE_CHECKING:
    from everstate.fingerprints.code.slots import Surroundings
    from everstate.fingerprints.code.templates import Slot

UNKNOWN: Final = object()


@dataclass(frozen=True)
class Taken(Atom):
    """A plain value that stays what it is unless something sets the attribute of this name."""

    name: str = ""


@dataclass(eq=False)
class Hole:
    """A slot of a function, with the names around that function."""

    slot: Slot
    around: Surroundings

    @cached_property
    def _found(self) -> tuple[Any, tuple[str, ...], bool]:
        """The thing, the attributes that are left to be taken when the function runs, and whether names may change."""
        rest = list(self.slot.attributes)
        if self.slot.imported is not None and slots.package_of(self.slot.imported) is not None:
            return UNKNOWN, tuple(rest), False
        thing, steady = slots.root(self.around, self.slot), self._root_is_steady()
        while rest and isinstance(thing, ModuleType):
            steady = steady and _is_steady(thing, rest[0])
            thing = slots.attribute(thing, rest.pop(0))
        return (UNKNOWN if thing is slots.MISSING else thing), tuple(rest), steady

    def _root_is_steady(self) -> bool:
        imported = self.slot.imported
        if imported is None:
            file = self.around.globals.get("__file__", self.around.file)
            rebound = rebound_names(self.around.file, self.around.globals)
            return file == self.around.file and rebound is not None and self.slot.name not in rebound
        module = slots.loaded(imported, self.around.package)
        return imported.name is None or (isinstance(module, ModuleType) and _is_steady(module, imported.name))

    @property
    def thing(self) -> Any:
        """What the name stands for, with the attributes of modules taken; UNKNOWN if that cannot be told."""
        return self._found[0]

    @property
    def rest(self) -> tuple[str, ...]:
        """Attributes of the thing."""
        return self._found[1]

    @property
    def is_steady(self) -> bool:
        """Whether it is the same thing whenever it is looked at."""
        return self._found[2] and self.thing is not UNKNOWN and not self.rest

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for holes that have the same in them."""
        if self._found[2] and self.thing is not UNKNOWN and atom(self.thing) is None:
            return (id(self.thing), self.rest)
        return (id(self.around.globals), self.slot.name, self.slot.attributes, self.slot.imported)

    @cached_property
    def constant(self) -> Tree | None:
        """The tree of a value that nothing can change, as it would be if it were written in the function."""
        return constant(self.thing) if self.is_steady else None

    @cached_property
    def attribute(self) -> Taken | None:
        """A plain value that is an attribute of a class of the user's."""
        kind, (_, rest, steady) = self.thing, self._found
        if not steady or len(rest) != 1 or not isinstance(kind, type) or hasattr(type(kind), rest[0]):
            return None
        if type(kind).__getattribute__ is not type.__getattribute__ or origins.of_class(kind).kind != "user":
            return None
        leaf = next((atom(vars(base)[rest[0]]) for base in kind.__mro__ if rest[0] in vars(base)), None)
        return None if leaf is None else Taken(leaf.kind, leaf.text, name=rest[0])


def constant(thing: Any) -> Tree | None:
    """The tree of a plain value, or of a tuple of such; None if it is not one."""
    if thing is None or thing is Ellipsis:
        return "None" if thing is None else "..."
    if type(thing) is tuple:
        parts = [constant(part) for part in thing]
        return None if any(part is None for part in parts) else ["tuple", parts]
    return atom(thing)


def with_attributes(tree: Tree, stored: set[str]) -> Tree:
    """A tree in which attributes that nothing sets are their values."""
    if isinstance(tree, Taken):
        leaf = Atom(tree.kind, tree.text)
        return ["attribute of a class", tree.name, leaf] if stored & {tree.name, "*"} else leaf
    return [with_attributes(part, stored) for part in tree] if isinstance(tree, list) else tree


def is_single(tree: Tree) -> bool:
    """Whether there is only one of a constant, so that `is` cannot tell where it came from."""
    return tree in ("None", "...") or (isinstance(tree, Atom) and tree.kind == "bool")


def _is_steady(module: ModuleType, name: str) -> bool:
    if origins.of_loaded(module).kind != "user":
        return True
    file = getattr(module, "__file__", None)
    rebound = None if file is None else rebound_names(file, vars(module))
    return rebound is not None and name not in rebound
