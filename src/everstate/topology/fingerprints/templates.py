"""What a function's syntax becomes: a tree with open slots for what the function takes from outside."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from everstate.topology.fingerprints.scopes import Imported
    from everstate.topology.fingerprints.tree import Tree


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
        tree: The syntax; `["slot", n]` stands for a slot.
        slots: What the function takes from outside.
        keywords: Names by which it passes arguments.
        spreads: It passes `**arguments`, whose names cannot be told.
        methods: Attributes of things that are not known, with their line.
        watched: What is taken of a slot that has got another name inside the function.
    """

    tree: Tree = None
    slots: list[Slot] = field(default_factory=list)
    keywords: set[str] = field(default_factory=set)
    spreads: bool = False
    methods: dict[str, int] = field(default_factory=dict)
    watched: list[Slot] = field(default_factory=list)
