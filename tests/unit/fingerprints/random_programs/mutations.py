"""Random edits of a program: each changes one place, whatever that does to its meaning."""

from __future__ import annotations

import ast
import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

_BINARY = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.Div)
_COMPARED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq, ast.Is, ast.In, ast.NotIn)
_ADDED = (
    "x = x + 1", "x, x = x, -x", "return 1", "raise ValueError(1)", "del x", "x = [x]", "global x", "x: int = 5",
    "import math as x", "def x(*a): return 3", "x = yield", "pass",
)  # fmt: skip
_MEMBERS = (
    "a = 17", "__slots__ = ()", "__hash__ = None", "__doc__ = 'said'", "def __bool__(self): return False",
    "def __len__(self): return 2", "def __str__(self): return 'me'", "__match_args__ = ('b',)", "k: int = 9",
    "def __eq__(self, other): return True", "__repr__ = lambda self: 'it'", "def __getattr__(self, name): return 4",
    "__name__ = 'n'", "unit = 'q'", "__str__ = dict.__repr__", "__module__ = 'm'", "__qualname__ = 'Q'",
    "def __iter__(self): return iter('xy')", "__call__ = staticmethod(lambda *a: 8)", "__class_getitem__ = 3",
    "def __init_subclass__(cls, **k): cls.a = 5", "__eq__ = object.__eq__", "_ignore_ = ['A']", "b = property(repr)",
)  # fmt: skip
_OPTIONS = ("frozen", "order", "eq", "repr", "slots", "kw_only", "unsafe_hash", "init", "match_args", "total", "flag")
_AFTER_DEFINITIONS = (
    "N.a = 11", "N.__name__ = 'n'", "N.__doc__ = 'd'", "N = lambda *a: 5", "del N.a", "N.__defaults__ = (6, 6)",
    "N.__qualname__ = 'q'", "N.__annotations__ = {}", "N.__kwdefaults__ = {'c': 6}", "N.__call__ = len",
)  # fmt: skip
_AFTER_TABLES = ("N.append(3)", "N.update(q=4)", "N.pop()", "N = [N]", "N.a = 1", "N = list(N)", "N.v = N", "del N[0]")
_DECORATORS = ("functools.cache", "staticmethod", "classmethod", "property", "dataclasses.dataclass", "str", "callable")


@dataclass(frozen=True)
class Place:
    """Something in a program that an edit can change.

    Attributes:
        kind: What the edit is called.
        edit: Makes it.
    """

    kind: str
    edit: Callable[[], None]


def mutated(random: Random, texts: dict[str, str]) -> tuple[str, dict[str, str]] | None:
    """A program after an edit, and the kind of it; None if it is the same text."""
    name = random.choice([name for name, text in texts.items() if text.strip()])
    tree = ast.parse(texts[name])
    by_kind: dict[str, list[Place]] = {}
    for place in _places(tree, random):
        by_kind.setdefault(place.kind, []).append(place)
    if not by_kind:
        return None
    place = random.choice(by_kind[random.choice(sorted(by_kind))])
    before = ast.unparse(tree)
    place.edit()
    try:
        after = ast.unparse(ast.fix_missing_locations(tree))
        compile(after, name, "exec")
    except (SyntaxError, ValueError, TypeError, AttributeError):
        return None
    return None if before == after else (place.kind, {**texts, name: after})


def _places(tree: ast.Module, random: Random) -> Iterator[Place]:
    names = sorted({n.id for n in ast.walk(tree) if isinstance(n, ast.Name)})
    attributes = sorted({n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)})
    for node in ast.walk(tree):
        yield from _leaves(node, random, names, attributes)
        yield from _lists(node, random)
        yield from _definitions(node, random)


def _put(node: Any, name: str, value: Any) -> Callable[[], None]:
    return lambda: setattr(node, name, value)


def _leaves(node: ast.AST, random: Random, names: list[str], attributes: list[str]) -> Iterator[Place]:
    match node:
        case ast.Constant(value=value):
            yield Place("constant", _put(node, "value", _other(value, random)))
        case ast.BinOp() | ast.AugAssign():
            yield Place("operator", _put(node, "op", random.choice(_BINARY)()))
            if isinstance(node, ast.BinOp):
                yield Place("operands", lambda: node.__dict__.update(left=node.right, right=node.left))
        case ast.Compare():
            yield Place("comparison", _put(node, "ops", [random.choice(_COMPARED)(), *node.ops[1:]]))
        case ast.BoolOp():
            yield Place("logic", _put(node, "op", ast.And() if isinstance(node.op, ast.Or) else ast.Or()))
        case ast.Name(id=name):
            yield Place("name", _put(node, "id", random.choice(names)))
            if isinstance(node.ctx, ast.Load):
                yield Place("name of Python", _put(node, "id", _standard(name, random)))
        case ast.Attribute():
            others = [*attributes, node.attr + "_", "__" + node.attr]
            yield Place("attribute", _put(node, "attr", random.choice(others)))
        case _:
            yield from _rare_leaves(node, random)


def _rare_leaves(node: ast.AST, random: Random) -> Iterator[Place]:
    match node:
        case ast.If() | ast.IfExp() | ast.While():
            yield Place("condition", _put(node, "test", ast.UnaryOp(ast.Not(), node.test)))
            if isinstance(node, ast.IfExp):
                yield Place("branches", lambda: node.__dict__.update(body=node.orelse, orelse=node.body))
        case ast.FormattedValue():
            yield Place("conversion", _put(node, "conversion", random.choice((-1, 114, 115, 97))))
        case ast.keyword() if node.arg is not None:
            yield Place("keyword's name", _put(node, "arg", random.choice(("a", "b", "c", "key", *_OPTIONS))))
        case ast.comprehension():
            yield Place("filter of a comprehension", _put(node, "ifs", [] if node.ifs else [ast.Constant(0)]))
        case ast.ExceptHandler():
            caught = random.choice(("ValueError", "KeyError", "Exception"))
            yield Place("exception", _put(node, "type", ast.Name(caught)))


def _other(value: Any, random: Random) -> Any:
    match value:
        case bool():
            return random.choice((not value, int(value), None))
        case int():
            return random.choice((value + 1, value - 1, value + 10, float(value), str(value), 0, True))
        case float():
            return random.choice((value + 0.5, int(value) if value == value // 1 else 0, str(value), -value))
        case complex():
            return value + 1
        case str():
            return random.choice((value + "a", value[1:], value.upper(), value[::-1], value.encode(), " " + value))
        case bytes():
            return random.choice((value + b"a", value.decode()))
        case None:
            return random.choice((0, False, ""))
    return 1


def _standard(name: str, random: Random) -> str:
    families = (
        ("list", "tuple", "set", "dict", "str", "sorted"),
        ("int", "float", "bool", "str", "repr", "abs"),
        ("min", "max", "sum", "len", "any", "all"),
        ("ValueError", "KeyError", "Exception", "TypeError", "ZeroDivisionError"),
        ("staticmethod", "classmethod", "property"),
    )
    near = [other for family in families if name in family for other in family if other != name]
    return random.choice(near or ["str", "len", "type"])


def _swapped(held: list[Any], place: int) -> Callable[[], None]:
    def swap() -> None:
        held[place], held[place + 1] = held[place + 1], held[place]

    return swap


def _lists(node: ast.AST, random: Random) -> Iterator[Place]:
    for name, held in ast.iter_fields(node):
        if not isinstance(held, list) or not held or (name == "names" and isinstance(node, ast.Import)):
            continue
        kind = f"{type(node).__name__}.{name}"
        if name in ("body", "orelse", "finalbody", "cases", "handlers"):
            kind = {"body": "statement", "orelse": "else"}.get(name, name)
        place = random.randrange(len(held))
        yield Place(f"{kind} dropped", lambda held=held, place=place: held.pop(place))
        yield Place(f"{kind} twice", lambda held=held, place=place: held.append(copy.deepcopy(held[place])))
        if len(held) > 1:
            yield Place(f"{kind} swapped", _swapped(held, random.randrange(len(held) - 1)))
    match node:
        case ast.List() | ast.Tuple() | ast.Set():
            yield Place("type of a container", lambda: _turned(node, random))
        case ast.Dict(keys=keys, values=held) if len(keys) > 1:
            yield Place("items swapped", lambda: (keys.reverse(), held.reverse())[0])
            yield Place("item dropped", lambda: (keys.pop(), held.pop())[0])
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
            other = random.choice((ast.ListComp, ast.SetComp, ast.GeneratorExp))
            yield Place("kind of a comprehension", lambda: setattr(node, "__class__", other))


def _turned(node: ast.expr, random: Random) -> None:
    node.__class__ = random.choice((ast.List, ast.Tuple, ast.Set))  # type: ignore[assignment]
    node.__dict__.setdefault("ctx", ast.Load())


def _definitions(node: ast.AST, random: Random) -> Iterator[Place]:
    match node:
        case ast.FunctionDef(args=arguments):
            more = ast.parse(random.choice(_ADDED)).body
            yield Place("statement added", lambda: node.body.insert(random.randrange(len(node.body) + 1), more[0]))
            yield Place("decorator added", lambda: node.decorator_list.append(_expression(random.choice(_DECORATORS))))
            yield Place("function renamed", _put(node, "name", random.choice(("a", "go", "_x", node.name + "_"))))
            held = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
            if len(held) > 1:
                one, other = random.sample(held, 2)
                yield Place("parameters swapped", lambda: _exchange(one, other, "arg"))
            if arguments.args and not arguments.defaults:
                yield Place("default added", lambda: arguments.defaults.append(ast.Constant(2)))
            if arguments.args:
                yield Place("parameter by position", lambda: arguments.posonlyargs.append(arguments.args.pop(0)))
        case ast.ClassDef():
            member = ast.parse(random.choice(_MEMBERS)).body[0]
            yield Place("member added", lambda: node.body.insert(random.randrange(len(node.body) + 1), member))
            base = random.choice(("int", "dict", "list", "str", "tuple", "object", "Exception"))
            yield Place("base", lambda: _base(node, base))
            yield Place("class renamed", _put(node, "name", node.name + "_"))
        case ast.Call():
            option = ast.keyword(random.choice(_OPTIONS), ast.Constant(random.choice((True, False, 3))))
            yield Place("keyword added", lambda: node.keywords.append(option))
        case ast.Module():
            yield from _rebound(node, random)


def _rebound(node: ast.Module, random: Random) -> Iterator[Place]:
    """Something is done to a definition after it."""
    defined = [part for part in node.body if isinstance(part, (ast.FunctionDef, ast.ClassDef))]
    targets = [target for part in node.body if isinstance(part, ast.Assign) for target in part.targets]
    tables = [target.id for target in targets if isinstance(target, ast.Name)]
    for texts, names in ((_AFTER_DEFINITIONS, [part.name for part in defined]), (_AFTER_TABLES, tables)):
        if names:
            text = random.choice(texts).replace("N", random.choice(names))
            yield Place("changed after its definition", lambda text=text: node.body.append(ast.parse(text).body[0]))
    if len(defined) > 1:
        one, other = random.sample(defined, 2)
        yield Place("names exchanged", lambda: _exchange(one, other, "name"))


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _base(node: ast.ClassDef, base: str) -> None:
    node.bases = [ast.Name(base), *node.bases[1:]]


def _exchange(one: Any, other: Any, name: str) -> None:
    mine, theirs = getattr(one, name), getattr(other, name)
    setattr(one, name, theirs)
    setattr(other, name, mine)
