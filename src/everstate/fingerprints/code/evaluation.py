"""In which order Python evaluates the parts of an expression, and what of it can be noticed.

Something that is evaluated elsewhere gives the same result only if nothing that happens in between can tell. So an
expression is followed up to the first thing that may have an effect: a call, an operator (which is a method of some
class), an attribute, a name that may not be bound.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from everstate.fingerprints.code.holes import Hole
from everstate.fingerprints.code.templates import Local, is_constant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from everstate.fingerprints.tree import Tree

#: Stands for something that may have an effect, or for a part that is not always evaluated.
EFFECT: Final = object()
_COMPREHENSIONS: Final = frozenset({"ListComp", "SetComp", "DictComp", "GeneratorExp"})
_FUNCTIONS: Final = frozenset(
    f"{kind}{more}" for kind in ("function", "async function") for more in ("", " that yields")
)
#: What runs later, with the variables as they are then.
_LATER: Final = _FUNCTIONS | {"class", "GeneratorExp"}
_PAIR: Final = 2


def steps(tree: Tree) -> list[Any]:
    """What is evaluated of an expression, in order: parts, or EFFECT."""
    if not isinstance(tree, list) or is_constant(tree):
        return []
    found = _STEPS.get(tree[0]) if tree and isinstance(tree[0], str) else None
    return [EFFECT] if found is None else found(tree, _fields(tree))


def _call(tree: Tree, _: dict[str, Any]) -> list[Any]:
    if len(tree) != 4 or not isinstance(tree[3], list):
        return [EFFECT]
    return [tree[1], *tree[2], *(value for _, value in tree[3]), EFFECT]


def _dict(_: Tree, fields: dict[str, Any]) -> list[Any]:
    keys = fields.get("keys", [])
    if None in keys:  # `**` in a dict calls methods on the way
        return [EFFECT]
    return [part for pair in zip(keys, fields.get("values", []), strict=True) for part in pair] + [EFFECT] * bool(keys)


def _first(*names: str) -> Callable[[Tree, dict[str, Any]], list[Any]]:
    return lambda _, fields: [*(fields[name] for name in names if name in fields), EFFECT]


_STEPS: Final[dict[str, Callable[[Tree, dict[str, Any]], list[Any]]]] = {
    "call": _call,
    "Dict": _dict,
    "Attribute": lambda tree, _: [tree[1], EFFECT],
    "Compare": lambda _, fields: [fields["left"], fields["comparators"][0], EFFECT],
    "BoolOp": lambda _, fields: [fields["values"][0], EFFECT],
    "BinOp": _first("left", "right"),
    "Subscript": _first("value", "slice"),
    "UnaryOp": _first("operand"),
    "IfExp": _first("test"),
    **dict.fromkeys(("Starred", "FormattedValue", "NamedExpr", "Await", "Yield", "YieldFrom"), _first("value")),
    **dict.fromkeys(("Tuple", "List"), lambda _, fields: list(fields.get("elts", []))),
    "Slice": lambda _, fields: list(fields.values()),
    "text": lambda tree, _: [part for part in tree[1:] if not isinstance(part, str)],
    "function": lambda tree, _: [] if is_function(tree) and not tree[2] else [EFFECT],
    **dict.fromkeys(_COMPREHENSIONS, lambda tree, _: [tree[1][0], EFFECT]),
}


def _fields(tree: list[Any]) -> dict[str, Any]:
    """The fields of a node that was written generically."""
    parts = tree[1:]
    if all(isinstance(part, list) and len(part) == _PAIR and isinstance(part[0], str) for part in parts):
        return dict(parts)
    return {}


def is_function(tree: Tree) -> bool:
    """Whether a tree is that of a function."""
    return type(tree) is list and len(tree) == 5 and type(tree[0]) is str and tree[0] in _FUNCTIONS


@dataclass(eq=False)
class Usage:
    """How the variables of a function are used.

    Attributes:
        bound: How often each is bound, as a parameter or otherwise; deleting counts as binding.
        read: How often each is read.
        captured: Those that functions inside use, and generators, which run later.
        sure: Those that are bound once, before they are read.
        present: Those that are bound wherever they are read, by whichever of several statements.
        functions: The function and those in it.
    """

    bound: Counter[Local] = field(default_factory=Counter)
    read: Counter[Local] = field(default_factory=Counter)
    captured: set[Local] = field(default_factory=set)
    sure: set[Local] = field(default_factory=set)
    present: set[Local] = field(default_factory=set)
    functions: list[Tree] = field(default_factory=list)
    _gone: set[Local] = field(default_factory=set)

    @classmethod
    def of(cls, function: Tree) -> Usage:
        """Of a function and those in it."""
        found = cls()
        found._count(function)
        for inner in found.functions:
            found.sure.update(local for local in bound_in(inner[1]) if found.bound[local] == 1)
            found.present.update(bound_in(inner[1]))
            found._block(inner[4])
        found.present -= found._gone
        return found

    def is_inert(self, tree: Tree) -> bool:
        """Whether evaluating this can neither be noticed nor give another value a little later."""
        if isinstance(tree, Local):
            return tree in self.sure and self.bound[tree] == 1
        return is_constant(tree) or (isinstance(tree, Hole) and tree.is_steady)

    def is_still(self, tree: Tree) -> bool:
        """Whether it is a variable that only a statement or `:=` of its own function can change."""
        return isinstance(tree, Local) and tree in self.present and tree not in self.captured

    def comes_first(self, tree: Tree, wanted: object, passing: frozenset[Any] = frozenset()) -> bool:
        """Whether a part is evaluated before anything that can be noticed, and is so always."""
        return self._search(tree, wanted, passing) is True

    def _search(self, tree: Tree, wanted: object, passing: frozenset[Any]) -> bool | None:
        """True if found, False if something can be noticed before, None if all of it was passed."""
        if tree is wanted:
            return True
        if tree is EFFECT:
            return False
        if isinstance(tree, (Local, Hole)):
            return None if self.is_inert(tree) or tree in passing else False
        for part in steps(tree):
            found = self._search(part, wanted, passing)
            if found is not None:
                return found
        return None

    def _count(self, function: Tree) -> None:
        self.functions.append(function)
        waiting: list[tuple[Any, bool]] = [(part, False) for part in function if type(part) is list]
        while waiting:
            part, inside = waiting.pop()
            if type(part) is Local:
                self.read[part] += 1
                if inside:
                    self.captured.add(part)
                continue
            kind = part[0] if part and type(part[0]) is str else ""
            if kind in ("to", "del") and type(part[1]) is Local:
                self.bound[part[1]] += 1 if kind == "to" else 2
                self._gone |= {part[1]} if kind == "del" else set()
                if inside:
                    self.captured.add(part[1])
                continue
            if kind in _LATER:
                inside = True
                if is_function(part):
                    self.functions.append(part)
            if kind in _COMPREHENSIONS:
                self._targets(part)
            if not kind and _is_handler(part):
                self._gone.update(bound_in(part[0]))  # its variable is deleted at its end
            waiting += [(inner, inside) for inner in part if type(inner) is list or type(inner) is Local]

    def _targets(self, comprehension: Tree) -> None:
        for part in comprehension[1:]:
            if isinstance(part, list) and len(part) == 4 and isinstance(part[3], int):
                self.sure.update(bound_in(part[1]))

    def _block(self, statements: list[Tree]) -> None:
        """Variables that are bound by a statement and read only by those that follow it in the same block."""
        after: Counter[Local] = Counter()
        for statement in reversed(statements):
            if statement[0] == "Assign":
                self._sure(bound_in(statement[1]), after)
            elif statement[0] == "For":
                fields = _fields(statement)
                self._sure(bound_in(fields["target"]), reads(fields.get("body", [])))
            after.update(reads(statement))
            for block in blocks(statement):
                self._block(block)

    def _sure(self, targets: Iterator[Local], after: Counter[Local]) -> None:
        found = [local for local in targets if after[local] == self.read[local]]
        self.present.update(found)
        self.sure.update(local for local in found if self.bound[local] == 1)


def _is_handler(tree: Tree) -> bool:
    """Whether a tree is that of an `except`."""
    return len(tree) == _PAIR and type(tree[1]) is list and tree[1][:1] == ["ExceptHandler"]


def bound_in(tree: Tree) -> Iterator[Local]:
    """The variables that are bound in a tree."""
    if isinstance(tree, list):
        if len(tree) == _PAIR and tree[0] == "to" and isinstance(tree[1], Local):
            yield tree[1]
        else:
            for part in tree:
                yield from bound_in(part)


def reads(tree: Tree) -> Counter[Local]:
    """How often each variable is read in a tree."""
    found: Counter[Local] = Counter()
    waiting: list[Any] = [[tree]]
    while waiting:
        part = waiting.pop()
        if type(part) is Local:
            found[part] += 1
        elif not (len(part) == _PAIR and type(part[1]) is Local and part[0] in ("to", "del")):
            waiting += [inner for inner in part if type(inner) is list or type(inner) is Local]
    return found


def free_in(function: Tree) -> set[Local]:
    """Variables of the code around that a function uses, or a generator, which runs later."""
    return set(reads(function)) - set(bound_in(function))


def is_bound_before_use(function: Tree, usage: Usage) -> bool:
    """Whether no variable of a function keeps a value from an earlier run of its body, were it written in a loop."""
    known = usage.sure | set(bound_in(function[1]))
    for statement in function[4]:
        if statement[0] == "Assign":
            if not set(reads(statement)) <= known:
                return False
            known |= set(bound_in(statement[1]))
        if not {*reads(statement), *bound_in(statement)} - _comprehended(statement) <= known:
            return False
    return True


def _comprehended(tree: Tree) -> set[Local]:
    """Variables that belong to comprehensions and functions in a tree."""
    if not isinstance(tree, list):
        return set()
    kind = tree[0] if tree and isinstance(tree[0], str) else ""
    if kind in _COMPREHENSIONS or kind in _FUNCTIONS:
        return set(bound_in(tree))
    return {local for part in tree for local in _comprehended(part)}


def blocks(statement: Tree) -> Iterator[list[Tree]]:
    """The blocks of statements in a statement, functions aside."""
    if statement[0] == "If":
        yield from statement[2:4]
        return
    for name, part in _fields(statement).items():
        if name in ("body", "orelse", "finalbody"):
            yield part
        elif name == "handlers":
            for _, handler in part:
                yield _fields(handler).get("body", [])
        elif name == "cases":
            for case in part:
                yield _fields(case).get("body", [])


def head(statement: Tree) -> Tree:
    """The expression that a statement evaluates first, and once; EFFECT if that is not so simple."""
    match statement[0]:
        case "Return" | "Expr" | "If":
            return statement[1]
        case "Assign":
            return statement[2]
        case "For" | "AsyncFor":
            return _fields(statement)["iter"]
        case "Raise":
            return _fields(statement).get("exc", EFFECT)
        case "Match":
            return _fields(statement)["subject"]
    return EFFECT
