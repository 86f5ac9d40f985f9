"""What a function's syntax becomes: a tree with open slots for what the function takes from outside."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from everstate.fingerprints.tree import Atom, Tree

if TYPE_CHECKING:
    from everstate.fingerprints.code.scopes import Imported


@dataclass(eq=False, slots=True)
class Local:
    """A local variable in a tree. In `["to", variable]` it is bound, in `["del", variable]` deleted, else read.

    Attributes:
        name: Empty, unless the function can see the names of its variables.
    """

    name: str = ""


@dataclass(frozen=True, slots=True)
class Open:
    """An open slot in a tree, by its number."""

    number: int


@dataclass(frozen=True)
class Slot:
    """Something from outside a function.

    Attributes:
        name: The name it goes by; what an import inside the function binds has `imported` as well.
        attributes: What is taken of it, as in `module.helper`.
        line: Where it is first used.
        imported: The import inside the function that binds it.
    """

    name: str
    attributes: tuple[str, ...]
    line: int
    imported: Imported | None = None


@dataclass(eq=False)
class Template:
    """A function's syntax with open slots.

    Attributes:
        tree: The syntax.
        slots: What the function takes from outside.
        keywords: Names by which it passes arguments.
        spreads: It passes `**arguments`, whose names cannot be told.
        methods: Attributes of things that are not known, with their line.
        watched: What is taken of a slot that has got another name inside the function.
        stored: Names of attributes that it sets or deletes; `*` if it may be any.
        looks: It may see how it is written: its variables, its frame, which of two equal numbers it was given.
        rebinds: It has `global` or `nonlocal` statements.
        private: It has names that mean something else in another class.
    """

    tree: Tree = None
    slots: list[Slot] = field(default_factory=list)
    keywords: set[str] = field(default_factory=set)
    spreads: bool = False
    methods: dict[str, int] = field(default_factory=dict)
    watched: list[Slot] = field(default_factory=list)
    stored: set[str] = field(default_factory=set)
    looks: bool = False
    rebinds: bool = False
    private: bool = False


def is_constant(tree: Tree) -> bool:
    """Whether a tree is that of a value which nothing can change."""
    return isinstance(tree, Atom) or tree in ("None", "...") or (isinstance(tree, list) and tree[:1] == ["tuple"])


def numbered(tree: Tree) -> Tree:
    """A tree in which variables and slots are called by the order of their first occurrence."""
    locals_: dict[Local, int] = {}

    def plain(part: Tree) -> Tree:
        if isinstance(part, list):
            if len(part) == 2 and part[0] in ("to", "del") and isinstance(part[1], Local):
                part = part[1]
            else:
                return [plain(inner) for inner in part]
        if isinstance(part, Local):
            number = locals_.setdefault(part, len(locals_))
            return ["local", number, part.name] if part.name else ["local", number]
        return ["slot", part.number] if isinstance(part, Open) else part

    return plain(tree)
