"""How an expression reaches what it changes: names, with the attributes and the subscripts that are taken of them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

#: What gives a part of a container without copying it.
PARTS: Final = frozenset({"get", "setdefault"})
#: Texts and tuples that tell apart what they are made of.
_KEYS: Final = frozenset({"str", "repr", "tuple", "frozenset", "int"})
#: What is new each time it is evaluated.
_FRESH: Final = (
    ast.List, ast.Dict, ast.Set, ast.Tuple, ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp, ast.BinOp,
    ast.JoinedStr, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Lambda,
)  # fmt: skip


def changes(part: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None, ast.expr | None]]:
    """What a statement changes of something: of what, under which key, and to what; None for what it takes away."""
    given = part.value if isinstance(part, (ast.Assign, ast.AnnAssign)) else None
    targets: list[ast.expr] = []
    if isinstance(part, ast.Assign) or (isinstance(part, ast.AnnAssign) and given is not None):
        targets = part.targets if isinstance(part, ast.Assign) else [part.target]
    elif isinstance(part, ast.Delete):
        targets = part.targets
    for target in targets:
        for one in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
            if isinstance(one, ast.Subscript):
                yield one.value, one.slice, given
            elif isinstance(one, ast.Attribute):
                yield one, None, given


def chain(node: ast.expr) -> tuple[ast.expr, int]:
    """What an expression is a part of, down to its first subscript, and how many attributes that has."""
    place, names = node, 0
    while True:
        if isinstance(node, ast.Subscript):
            node = place = node.value
            names = 0
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in PARTS:
            node = place = node.func.value
            names = 0
        elif isinstance(node, ast.Attribute):
            node, names = node.value, names + 1
        else:
            return place, names


def written(part: ast.AST) -> tuple[str, str | None]:
    """A name with the attributes and constant keys that are taken of it, as it is written, and the name."""
    node: Any = part
    if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
        return written(part.func.value)
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    if not isinstance(node, ast.Name) or isinstance(part, ast.Call):
        return "", None
    return ast.unparse(part), node.id


def keys_in(part: ast.AST) -> list[ast.AST]:
    """What else stands in a chain: the keys of its subscripts, and the arguments of its call."""
    found: list[ast.AST] = []
    node: Any = part
    if isinstance(part, ast.Call):
        found += [*part.args, *(keyword.value for keyword in part.keywords)]
        node = part.func.value if isinstance(part.func, ast.Attribute) else part.func
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        found += [node.slice] if isinstance(node, ast.Subscript) else []
        node = node.value
    return found


def told_apart(key: ast.expr | None) -> set[str]:
    """What a key tells apart, as it is written."""
    match key:
        case ast.Name() | ast.Attribute() | ast.Subscript():
            return {ast.unparse(key)}
        case ast.Tuple(elts=parts):
            return {name for part in parts for name in told_apart(part)}
        case ast.JoinedStr(values=parts):
            plain = [part.value for part in parts if isinstance(part, ast.FormattedValue) and part.format_spec is None]
            return {name for part in plain for name in told_apart(part)}
        case ast.Call(func=ast.Name(id=name), args=[part]) if name in _KEYS:
            return told_apart(part)
        case ast.Call(func=ast.Attribute(value=part, attr="items")):
            return told_apart(part)
        case _:
            return set()


def is_part(name: str, of: str) -> bool:
    """Whether what is written so is something, or a part of it."""
    return name == of or name.startswith((f"{of}.", f"{of}["))


def looks_up(part: ast.AST, above: dict[int, ast.AST]) -> bool:
    """Whether a container is only asked there for what it has under a key, or changed as a whole."""
    parent = above.get(id(part))
    match parent:
        case ast.Subscript():
            return parent.value is part
        case ast.Attribute(attr="get" | "setdefault" | "clear" | "pop" | "popitem"):
            return True
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[right]):
            return right is part and isinstance(above.get(id(parent)), (ast.If, ast.IfExp, ast.UnaryOp))
        case ast.Call(func=ast.Name(id="len" | "iter")):
            return True
        case ast.Global() | ast.Nonlocal() | ast.Delete():
            return True
        case _:
            return False


def measures(test: ast.expr, text: str) -> bool:
    """Whether a condition asks how much something holds."""
    return any(
        isinstance(part, ast.Call)
        and isinstance(part.func, ast.Name)
        and part.func.id == "len"
        and [ast.unparse(argument) for argument in part.args] == [text]
        for part in ast.walk(test)
    )


def expressions(test: ast.expr) -> Iterator[ast.expr]:
    """The names and attributes in a condition."""
    return (part for part in ast.walk(test) if isinstance(part, (ast.Name, ast.Attribute)))


def upwards(part: ast.AST, above: dict[int, ast.AST]) -> Iterator[ast.AST]:
    """All that a piece of syntax stands in, from the inside."""
    while id(part) in above:
        part = above[id(part)]
        yield part


def is_fresh(node: ast.expr) -> bool:
    """Whether an expression is new each time it is evaluated."""
    return isinstance(node, _FRESH) or (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice))


def is_of_class(node: ast.expr) -> bool:
    """Whether something is an attribute of a class, by way of a method of it."""
    text = ast.unparse(node)
    return text.startswith(("self.__class__.", "type(self).", "cls."))
