"""Random edits of a program that change nothing: each is one that people make, at a random place."""

from __future__ import annotations

import ast
import copy
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

#: Programs that read these see how they are written, or may.
READING = ("__name__", "__qualname__", "locals", "signature", "__annotations__", "get_type_hints", "__doc__")


def refactored(random: Random, texts: dict[str, str]) -> tuple[str, dict[str, str]] | None:
    """A program after a refactoring, and its kind; None if there was no place for it."""
    name = random.choice([name for name, text in texts.items() if "def " in text])
    if any(word in text for text in texts.values() for word in READING):
        return None
    tree = ast.parse(texts[name])
    kind = random.choice(list(KINDS))
    if not KINDS[kind](tree, random):
        return None
    after = ast.unparse(ast.fix_missing_locations(tree))
    return kind, {**texts, name: after}


def may_be_noticed(kind: str, texts: dict[str, str]) -> bool:
    """Whether a program may behave differently after a refactoring of this kind, so that it may count as a change."""
    match kind:
        case "constant to a class":
            return True  # what sets attributes by name may set those of any class, so its constants are none
        case "what does nothing":
            # What `vars` is given may be a wrapper, and those of functools keep the docstring of what they wrap there.
            return any("Said." in text for text in texts.values()) and any("vars(" in text for text in texts.values())
        case "helper extracted":
            # In a recursion every further call is one level deeper, and the limit is reached sooner.
            return any(_leads_back(ast.parse(text), "extracted") for text in texts.values())
    return False


def _leads_back(tree: ast.Module, name: str) -> bool:
    """Whether a function of a module may come to call itself."""
    functions = {part.name: part for part in tree.body if isinstance(part, ast.FunctionDef)}
    waiting, seen = [name] if name in functions else [], set[str]()
    while waiting:
        read = {part.id for part in ast.walk(functions[waiting.pop()]) if isinstance(part, ast.Name)}
        waiting += (read & functions.keys()) - seen
        seen |= read
    return name in seen


def _functions(tree: ast.Module) -> list[ast.FunctionDef]:
    """Functions of the module that are nothing but that."""
    found = [part for part in tree.body if isinstance(part, ast.FunctionDef)]
    own = (ast.Yield, ast.YieldFrom, ast.Global, ast.Nonlocal, ast.Match)
    return [part for part in found if not any(isinstance(inner, own) for inner in ast.walk(part))]


def _constants(function: ast.FunctionDef) -> list[ast.Constant]:
    """Constants of a function's statements that are evaluated as they stand."""
    aside = {id(part) for node in ast.walk(function) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    aside |= {id(node.value) for node in ast.walk(function) if isinstance(node, ast.Expr)}
    body = [part for statement in function.body for part in ast.walk(statement)]
    found = [part for part in body if isinstance(part, ast.Constant) and id(part) not in aside]
    return [part for part in found if isinstance(part.value, (int, str, float))]


def _put(node: ast.AST, other: ast.expr) -> None:
    """Make a node another one, where it is."""
    node.__class__ = other.__class__
    node.__dict__.clear()
    node.__dict__.update(other.__dict__)


def _constant_named(tree: ast.Module, random: Random, place: str) -> bool:
    functions = [function for function in _functions(tree) if _constants(function)]
    if not functions:
        return False
    function = random.choice(functions)
    constant = random.choice(_constants(function))
    value = copy.copy(constant)
    if place == "class":
        _put(constant, ast.Attribute(ast.Name("Moved", ast.Load()), "moved", ast.Load()))
        holder = ast.parse("class Moved:\n    moved = 0").body[0]
        holder.body[0].value = value  # type: ignore[attr-defined]
        tree.body.insert(0, holder)
        return True
    assignment = ast.Assign([ast.Name("moved", ast.Store())], value)
    _put(constant, ast.Name("moved", ast.Load()))
    (tree if place == "module" else function).body.insert(0, assignment)
    return True


def _returned(tree: ast.Module, random: Random) -> tuple[ast.FunctionDef, ast.Return] | None:
    """A function that ends by returning something."""
    ends = [(function, function.body[-1]) for function in _functions(tree)]
    found = [(function, last) for function, last in ends if isinstance(last, ast.Return) and last.value is not None]
    return random.choice(found) if found else None


def _variable_for_result(tree: ast.Module, random: Random) -> bool:
    found = _returned(tree, random)
    if found is None:
        return False
    function, last = found
    assert last.value is not None
    function.body[-1:] = [
        ast.Assign([ast.Name("result", ast.Store())], last.value),
        ast.Return(ast.Name("result", ast.Load())),
    ]
    return True


def _variable_for_part(tree: ast.Module, random: Random) -> bool:
    """For what is evaluated first."""
    found = _returned(tree, random)
    if found is None or not isinstance(found[1].value, (ast.BinOp, ast.Compare)):
        return False
    function, last = found
    part = copy.copy(last.value.left)  # type: ignore[union-attr]
    _put(last.value.left, ast.Name("part", ast.Load()))  # type: ignore[union-attr]
    function.body.insert(-1, ast.Assign([ast.Name("part", ast.Store())], part))
    return True


def _helper(tree: ast.Module, random: Random) -> bool:
    """The result of a function calculated by another one, which is given what it needs."""
    found = _returned(tree, random)
    if found is None:
        return False
    function, last = found
    assert last.value is not None
    parts = list(ast.walk(last.value))
    if any(isinstance(part, (ast.NamedExpr, ast.Lambda, ast.comprehension)) for part in parts):
        return False
    bound = {part.arg for part in ast.walk(function.args) if isinstance(part, ast.arg)}
    bound |= {part.id for part in ast.walk(function) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    inner = [part for part in ast.walk(function) if part is not function and isinstance(part, ast.FunctionDef)]
    bound |= {part.name for part in inner}
    names = [part.id for part in parts if isinstance(part, ast.Name) and part.id in bound]
    names = list(dict.fromkeys(names))
    helper = ast.parse(f"def extracted({', '.join(names)}):\n    return 0").body[0]
    helper.body[0].value = last.value  # type: ignore[attr-defined]
    last.value = ast.parse(f"extracted({', '.join(names)})", mode="eval").body
    tree.body.insert(tree.body.index(function), helper)
    return True


def _arguments_named(tree: ast.Module, random: Random) -> bool:
    """Arguments of a call by name, those whose evaluation nobody notices in another order."""
    known = {function.name: function.args for function in _functions(tree) if not function.decorator_list}
    calls = [part for part in ast.walk(tree) if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)]
    calls = [call for call in calls if call.func.id in known and call.args and not call.keywords]  # type: ignore[attr-defined]
    if not calls:
        return False
    call = random.choice(calls)
    arguments = known[call.func.id]  # type: ignore[attr-defined]
    simple = all(isinstance(value, (ast.Constant, ast.Name)) for value in call.args)
    if arguments.posonlyargs or len(call.args) > len(arguments.args):
        return False
    named = [ast.keyword(known.arg, value) for known, value in zip(arguments.args, call.args, strict=False)]
    call.args, call.keywords = [], named[::-1] if simple else named
    return True


def _condition(tree: ast.Module, random: Random) -> bool:
    """A choice between results as statements."""
    found = _returned(tree, random)
    if found is None or not isinstance(found[1].value, ast.IfExp):
        return False
    function, last = found
    chosen = last.value
    assert isinstance(chosen, ast.IfExp)
    function.body[-1:] = [ast.If(chosen.test, [ast.Return(chosen.body)], []), ast.Return(chosen.orelse)]
    return True


def _nothing(tree: ast.Module, random: Random) -> bool:
    """Text that does nothing: a docstring, a variable that is not used, a function that nobody calls."""
    functions = _functions(tree)
    if not functions:
        return False
    function = random.choice(functions)
    text = random.choice(("'''Said.'''", "pass", "unused = 5", "noted: int = 3", "import json as unused"))
    function.body.insert(0, ast.parse(text).body[0])
    tree.body.append(ast.parse("def nobody_calls_this():\n    return 1").body[0])
    return True


def _order(tree: ast.Module, random: Random) -> bool:
    """Two functions the other way round."""
    del random
    for place, (one, other) in enumerate(zip(tree.body, tree.body[1:], strict=False)):
        both = [part for part in (one, other) if isinstance(part, ast.FunctionDef) and not part.decorator_list]
        if len(both) > 1 and not any(part.args.defaults or part.args.kw_defaults for part in both):
            tree.body[place : place + 2] = [other, one]
            return one.name != other.name  # type: ignore[union-attr]
    return False


KINDS: dict[str, Callable[[ast.Module, Random], bool]] = {
    "constant to the module": lambda tree, random: _constant_named(tree, random, "module"),
    "constant to a variable": lambda tree, random: _constant_named(tree, random, "function"),
    "constant to a class": lambda tree, random: _constant_named(tree, random, "class"),
    "variable for a result": _variable_for_result,
    "variable for a part": _variable_for_part,
    "helper extracted": _helper,
    "arguments by name": _arguments_named,
    "condition as statements": _condition,
    "what does nothing": _nothing,
    "order of functions": _order,
}
