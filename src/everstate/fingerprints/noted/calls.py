"""The call that made a step, in the user's text: `.filter(col("status") != "void")`."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everstate.fingerprints.code.sources import SourceText
    from everstate.location import Location

#: Methods that finish what another one began: both make one step.
_FINISHING: Final = frozenset({"agg", "reduce", "aggregate"})
_BEGINNING: Final = "group_by"
_BETWEEN: Final = "window"
_LABEL: Final = 40


@dataclass(frozen=True, eq=False)
class Call:
    """A call of the user's.

    Attributes:
        nodes: Its syntax; with it that of the call which it finishes, first.
        text: The text that it is in.
        around: The innermost function that it is in; None at the top of a file.
    """

    nodes: tuple[ast.Call, ...]
    text: SourceText
    around: ast.FunctionDef | ast.AsyncFunctionDef | None = None

    @property
    def line(self) -> int:
        """The line that the first method's name is on."""
        return _beginning(self.nodes[0])[0]

    @property
    def source(self) -> str:
        """From the dot of the first method on."""
        lines = self.text.text.splitlines()
        line, column = _beginning(self.nodes[0])
        end_line, end = self.nodes[-1].end_lineno or line, self.nodes[-1].end_col_offset or 0
        part = [text.encode() for text in lines[line - 1 : end_line]]
        part[-1] = part[-1][:end]
        dot = "." if isinstance(self.nodes[0].func, ast.Attribute) else ""
        indent = len(part[0]) - len(part[0].lstrip())
        rest = [text.decode()[min(indent, len(text) - len(text.lstrip())) :] for text in part[1:]]
        return "\n".join([dot + part[0][column:].decode(), *rest])

    @property
    def label(self) -> str:
        """The method with what it was told by plain keywords: `apply(stateful=True)`."""
        call = self.nodes[-1]
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)
        told = [
            f"{word.arg}={word.value.value!r}"
            for word in call.keywords
            if word.arg and isinstance(word.value, ast.Constant)
        ]
        label = f"{name}({', '.join(told)})"
        return label if len(label) <= _LABEL else f"{name}()"

    @property
    def dump(self) -> str:
        """Its meaning as syntax, wherever it stands."""
        return " ".join(ast.dump(part) for node in self.nodes for part in (*node.args, *node.keywords)) + " ".join(
            ast.unparse(node.func).rpartition(".")[2] for node in self.nodes
        )

    def names(self) -> Iterator[ast.Name | ast.Attribute]:
        """The names that its arguments use, but for those inside lambdas: these are noted for themselves."""
        for node in self.nodes:
            for part in (*node.args, *(word.value for word in node.keywords)):
                yield from names_in(part)
        grouped = self.nodes[0].func
        if len(self.nodes) == 1 and isinstance(grouped, ast.Attribute) and grouped.attr in _FINISHING:
            yield from names_in(grouped.value)


def call_at(text: SourceText, location: Location) -> Call | None:
    """The call that was made at a place; None if it cannot be told."""
    line = location.line if location.end is None else location.end[0]
    found = [call for statement in text.body for call in _calls(statement, None, line)]
    if location.end is not None:
        found = [(call, around) for call, around in found if (call.end_lineno, call.end_col_offset) == location.end]
    else:
        found = [(call, around) for call, around in found if _beginning(call)[0] == location.line]
        found = found if len(found) == 1 else []
    if not found:
        return None
    call, around = found[0]
    return Call((*_begun(call), call), text, around)


def names_in(part: ast.AST) -> Iterator[ast.Name | ast.Attribute]:
    """The names in a piece of syntax, with the attributes that are taken of them; not those inside lambdas."""
    if isinstance(part, ast.Lambda):
        return
    inner = part
    while isinstance(inner, ast.Attribute):
        inner = inner.value
    if isinstance(inner, ast.Name) and isinstance(part, (ast.Name, ast.Attribute)):
        if isinstance(inner.ctx, ast.Load):
            yield part
        return
    for child in ast.iter_child_nodes(part):
        yield from names_in(child)


def _calls(
    part: ast.AST, around: ast.FunctionDef | ast.AsyncFunctionDef | None, line: int
) -> Iterator[tuple[ast.Call, ast.FunctionDef | ast.AsyncFunctionDef | None]]:
    """The calls that are written on a line, or around it, with the function that each is in."""
    if isinstance(part, (ast.stmt, ast.expr)) and not part.lineno <= line <= (part.end_lineno or part.lineno):
        return
    if isinstance(part, ast.Call):
        yield part, around
    inside = part if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)) else around
    for child in ast.iter_child_nodes(part):
        yield from _calls(child, inside, line)


def _begun(call: ast.Call) -> tuple[ast.Call, ...]:
    """The `group_by` that a call finishes, and the `window` between them, if they are written before it."""
    if not (isinstance(call.func, ast.Attribute) and call.func.attr in _FINISHING):
        return ()
    found: list[ast.Call] = []
    before = call.func.value
    while isinstance(before, ast.Call) and isinstance(before.func, ast.Attribute):
        found.insert(0, before)
        if before.func.attr == _BEGINNING:
            return tuple(found)
        if before.func.attr != _BETWEEN:
            break
        before = before.func.value
    return ()


def _beginning(call: ast.Call) -> tuple[int, int]:
    """Line and column of a method's name; of the whole call if it is not one of a method."""
    func = call.func
    if isinstance(func, ast.Attribute):
        return func.end_lineno or func.lineno, (func.end_col_offset or 0) - len(func.attr.encode())
    return call.lineno, call.col_offset
