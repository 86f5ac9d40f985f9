"""What a meaning is made of before it is hashed: nested lists with a few kinds of leaves that are decided at the end.

A tree is built once and hashed twice: as it is, and with the values of configuration settings replaced by their names.
"""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

#: Lists of text, numbers, None and leaves.
Tree: TypeAlias = Any


@dataclass(frozen=True, slots=True)
class Atom:
    """A plain value.

    Attributes:
        kind: Its type.
        text: Its one text.
        written: It stands in code as a literal, so it cannot have come from a configuration setting.
    """

    kind: str
    text: str
    written: bool = False


@dataclass(frozen=True, slots=True)
class Parameter:
    """The name of a parameter, which matters only if something calls by keyword."""

    name: str


@dataclass(frozen=True, slots=True)
class Ref:
    """A function or class that is defined elsewhere in the same tree; these may refer to each other in circles."""

    number: int


def atom(value: object, *, written: bool = False) -> Atom | None:
    """A plain value as a leaf; None if it is not one of those."""
    kind = type(value)
    if kind is str:
        return Atom("str", value, written)  # type: ignore[arg-type]  # the type was just compared
    if kind is bool:
        return Atom("bool", str(value), written)
    if kind is int:
        return Atom("int", hex(value), written)  # type: ignore[arg-type]  # hexadecimal has no limit of digits
    if kind is float:
        return Atom("float", _float(value), written)  # type: ignore[arg-type]
    if kind is complex:
        return Atom("complex", f"{_float(value.real)} {_float(value.imag)}", written)  # type: ignore[attr-defined]
    if kind is bytes:
        return Atom("bytes", value.hex(), written)  # type: ignore[attr-defined]
    return None


def _float(value: float) -> str:
    return value.hex() if value == value else struct.pack(">d", value).hex()  # noqa: PLR0124 - NaN has a sign and more


def digest(
    tree: Tree,
    *,
    keywords: Collection[str] | None = (),
    name_of: Callable[[Atom], str | None] | None = None,
) -> str:
    """The hash of a tree.

    Args:
        tree: The tree.
        keywords: Names by which something in the tree passes arguments; None if they cannot be told.
        name_of: The setting that a value comes from, for the hash of the shape.
    """

    def plain(leaf: object) -> Any:
        if isinstance(leaf, Atom):
            name = name_of(leaf) if name_of is not None and not leaf.written else None
            return {leaf.kind: leaf.text} if name is None else {"setting": name}
        if isinstance(leaf, Parameter):
            return {"parameter": leaf.name if keywords is None or leaf.name in keywords else ""}
        if isinstance(leaf, Ref):
            return {"ref": leaf.number}
        message = f"not a part of a tree: {leaf!r}"
        raise TypeError(message)

    return hashlib.sha256(json.dumps(tree, default=plain).encode()).hexdigest()


def atoms(tree: Tree) -> Iterator[Atom]:
    """The plain values in a tree that may have come from settings."""
    waiting = [tree]
    while waiting:
        part = waiting.pop()
        if isinstance(part, (list, tuple)):
            waiting.extend(part)
        elif isinstance(part, Atom) and not part.written:
            yield part
