"""What a function does with names and attributes, as far as its syntax tells: each place where one is read."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from everstate.fingerprints.code.literals import spelled
from everstate.fingerprints.code.sources import once
from everstate.fingerprints.outside import lookup

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everstate.fingerprints.code.slots import Surroundings
    from everstate.fingerprints.code.sources import FunctionNode

#: Texts that some libraries take for the time of day.
MOMENTS: Final = frozenset({"now", "today"})
#: What gives a thing's attributes by names that are values.
_BY_NAME: Final = frozenset({"getattr", "vars", "hasattr", "delattr", "setattr"})
_TEXTS: Final = frozenset({"str", "repr", "format", "to_string", "__str__", "__repr__", "__format__"})
_LONGEST: Final = 80
_NAMESPACE: Final = "__dict__"


@dataclass(frozen=True)
class Use:
    """One place where something is read.

    Attributes:
        root: The name that it begins with; None if it begins with another expression.
        attributes: What is taken of that, one after the other.
        line: Where.
        call: The call, if it is called there.
        ordered: What comes of it is sorted.
        kept: It stands in a `with` that takes back what it changes.
        base: The expression that it begins with.
    """

    root: str | None
    attributes: tuple[str, ...]
    line: int
    call: ast.Call | None = None
    ordered: bool = False
    kept: bool = False
    base: ast.expr | None = None


@dataclass(eq=False)
class Usage:
    """All of a function.

    Attributes:
        uses: Each place where a name or an attribute is read.
        bound: Names that the function binds somewhere.
        assigned: What is assigned to them, where that is an expression of its own.
        stored: Attributes that it sets.
        kept: Those attributes with what they are set to.
        texts: Texts that may be taken for the name of an attribute with an effect, with their lines.
        moments: Texts that may be taken for the time of day, with their lines.
        dynamic: Places where an attribute is taken by a name that is a value.
        formats: It makes texts of values.
    """

    uses: list[Use] = field(default_factory=list)
    bound: set[str] = field(default_factory=set)
    assigned: dict[str, list[ast.expr]] = field(default_factory=dict)
    stored: set[str] = field(default_factory=set)
    kept: list[tuple[str, ast.expr]] = field(default_factory=list)
    texts: dict[str, int] = field(default_factory=dict)
    moments: dict[str, int] = field(default_factory=dict)
    dynamic: list[Use] = field(default_factory=list)
    formats: bool = False

    def of_slot(self, name: str, attributes: tuple[str, ...]) -> Iterator[Use]:
        """The places where just this is read."""
        return (use for use in self.uses if use.root == name and use.attributes == attributes)


@once
def usage_of(node: FunctionNode) -> Usage:
    """What a function reads."""
    walk = _Walk()
    walk.function(node)
    return walk.usage


def usage_of_function(around: Surroundings) -> Usage:
    """What a function reads; nothing if there is no source of it."""
    node = spelled(around)
    return Usage() if node is None else usage_of(node)


@dataclass(frozen=True)
class _Place:
    """What stands around a node: see `Use`; `spoken` says that a text there may be an argument."""

    call: ast.Call | None = None
    ordered: bool = False
    kept: bool = False
    spoken: bool = True


class _Walk:
    def __init__(self) -> None:
        self.usage = Usage()
        self._waiting: list[tuple[ast.AST, _Place]] = []

    def function(self, node: FunctionNode) -> None:
        self._waiting = [(part, _Place()) for part in _inside(node)]
        self._bind(node.args)
        while self._waiting:
            self._visit(*self._waiting.pop())

    def _visit(self, node: ast.AST, place: _Place) -> None:
        match node:
            case ast.Attribute():
                self._attribute(node, place)
            case ast.Name():
                self._name(node, place)
            case ast.Constant(value=str(text)):
                self._text(text, node.lineno, place)
            case ast.Call():
                self._call(node, place)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                self._bind(node.args)
                self._push(_inside(node), _Place(kept=place.kept))
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._assign(target, value)
                self._others(node, place)
            case ast.NamedExpr(target=target, value=value) | ast.AugAssign(target=target, value=value):
                self._assign(target, value)
                self._others(node, place)
            case ast.With() | ast.AsyncWith():
                kept = place.kept or any(map(_takes_back, node.items))
                self._push(node.items, place)
                self._push(node.body, _Place(kept=kept))
            case _:
                self._others(node, place)

    def _others(self, node: ast.AST, place: _Place) -> None:
        spoken = not isinstance(node, (ast.Compare, ast.Subscript, ast.JoinedStr, ast.Expr))
        if isinstance(node, (ast.Tuple, ast.List, ast.Set, ast.Starred)):
            spoken = place.spoken
        inner = _Place(ordered=False, kept=place.kept, spoken=spoken)
        if isinstance(node, ast.Dict):
            self._push([key for key in node.keys if key is not None], _Place(kept=place.kept, spoken=False))
            self._push(node.values, inner)
            return
        if isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self._assign(node.target, node.value)
            self._push([part for part in (node.target, node.value) if part is not None], inner)
            return
        self.usage.formats |= isinstance(node, ast.FormattedValue)
        if isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            self.usage.bound.add(node.name)
        self._push(ast.iter_child_nodes(node), inner)

    def _attribute(self, node: ast.Attribute, place: _Place) -> None:
        chain: list[str] = []
        base: ast.expr = node
        while isinstance(base, ast.Attribute):
            chain.append(base.attr)
            base = base.value
        attributes = tuple(reversed(chain))
        if not isinstance(node.ctx, ast.Load):
            self.usage.stored.add(node.attr)
        root = base.id if isinstance(base, ast.Name) else None
        use = Use(root, attributes, node.lineno, place.call, place.ordered, place.kept, base)
        self.usage.uses.append(use)
        if _NAMESPACE in attributes:
            self.usage.dynamic.append(Use(root, attributes[: attributes.index(_NAMESPACE)], node.lineno))
        if root is None:
            self._waiting.append((base, _Place(ordered=place.ordered, kept=place.kept, spoken=False)))

    def _name(self, node: ast.Name, place: _Place) -> None:
        if isinstance(node.ctx, ast.Load):
            self.usage.uses.append(Use(node.id, (), node.lineno, place.call, place.ordered, place.kept))
            if node.id in _BY_NAME and place.call is None:
                self.usage.dynamic.append(Use(None, (), node.lineno))
        else:
            self.usage.bound.add(node.id)

    def _text(self, text: str, line: int, place: _Place) -> None:
        for part in meaningful(text):
            self.usage.texts.setdefault(part, line)
        if place.spoken and text.strip().lower() in MOMENTS:
            self.usage.moments.setdefault(text, line)

    def _call(self, node: ast.Call, place: _Place) -> None:
        sorts = isinstance(node.func, ast.Attribute) and node.func.attr == "sort"
        self._waiting.append((node.func, _Place(node, place.ordered or sorts, place.kept)))
        named = node.func.id if isinstance(node.func, ast.Name) else ""
        called = node.func.attr if isinstance(node.func, ast.Attribute) else named
        self.usage.formats |= called in _TEXTS
        inner = _Place(ordered=named == "sorted", kept=place.kept)
        self._push(node.args, inner)
        self._push([keyword.value for keyword in node.keywords], inner)
        if named in _BY_NAME and node.args:
            self._by_name(node)
        if isinstance(node.func, ast.Lambda):
            for argument, given in zip(node.func.args.args, node.args, strict=False):
                self.usage.assigned.setdefault(argument.arg, []).append(given)

    def _by_name(self, node: ast.Call) -> None:
        """`getattr(x, "now")` takes an attribute like `x.now`."""
        name = node.args[1] if len(node.args) > 1 else None
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            self.usage.uses.append(Use(None, (name.value,), node.lineno))
        else:
            self.usage.dynamic.append(_chain(node.args[0], node.lineno))

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self.usage.assigned.setdefault(target.id, []).append(value)
        elif isinstance(target, ast.Attribute):
            self.usage.kept.append((target.attr, value))

    def _bind(self, arguments: ast.arguments) -> None:
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        self.usage.bound.update(argument.arg for argument in every if argument is not None)

    def _push(self, nodes: Any, place: _Place) -> None:
        # The last comes off first: so what is written first is seen first.
        self._waiting.extend((node, place) for node in reversed(list(nodes)))


def meaningful(text: str) -> list[str]:
    """What of a text may be taken for the name of an attribute with an effect; `attrgetter` takes several at once."""
    parts = text.split(".") if len(text) <= _LONGEST else []
    return [part for part in parts if lookup.effects_below(part) or lookup.methods_of(part)]


def _inside(node: FunctionNode) -> list[ast.AST]:
    """All of a function but its annotations."""
    defaults = [*node.args.defaults, *(default for default in node.args.kw_defaults if default is not None)]
    if isinstance(node, ast.Lambda):
        return [*defaults, node.body]
    return [*node.decorator_list, *defaults, *node.body]


def _chain(node: ast.expr, line: int) -> Use:
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.append(node.attr)
        node = node.value
    return Use(node.id if isinstance(node, ast.Name) else None, tuple(reversed(attributes)), line)


def _takes_back(item: ast.withitem) -> bool:
    call = item.context_expr
    named = _chain(call.func, 0) if isinstance(call, ast.Call) else None
    return named is not None and "catch_warnings" in (named.root, *named.attributes)
