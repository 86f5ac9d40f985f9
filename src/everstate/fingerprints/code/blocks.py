"""Statements in one of the ways to write them: the shortest, in which every value stands where it is used.

What is returned or bound in both branches of an `if` is one expression; what follows a branch that ends belongs to the
other branch; a variable that is bound once is replaced by its value, where that is evaluated in the same order and as
often. Each of these steps gives code that does the same, so two functions that become one tree are one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from everstate.fingerprints.code.evaluation import blocks, head, is_function, reads
from everstate.fingerprints.code.templates import Local, is_constant

if TYPE_CHECKING:
    from everstate.fingerprints.code.evaluation import Usage
    from everstate.fingerprints.tree import Tree

_ENDING: Final = ("Return", "Raise", "Continue", "Break")
_LOOPS: Final = ("For", "AsyncFor", "While")
NOTHING: Final = ["Return", "None"]


def settled(function: Tree, usage: Usage) -> Tree:
    """A function with its statements, and those of the functions in it, in their one form."""
    kind, parameters, defaults, hints, body = _inner(function, usage) if len(usage.functions) > 1 else function
    return [kind, parameters, defaults, hints, _block([*body, NOTHING], usage)]


def _inner(tree: Tree, usage: Usage) -> Tree:
    """The same with the functions in it settled; a class is left as it is, since its names are attributes."""
    if not isinstance(tree, list) or tree[:1] == ["class"]:
        return tree
    return [settled(part, usage) if is_function(part) else _inner(part, usage) for part in tree]


def _block(statements: list[Tree], usage: Usage) -> list[Tree]:
    found = []
    for statement in _lifted(statements):
        found.append(_merged(_with_blocks(statement, usage), usage))
        if found[-1][0] in _ENDING:
            break  # nothing after it is reached
    return _without_variables(found, usage)


def _with_blocks(statement: Tree, usage: Usage) -> Tree:
    if statement[0] == "If":
        return ["If", statement[1], _block(statement[2], usage), _block(statement[3], usage)]
    if statement[0] in _LOOPS:
        found = [_with_field(part, usage) for part in statement]
        return [["body", without_last(part[1], ["Continue"])] if part[0] == "body" else part for part in found]
    if any(True for _ in blocks(statement)):
        return [_with_field(part, usage) for part in statement]
    return statement


def _with_field(part: Tree, usage: Usage) -> Tree:
    if not isinstance(part, list) or len(part) != 2:
        return part
    name, held = part
    if name in ("body", "orelse", "finalbody"):
        return [name, _block(held, usage)]
    if name == "handlers":
        return [name, [[bound, [_with_field(inner, usage) for inner in handler]] for bound, handler in held]]
    if name == "cases":
        return [name, [[_with_field(inner, usage) for inner in case] for case in held]]
    return part


def _lifted(statements: list[Tree]) -> list[Tree]:
    """What follows an `if` of which one branch ends, in the other branch."""
    for place, statement in enumerate(statements[:-1]):
        if statement[0] == "If":
            _, test, then, other = statement
            rest = statements[place + 1 :]
            if ends(then):
                return [*statements[:place], ["If", test, then, [*other, *rest]]]
            if ends(other):
                return [*statements[:place], ["If", test, [*then, *rest], other]]
    return statements


def ends(statements: list[Tree]) -> bool:
    """Whether what follows these statements is never reached."""
    if not statements:
        return False
    last = statements[-1]
    return last[0] in _ENDING or (last[0] == "If" and ends(last[2]) and ends(last[3]))


def _merged(statement: Tree, usage: Usage) -> Tree:
    """An `if` as an expression, where both branches return or bind the same."""
    if statement[0] != "If":
        return statement
    _, test, then, other = statement
    while _is_not(test):
        test, then, other = test[2][1], other, then
    if len(then) == len(other) == 1 and then[0][0] == other[0][0]:
        (one,), (two,) = then, other
        if one[0] == "Return":
            return ["Return", _chosen(test, one[1], two[1])]
        if one[0] == "Assign" and _same(one[1], two[1]):
            usage.bound[one[1][0][1]] -= 1
            return ["Assign", one[1], _chosen(test, one[2], two[2])]
    if not other and len(then) == 1 and then[0][0] == "If" and not then[0][3]:
        return ["If", ["BoolOp", ["op", ["And"]], ["values", [*_all_of(test), *_all_of(then[0][1])]]], then[0][2], []]
    return ["If", test, then, other]


def _is_not(test: Tree) -> bool:
    return isinstance(test, list) and test[:2] == ["UnaryOp", ["op", ["Not"]]]


def _all_of(test: Tree) -> list[Tree]:
    return test[2][1] if isinstance(test, list) and test[:2] == ["BoolOp", ["op", ["And"]]] else [test]


def _chosen(test: Tree, then: Tree, other: Tree) -> Tree:
    return ["IfExp", ["test", test], ["body", then], ["orelse", other]]


def _same(one: Tree, other: Tree) -> bool:
    """Whether two lists of targets are the same single variable."""
    return len(one) == len(other) == 1 and one[0][0] == other[0][0] == "to" and one[0][1] is other[0][1]


def _without_variables(statements: list[Tree], usage: Usage) -> list[Tree]:
    found: list[Tree] = []  # from the last one to the first
    for statement in reversed(statements):
        local = _only_target(statement)
        if local is None or usage.bound[local] != 1:
            if statement[0] != "Expr" or not usage.is_inert(statement[1]):
                found.append(statement)
            continue
        value = statement[2]
        if usage.read[local] == 0:
            if not usage.is_inert(value) and not (is_function(value) and not any(value[2])):
                found.append(["Expr", value])
        elif _stays(value, local, usage) and reads(found)[local] == usage.read[local]:
            if isinstance(value, Local):
                usage.read[value] += usage.read[local] - 1
            found = put(found, local, value)
        elif usage.read[local] == 1 and found and usage.comes_first(head(found[-1]), local):
            found[-1] = put(found[-1], local, value)
        else:
            found.append(statement)
    found.reverse()
    return found


def _only_target(statement: Tree) -> Local | None:
    if statement[0] == "Assign" and len(statement[1]) == 1:
        target = statement[1][0]
        if isinstance(target, list) and target[0] == "to":
            return target[1]  # type: ignore[no-any-return]  # trees have no types
    return None


def _stays(value: Tree, local: Local, usage: Usage) -> bool:
    """Whether a value can be written wherever its variable is read."""
    if isinstance(value, Local):
        return usage.is_inert(value) and local not in usage.captured
    return is_constant(value) or usage.is_inert(value)


def put(tree: Tree, wanted: object, value: Any) -> Tree:
    """A tree with something in the place of a part of it."""
    if tree is wanted:
        return value
    return [put(part, wanted, value) for part in tree] if isinstance(tree, list) else tree


def without_last(statements: list[Tree], wanted: Tree) -> list[Tree]:
    """Without what happens at the end in any case: a function returns None, a loop goes on."""
    if not statements:
        return statements
    *before, last = statements
    if last == wanted:
        return without_last(before, wanted)
    if last[0] == "If":
        return [*before, ["If", last[1], without_last(last[2], wanted), without_last(last[3], wanted)]]
    return statements
