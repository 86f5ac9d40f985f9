"""Where the order of a set shows in a result: texts in a set have another order in every process.

It is found where the set can be told from the function: a literal, `set(...)`, a comprehension, what set operators and
methods give, variables and attributes of `self` that hold such, globals that are sets, parameters that are annotated as
sets or are given one, and results of functions of which the same is true. A set inside something else may not be found.
"""

from __future__ import annotations

import ast
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

from everstate.fingerprints.code.literals import spelled
from everstate.fingerprints.code.slots import MISSING, Surroundings
from everstate.fingerprints.code.sources import once
from everstate.fingerprints.outside import origins
from everstate.fingerprints.outside.meanings import Meanings
from everstate.fingerprints.outside.usage import usage_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everstate.fingerprints.code.sources import FunctionNode

#: What methods call the object that they belong to.
OWNERS: Final = frozenset({"self", "cls"})
_WHAT: Final = "a set"
_DEPTH: Final = 6
_ALGEBRA: Final = (ast.BitOr, ast.BitAnd, ast.Sub, ast.BitXor)
_SET_METHODS: Final = frozenset({"union", "intersection", "difference", "symmetric_difference", "copy"})
_VIEWS: Final = frozenset({"keys", "items"})
#: What makes numbers, whose order in a set is the same everywhere.
_NUMBERS: Final = frozenset({"len", "int", "float", "round", "abs", "ord", "sum", "range", "bool"})
#: Functions that give the same for every order of what they are given.
_BLIND: Final = frozenset(
    {
        "all", "any", "bool", "frozenset", "hasattr", "isinstance", "len", "max", "min", "print", "set", "sorted",
        "sum", "type", "fsum", "copy", "deepcopy", "id", "getattr", "callable",
    }
)  # fmt: skip
_BLIND_METHODS: Final = frozenset(
    {
        "add", "append", "debug", "difference", "difference_update", "discard", "error", "info", "insert",
        "intersection", "intersection_update", "is_in", "isdisjoint", "isin", "issubset", "issuperset", "remove",
        "setdefault", "symmetric_difference", "symmetric_difference_update", "union", "update", "warning",
    }
)  # fmt: skip
_KEYED: Final = frozenset({"max", "min", "sorted"})
_SETTISH: Final = (ast.Set, ast.SetComp, ast.Call, ast.Name)
_EMPTY: Final = ast.Lambda(ast.arguments([], [], None, [], [], None, []), ast.Constant(None))


def visible(
    node: FunctionNode, meanings: Meanings, arguments: frozenset[str] = frozenset()
) -> Iterator[tuple[int, str]]:
    """The lines in which the order of a set shows; `arguments` are the parameters that are sets."""
    reading = _Reading(meanings, node, arguments)
    if not reading.may_hold_sets():
        return
    above: dict[int, ast.AST] = {}
    for parent in ast.walk(node):
        for child in ast.iter_child_nodes(parent):
            above[id(child)] = parent
    for part in ast.walk(node):
        if isinstance(part, ast.expr) and reading.is_set(part) and reading.shows(part, above):
            yield part.lineno, _WHAT


def attributes(meanings: Meanings) -> Iterator[str]:
    """Attributes of a method's own object that hold sets: those that it sets, and those of its class."""
    for name, given in meanings.usage.kept:
        if any(isinstance(part, _SETTISH) for part in ast.walk(given)) and _Reading(meanings, _EMPTY).is_set(given):
            yield name
    owner = meanings.around.globals.get(meanings.around.call.__qualname__.rpartition(".")[0])
    if isinstance(owner, type):
        for base in owner.__mro__:
            yield from (name for name, part in vars(base).items() if _is_random(part))


class _Reading:
    """A function that may hold sets."""

    def __init__(self, meanings: Meanings, node: FunctionNode, arguments: frozenset[str] = frozenset()) -> None:
        self.meanings = meanings
        self._node = node
        self._arguments = arguments
        self._arguments = _annotated_sets(node) | arguments
        self._arguments |= {name for name, default in _defaults(node) if self.is_set(default)}

    def may_hold_sets(self) -> bool:
        """Whether anything in it points to a set; most functions have none."""
        if self._arguments or self.meanings.sets or _has_sets(self._node):
            return True
        roots = dict.fromkeys(use.root for use in self.meanings.usage.uses if use.root is not None)
        return not roots.keys().isdisjoint(("set", "frozenset")) or any(map(self._points_to_sets, roots))

    def _points_to_sets(self, name: str) -> bool:
        value = self.meanings.named(name)
        if value is MISSING or isinstance(value, (str, int, float)):
            return False
        if isinstance(value, (set, frozenset)) or (isinstance(value, FunctionType) and returns_set(value)):
            return True
        if _holds_random(value):
            return True
        kind = value if isinstance(value, type) else type(value)
        if origins.of_object(kind).kind != "user":
            return not isinstance(value, (type, FunctionType)) and hasattr(value, "__path__")
        held = [*getattr(value, "__dict__", {}).values()]
        return any(isinstance(part, (set, frozenset)) for part in held)

    def is_set(self, node: ast.expr, depth: int = _DEPTH) -> bool:
        """Whether an expression is a set whose order is different in every process."""
        if not depth or isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)):
            return False
        if any(self.is_set(part, depth - 1) for part in self._same(node)):
            return True
        match node:
            case ast.Set(elts=parts):
                return not all(map(_is_number, parts))
            case ast.SetComp(elt=part):
                return not _is_number(part)
            case ast.BinOp(op=op, left=left, right=right) if isinstance(op, _ALGEBRA):
                return _is_view(left, right)
            case ast.Call():
                return self._makes_set(node, depth - 1)
        return self._is_held(node)

    def _is_held(self, node: ast.expr) -> bool:
        """Whether it is a set that was made elsewhere."""
        match node:
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner in OWNERS:
                return name in self.meanings.sets
            case ast.Name() | ast.Attribute():
                return _is_random(self.meanings.value(node))
            case ast.Subscript(value=held):
                return _holds_random(self.meanings.value(held))
        return False

    def _same(self, node: ast.expr) -> list[ast.expr]:
        """Expressions of which this one is a set if one of them is."""
        match node:
            case ast.BinOp(op=op, left=left, right=right) if isinstance(op, _ALGEBRA):
                return [left, right]
            case ast.BoolOp(values=parts):
                return parts
            case ast.IfExp(body=body, orelse=orelse):
                return [body, orelse]
            case ast.NamedExpr(value=value):
                return [value]
            case ast.Name(id=name) if name in self._arguments:
                return [ast.SetComp(elt=ast.Name(name, ast.Load()), generators=[])]
            case ast.Name(id=name):
                return self.meanings.usage.assigned.get(name, [])
        return []

    def _makes_set(self, node: ast.Call, depth: int) -> bool:
        if isinstance(node.func, ast.Attribute) and node.func.attr in _SET_METHODS:
            return self.is_set(node.func.value, depth)
        made = self.meanings.value(node.func)
        if made in (set, frozenset) and isinstance(made, type):
            given = node.args[0] if node.args else None
            return given is None or not (_is_number(given) or self._holds_numbers(given))
        return isinstance(made, FunctionType) and returns_set(made)

    def _holds_numbers(self, node: ast.expr) -> bool:
        if isinstance(node, (ast.List, ast.Tuple)):
            return bool(node.elts) and all(map(_is_number, node.elts))
        return isinstance(node, (ast.ListComp, ast.GeneratorExp)) and _is_number(node.elt)

    def shows(self, node: ast.expr, above: dict[int, ast.AST]) -> bool:
        """Whether the order of a set shows in what stands around it."""
        parent = above.get(id(node))
        if isinstance(node, ast.Call) and not node.args and self.meanings.value(node.func) in (set, frozenset):
            return False  # it is empty
        if isinstance(parent, ast.keyword):
            parent = above.get(id(parent))
        match parent:
            case ast.Call():
                return self._shows_in_call(node, parent)
            case ast.Attribute(attr=attr):
                return attr in ("pop", "__iter__") and isinstance(above.get(id(parent)), ast.Call)
            case ast.comprehension() if parent.iter is node:
                return self._shows_in_comprehension(parent, above)
            case ast.For() if parent.iter is node:
                return not _commutes([*parent.body, *parent.orelse])
            case ast.Starred():
                return not self._is_blind(above.get(id(parent)))
            case ast.Assign(targets=targets):
                return any(isinstance(target, (ast.Tuple, ast.List)) for target in targets)
        return _is_shown(node, parent)

    def _shows_in_call(self, node: ast.expr, call: ast.Call) -> bool:
        made = self.meanings.value(call.func)
        if isinstance(made, FunctionType) and origins.of_globals(made.__globals__).kind == "user":
            return shows_argument(made, call, node)
        if node is call.func or any(keyword.value is node for keyword in call.keywords):
            return False
        return not self._is_blind(call) and self._takes_order(call)

    def _takes_order(self, call: ast.Call) -> bool:
        """Whether a call may keep the order of what it is given; a function of the user's is looked at by itself."""
        made = self.meanings.value(call.func)
        if isinstance(call.func, ast.Attribute) and made is MISSING:
            return True
        return made is not MISSING and origins.of_object(made).kind != "user"

    def _is_blind(self, parent: ast.AST | None) -> bool:
        """Whether something gives the same for every order."""
        if isinstance(parent, (ast.Set, ast.SetComp)):
            return True
        if not isinstance(parent, ast.Call):
            return False
        func = parent.func
        if isinstance(func, ast.Attribute) and func.attr in _BLIND_METHODS:
            return True
        name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
        if name in _KEYED and not all(map(_tells_apart, parent.keywords)):
            return False
        return name in _BLIND

    def _shows_in_comprehension(self, generator: ast.comprehension, above: dict[int, ast.AST]) -> bool:
        made = above[id(generator)]
        around = above.get(id(made))
        if isinstance(made, ast.SetComp):
            return False
        if isinstance(made, ast.DictComp) and isinstance(around, (ast.Return, ast.Lambda)):
            return False  # a row: its columns go by name
        if isinstance(around, ast.Call) and getattr(around.func, "id", "") == "sum":
            return not (isinstance(made, (ast.GeneratorExp, ast.ListComp)) and _is_number(made.elt))
        return not self._is_blind(around)


@once
def _has_sets(node: FunctionNode) -> bool:
    """Whether sets, or views that may become some, are written in a function."""
    return any(
        isinstance(part, (ast.Set, ast.SetComp)) or (isinstance(part, ast.Attribute) and part.attr in _VIEWS)
        for part in ast.walk(node)
    )


def shows_argument(made: FunctionType, call: ast.Call, given: ast.expr) -> bool:
    """Whether a function of the user's shows the order of a set that it is given."""
    around = Surroundings(made)
    node = spelled(around)
    name = None if node is None else _parameter(node, call, given)
    if node is None or name is None:
        return False
    place = (id(made.__code__), id(node), name)
    if place not in _showing:
        _showing[place] = (made, node, False)  # while it is looked at, for one that calls itself
        found = visible(node, Meanings(around, usage_of(node)), frozenset({name}))
        _showing[place] = (made, node, next(found, None) is not None)
    return _showing[place][-1]


_showing: dict[tuple[int, int, str], tuple[FunctionType, FunctionNode, bool]] = {}


def _parameter(node: FunctionNode, call: ast.Call, given: ast.expr) -> str | None:
    """The parameter that an argument is passed to; None if that cannot be told."""
    named = next((keyword.arg for keyword in call.keywords if keyword.value is given), None)
    places = [*node.args.posonlyargs, *node.args.args]
    number = next((number for number, part in enumerate(call.args) if part is given), None)
    if named is not None or number is None or number >= len(places):
        return named
    return places[number].arg


def returns_set(call: FunctionType) -> bool:
    """Whether a function of the user's returns a set."""
    if origins.of_globals(call.__globals__).kind != "user":
        return False
    around = Surroundings(call)
    node = spelled(around)
    if node is None:
        return False
    place = (id(call.__code__), id(node))
    if place not in _returning:
        _returning[place] = (call, node, False)  # while it is looked at, for one that calls itself
        _returning[place] = (call, node, _returns(around, node))
    return _returning[place][-1]


_returning: dict[tuple[int, int], tuple[FunctionType, FunctionNode, bool]] = {}


def _returns(around: Surroundings, node: FunctionNode) -> bool:
    reading = _Reading(Meanings(around, usage_of(node)), node)
    if isinstance(node, ast.Lambda):
        return reading.is_set(node.body)
    if _is_set_type(node.returns):
        return True
    results = [part.value for part in ast.walk(node) if isinstance(part, ast.Return) and part.value is not None]
    return any(map(reading.is_set, results))


def _is_shown(node: ast.expr, parent: ast.AST | None) -> bool:
    """Whether it is made a text, or what a generator gives."""
    if isinstance(parent, ast.BinOp):
        return isinstance(parent.op, ast.Mod) and parent.right is node
    return isinstance(parent, (ast.FormattedValue, ast.YieldFrom))


def _is_random(value: Any) -> bool:
    kinds = (int, float, bool)
    return isinstance(value, (set, frozenset)) and not all(type(part) in kinds for part in value)


def _holds_random(value: Any) -> bool:
    held = value.values() if type(value) is dict else value if type(value) in (list, tuple) else ()
    return any(map(_is_random, held))


def _is_number(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=value):
            return isinstance(value, (int, float))
        case ast.UnaryOp(operand=operand):
            return _is_number(operand) or isinstance(node.op, ast.Not)
        case ast.BinOp(left=left, right=right):
            return _is_number(left) and _is_number(right)
        case ast.Compare():
            return True
        case ast.Call(func=ast.Name(id=name)):
            return name in _NUMBERS
    return False


def _is_view(*nodes: ast.expr) -> bool:
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _VIEWS
        for node in nodes
    )


def _tells_apart(keyword: ast.keyword) -> bool:
    """Whether a key leaves no ties: it is the element itself, or has it as a part."""
    key = keyword.value
    if keyword.arg != "key" or not isinstance(key, ast.Lambda):
        return keyword.arg != "key"
    name = key.args.args[0].arg if key.args.args else ""
    parts = key.body.elts if isinstance(key.body, ast.Tuple) else [key.body]
    return any(isinstance(part, ast.Name) and part.id == name for part in parts)


def _commutes(body: list[ast.stmt]) -> bool:
    """Whether a loop does the same in every order: it counts, looks for something, or fills another set."""
    return all(map(_is_unordered, body))


def _is_unordered(statement: ast.stmt) -> bool:
    match statement:
        case ast.If():
            return _commutes(statement.body) and _commutes(statement.orelse)
        case ast.Pass() | ast.Continue() | ast.Raise():
            return True
        case ast.Return(value=value):
            return value is None or isinstance(value, ast.Constant)
        case ast.AugAssign(value=value):
            return _is_number(value)
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=attr))):
            return attr in ("add", "discard", "remove", "info", "debug", "warning")
    return False


def _annotated_sets(node: FunctionNode) -> frozenset[str]:
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return frozenset(argument.arg for argument in every if _is_set_type(argument.annotation))


def _defaults(node: FunctionNode) -> list[tuple[str, ast.expr]]:
    places = [*node.args.posonlyargs, *node.args.args]
    last = list(zip(reversed(places), reversed(node.args.defaults), strict=False))
    named = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    return [(argument.arg, default) for argument, default in [*last, *named] if default is not None]


def _is_set_type(node: ast.expr | None) -> bool:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value.strip().lower().startswith(("set[", "frozenset[", "typing.set[")) or node.value == "set"
    if isinstance(node, ast.Subscript):
        return _is_set_type(node.value) and not _is_number_type(node.slice)
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name in ("set", "frozenset", "Set", "FrozenSet", "AbstractSet", "MutableSet")


def _is_number_type(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("int", "float", "bool")
