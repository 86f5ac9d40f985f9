"""Where a function changes what outlives its call: a global, a default, an attribute of an object outside of it.

What is only filled once is the same everywhere: a table that is made when it is first needed, and a value that is kept
under all that it was calculated from. Everything else is memory between calls, which belongs to the process that
happens to run the function.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import MutableMapping, MutableSequence, MutableSet
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any, Final

from everstate.fingerprints.code.literals import spelled
from everstate.fingerprints.code.slots import MISSING, Surroundings
from everstate.fingerprints.code.sources import once
from everstate.fingerprints.outside import meanings as known
from everstate.fingerprints.outside import origins
from everstate.fingerprints.outside.chains import (
    PARTS,
    chain,
    changes,
    expressions,
    is_fresh,
    is_of_class,
    is_part,
    keys_in,
    looks_up,
    measures,
    told_apart,
    upwards,
    written,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everstate.fingerprints.code.sources import FunctionNode
    from everstate.fingerprints.outside.meanings import Meanings

_CONTAINERS: Final = (MutableMapping, MutableSequence, MutableSet, bytearray, deque)
#: What changes a container, by whether doing it again with the same arguments changes nothing more.
_AGAIN: Final = frozenset({"add", "clear", "discard", "sort", "update"})
_GROWING: Final = frozenset({"append", "appendleft", "extend", "extendleft", "insert"})
_TAKING: Final = frozenset({"pop", "popitem", "popleft", "remove", "clear"})
_CHANGING: Final = _AGAIN | _GROWING | _TAKING | {"reverse", "rotate", "setdefault", "subtract"}
_COMPUTED: Final = (ast.Call, ast.BinOp, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.JoinedStr)
_DEPTH: Final = 4
#: Functions of Python that change the list they are given.
_CHANGERS: Final = {
    module: frozenset({"heappush", "heappop", "heapify", "heapreplace", "heappushpop", "insort", "insort_left"})
    | {"insort_right", "shuffle"}
    for module in ("_heapq", "heapq", "_bisect", "bisect", "random")
}


@dataclass(frozen=True, eq=False)
class Remembering:
    """A function that may change what outlives its call.

    Attributes:
        node: Its syntax.
        meanings: Its names.
        rebound: Names outside of it that it rebinds.
        owners: Objects that its first parameter may be, if these outlive its call.
    """

    node: FunctionNode
    meanings: Meanings
    rebound: frozenset[str]
    owners: tuple[object, ...] = ()

    def found(self) -> Iterator[tuple[int, str]]:
        """The lines in which it does, and the name of what is changed."""
        above = _parents(self.node)
        for part in _acting(self.node):
            if isinstance(part, ast.AugAssign) and not isinstance(part.target, ast.Name):
                store = self._store(part.target)
                if store is not None:
                    yield part.lineno, ast.unparse(store)
            yield from self._rebound_to_inputs(part)
            for held, key, given in changes(part):
                store = self._store(held)
                if store is not None and not self._is_same_everywhere(store, held, key, given, above):
                    yield part.lineno, ast.unparse(store)
            if isinstance(part, ast.Call):
                yield from self._given_away(part)
            if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _CHANGING:
                store = self._store(part.func.value)
                if store is not None and self._is_container(part.func.value) and self._grows(store, part, above):
                    yield part.lineno, ast.unparse(store)

    def _given_away(self, call: ast.Call) -> Iterator[tuple[int, str]]:
        """Where it is given to a function that changes what it is given."""
        called = self.meanings.called(call)
        if isinstance(called, FunctionType | BuiltinFunctionType):
            for place, given in _arguments(called, call):
                store = self._store(given) if place in _changed_by(called) else None
                if store is not None and self._is_container(given):
                    yield call.lineno, ast.unparse(store)

    def _rebound_to_inputs(self, part: ast.AST) -> Iterator[tuple[int, str]]:
        """Where a name outside the function is given what the call brings."""
        if isinstance(part, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and part.value is not None:
            targets = part.targets if isinstance(part, ast.Assign) else [part.target]
            for target in targets:
                if isinstance(target, ast.Name) and target.id in self.rebound and self._inputs(part.value, frozenset()):
                    yield part.lineno, target.id

    def _store(self, node: ast.expr, depth: int = _DEPTH) -> ast.expr | None:
        """What outlives the call, of which an expression is a part, without its subscripts; None if it is fresh."""
        place, names = chain(node)
        root = place
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name):
            return place if is_of_class(place) else None
        if root.id in self._defaults() or (self._owner() == root.id and (self.owners or is_of_class(place))):
            return place
        if root.id in self.meanings.usage.bound:
            given = self.meanings.usage.assigned.get(root.id, [])
            found = [self._store(part, depth - 1) for part in given if depth and not is_fresh(part)]
            return next((part for part in found if part is not None), None)
        thing = self.meanings.named(root.id)
        # A module of a package and what it has are looked at elsewhere; a plain value cannot be changed.
        return None if thing is MISSING or (names == 0 and isinstance(thing, (str, int, float, tuple))) else place

    def _owner(self) -> str | None:
        first = [*self.node.args.posonlyargs, *self.node.args.args][:1]
        return first[0].arg if first and first[0].arg in ("self", "cls") else None

    def _defaults(self) -> set[str]:
        """Parameters whose default is one container for all calls."""
        arguments = self.node.args
        places = [*arguments.posonlyargs, *arguments.args]
        given = [
            *zip(reversed(places), reversed(arguments.defaults), strict=False),
            *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
        ]
        makes = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
        return {name.arg for name, default in given if isinstance(default, makes) or self._is_made(default)}

    def _is_made(self, default: ast.expr | None) -> bool:
        made = self.meanings.called(default)
        return isinstance(made, type) and issubclass(made, _CONTAINERS)

    def _is_container(self, node: ast.expr) -> bool:
        """Whether what a method is called on is something that its name changes."""
        things = self._things(node)
        return any(isinstance(thing, _CONTAINERS) for thing in things)

    def _things(self, node: ast.expr, depth: int = _DEPTH) -> list[Any]:
        """What an expression stands for; of a part of a container, what it is a part of."""
        if isinstance(node, ast.Subscript):
            return self._things(node.value, depth)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in PARTS:
            return self._things(node.func.value, depth)
        if isinstance(node, ast.Attribute):
            held = (known.attribute(thing, node.attr) for thing in self._things(node.value, depth))
            return [thing for thing in held if thing is not MISSING]
        if not isinstance(node, ast.Name):
            return []
        if node.id in self._defaults():
            return [[]]
        if node.id == self._owner():
            return list(self.owners)
        if node.id in self.meanings.usage.bound:
            given = self.meanings.usage.assigned.get(node.id, [])
            return [thing for part in given if depth for thing in self._things(part, depth - 1)]
        return [self.meanings.named(node.id)]

    def _is_same_everywhere(
        self, store: ast.expr, held: ast.expr, key: ast.expr | None, given: ast.expr | None, above: dict[int, ast.AST]
    ) -> bool:
        """Whether what is put somewhere follows from where it is put, and is only looked up there."""
        if given is None:
            return self._is_eviction(held, store, above)
        if self._reads_itself(given, store):
            return False
        keys = self._told_apart(key)
        inputs = self._inputs(given, frozenset(keys))
        if not inputs:
            return key is None or not self._inputs(key, frozenset())
        covered = all(any(is_part(name, of) for of in keys) for name in inputs)
        computed = any(isinstance(part, _COMPUTED) for source in self._sources(given) for part in ast.walk(source))
        return covered and computed and self._is_looked_up(store, above)

    def _told_apart(self, key: ast.expr | None) -> set[str]:
        found = told_apart(key)
        given = self.meanings.usage.assigned.get(key.id, []) if isinstance(key, ast.Name) else []
        return found | told_apart(given[0]) if len(given) == 1 else found

    def _sources(self, node: ast.expr) -> list[ast.expr]:
        return self.meanings.sources(node)

    def _reads_itself(self, given: ast.expr, store: ast.expr) -> bool:
        """Whether a value depends on what is there already, other than being just that."""
        text = ast.unparse(store)
        asked = f"getattr({ast.unparse(store.value)}, {store.attr!r}" if isinstance(store, ast.Attribute) else "\n"
        for source in self._sources(given):
            if asked in ast.unparse(source):
                return True
            read = source
            if isinstance(read, ast.Call) and isinstance(read.func, ast.Attribute) and read.func.attr in PARTS:
                read = read.func.value
            if ast.unparse(chain(read)[0]) == text:
                continue
            if any(
                isinstance(part, (ast.Name, ast.Attribute)) and ast.unparse(part) == text for part in ast.walk(source)
            ):
                return True
        return False

    def _inputs(self, node: ast.expr, keys: frozenset[str], depth: int = _DEPTH) -> set[str]:
        """What an expression takes of the call, as it is written: parameters and parts of them."""
        inside = {
            name.id
            for part in ast.walk(node)
            if isinstance(part, ast.comprehension)
            for name in ast.walk(part.target)
            if isinstance(name, ast.Name)
        }
        inside |= {
            argument.arg for part in ast.walk(node) if isinstance(part, ast.Lambda) for argument in part.args.args
        }
        found: set[str] = set()
        waiting: list[ast.AST] = [node]
        while waiting:
            part = waiting.pop()
            chain, root = written(part)
            if root is None:
                waiting.extend(ast.iter_child_nodes(part))
                continue
            waiting.extend(keys_in(part))
            if root in inside or root == self._owner() or root not in self.meanings.usage.bound:
                continue
            given = self.meanings.usage.assigned.get(root)
            if given and depth and not any(is_part(chain, key) for key in keys):
                for source in given:
                    found |= self._inputs(source, keys, depth - 1)
            else:
                found.add(chain)
        return found

    def _is_looked_up(self, store: ast.expr, above: dict[int, ast.AST]) -> bool:
        """Whether all that a function does with a container is to look for keys in it."""
        text = ast.unparse(store)
        return all(
            looks_up(part, above)
            for part in ast.walk(self.node)
            if isinstance(part, (ast.Name, ast.Attribute)) and ast.unparse(part) == text
        )

    def _is_eviction(self, held: ast.AST, store: ast.expr, above: dict[int, ast.AST]) -> bool:
        """Whether something is only taken out because there is too much."""
        return any(
            isinstance(part, ast.If) and measures(part.test, ast.unparse(store)) for part in upwards(held, above)
        )

    def _grows(self, store: ast.expr, call: ast.Call, above: dict[int, ast.AST]) -> bool:
        """Whether a method leaves more behind than what is the same everywhere."""
        assert isinstance(call.func, ast.Attribute)
        name, given = call.func.attr, [*call.args, *(keyword.value for keyword in call.keywords)]
        if name == "setdefault" and call.args:
            value = call.args[1] if len(call.args) > 1 else ast.Constant(None)
            empty = isinstance(value, (ast.List, ast.Dict, ast.Set, ast.Constant)) and not self._inputs(
                value, frozenset()
            )
            inputs = self._inputs(call.args[0], frozenset())
            if empty and inputs:
                return not isinstance(above.get(id(call)), ast.Attribute)  # the method that follows is looked at
            return not self._is_same_everywhere(store, call.func.value, call.args[0], value, above)
        if name in _TAKING and isinstance(above.get(id(call)), ast.Expr) and self._is_eviction(call, store, above):
            return False
        if any(self._inputs(part, frozenset()) for part in given):
            return True
        if name in _AGAIN:
            return False
        text = ast.unparse(store)
        return name not in _GROWING or not any(
            isinstance(part, ast.If) and text in map(ast.unparse, expressions(part.test))
            for part in upwards(call, above)
        )


@once
def _acting(node: FunctionNode) -> list[ast.stmt | ast.expr]:
    """The parts of a function that may change something."""
    kinds = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr, ast.Delete, ast.Call)
    return [part for part in ast.walk(node) if isinstance(part, kinds)]


@once
def _parents(node: FunctionNode) -> dict[int, ast.AST]:
    return {id(child): parent for parent in ast.walk(node) for child in ast.iter_child_nodes(parent)}


def _changed_by(called: FunctionType | BuiltinFunctionType) -> frozenset[str]:
    """The parameters of a function that it changes; their places, for functions of the heap and of sorted lists."""
    if called.__module__ in _CHANGERS:
        return frozenset({"0"}) if called.__name__ in _CHANGERS[called.__module__] else frozenset()
    if not isinstance(called, FunctionType) or origins.of_globals(called.__globals__).kind != "user":
        return frozenset()
    node = spelled(Surroundings(called))
    return frozenset() if node is None else _changed_parameters(node)


@once
def _changed_parameters(node: FunctionNode) -> frozenset[str]:
    names = {argument.arg for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]}
    found: set[ast.expr] = set()
    for part in ast.walk(node):
        found |= {held for held, _, _ in changes(part)}
        if isinstance(part, ast.AugAssign) and not isinstance(part.target, ast.Name):
            found.add(part.target)
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _CHANGING:
            found.add(part.func.value)
    roots = (written(chain(held)[0])[1] for held in found)
    return frozenset(root for root in roots if root in names)


def _arguments(called: FunctionType | BuiltinFunctionType, call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """What a call gives to which parameter; to which place, where the function is not the user's."""
    yield from ((keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg is not None)
    code = getattr(called, "__code__", None)
    names = [str(place) for place in range(len(call.args))]
    if code is not None and called.__module__ not in _CHANGERS:
        names = list(code.co_varnames[: code.co_argcount])
    yield from zip(names, call.args, strict=False)
