"""Every text of the package that a user may see, found in the syntax trees of its modules.

Nothing is listed by hand: arguments of the error tree's classes, hints, helps of the command line and what is printed
or logged are found by the call that takes them. All other literals that read like prose are taken as well, since a
sentence may pass through variables and functions before it is shown; what is not for people (SQL, settings of Java) is
told by its form.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

ROOT: Final = Path(__file__).resolve().parents[3]
PACKAGE: Final = ROOT / "src" / "everstate"

_ROOT_ERROR: Final = "EverstateError"
#: Calls that show their text, by the last part of their name, with the kind of what they show.
_SHOWS: Final = {
    **dict.fromkeys(("echo", "print", "tell"), "says"),
    **dict.fromkeys(("warning", "error", "info", "exception"), "logs"),
    **dict.fromkeys(("Span", "Difference", "Concern"), "plan"),
}
_PASSES: Final = (ast.keyword, ast.IfExp, ast.BinOp, ast.BoolOp, ast.Starred, ast.FormattedValue, ast.JoinedStr)
_WORDS: Final = re.compile(r"\b(?:[A-Za-z]{2,}|[Aa]),? (?:[a-z]{2,}|a)\b")
_WORD: Final = re.compile(r"(?<![\w-])[A-Za-z]{3,}")
_FILLED: Final = re.compile(r"\{[^{}]*\}")
#: Texts for machines: SQL, options of Java and of the terminal, patterns, types of Spark's columns, lists of names.
_MACHINE: Final = re.compile(
    r"^\s*(?:SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|PRAGMA|BEGIN|WITH|VALUES|REPLACE|ANALYZE|VACUUM)\b"
    r"|\b(?:WHERE|FROM|ORDER BY|PRIMARY KEY|ON CONFLICT)\b|^\s*(?:-X|-D|def |class |import |from |@|\(\?)"
    r"|\\[bws]|</?\w+[ >]|^bold |\b(?:int|long|binary|string)(?:,|$)|\w\|\w"
    r"|\n {4}|\w\.\w+ \w+\.\w|^(?:random|files|code): "
)


@dataclass(frozen=True)
class Message:
    """One text of a module.

    Attributes:
        module: Path of the module, as in `plan/text.py`.
        line: Where it begins.
        kind: "error", "hint", "help", "says", "logs", "plan", or "text" where the call that takes it does not tell.
        text: With `{name}` for what is filled in, and `{one|other}` where one of several words is chosen.
    """

    module: str
    line: int
    kind: str
    text: str


@cache
def messages() -> tuple[Message, ...]:
    """All texts, in the order of modules and lines."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}
    errors = _error_classes(trees.values())
    modules = sorted(((str(path.relative_to(PACKAGE)), tree) for path, tree in trees.items()), key=itemgetter(0))
    return tuple(message for name, tree in modules for message in module_messages(name, tree, errors))


def module_messages(name: str, tree: ast.Module, errors: Collection[str]) -> list[Message]:
    """The texts of one module, in the order of their lines; `errors` are the names of error classes."""
    return sorted(_Module(name, tree, errors).messages(), key=lambda message: message.line)


def catalogue() -> str:
    """The texts side by side, as the file that is kept."""
    lines = ["# Every text that a user may see", "", "Made from the source by `make catalogue`; not written by hand."]
    module = ""
    for message in messages():
        if message.module != module:
            module = message.module
            lines += ["", f"## {module}", ""]
        kind = "" if message.kind == "text" else f"{message.kind}: "
        lines.append(f"- {kind}{_one_line(message.text)}")
    return "\n".join(lines) + "\n"


def _one_line(text: str) -> str:
    return text.strip("\n").replace("\n", " / ")


def _error_classes(trees: Iterable[ast.Module]) -> frozenset[str]:
    """The names of the root error and of all classes below it, wherever they are."""
    bases = {
        node.name: {ast.unparse(base).rpartition(".")[2] for base in node.bases}
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    found = {_ROOT_ERROR}
    while new := {name for name, above in bases.items() if above & found} - found:
        found |= new
    return frozenset(found)


class _Module:
    """The texts of one module."""

    def __init__(self, name: str, tree: ast.Module, errors: Collection[str]) -> None:
        self._name = name
        self._tree = tree
        self._errors = errors
        self._above = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}

    def messages(self) -> Iterator[Message]:
        yield from self._command_helps()
        for node in ast.walk(self._tree):
            if not _is_text(node) or self._is_hidden(node):
                continue
            kind, text = self._kind(node), rendered(node)
            whole = kind in {"error", "hint", "help", "says"} and not self._is_filled_in(node)
            if text.strip() and (whole or _reads_like_prose(text)):
                yield Message(self._name, node.lineno, kind, text)

    def _command_helps(self) -> Iterator[Message]:
        """The first paragraphs of commands' docstrings, which the command line shows as help."""
        if not self._name.startswith("cli/commands/"):
            return
        for node in self._tree.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and ast.get_docstring(node):
                first = (ast.get_docstring(node) or "").split("\n\n")[0].replace("\n", " ")
                yield Message(self._name, node.lineno, "help", first)

    def _is_hidden(self, node: ast.AST) -> bool:
        """Whether a text is none of its own: a docstring, a name, or a piece that its sentence shows already."""
        below, above = node, self._above.get(node)
        if isinstance(above, (ast.Expr, ast.JoinedStr, ast.Attribute)):
            return True
        if isinstance(above, ast.Dict) and below in above.keys:
            return True
        while above is not None and not isinstance(above, ast.stmt):
            if isinstance(above, ast.FormattedValue) and isinstance(above.value, ast.IfExp):
                return True
            if isinstance(above, ast.Call):
                return False
            below, above = above, self._above.get(above)
        return isinstance(above, ast.Assert) or below is getattr(above, "annotation", None)

    def _is_filled_in(self, node: ast.AST) -> bool:
        above: ast.AST | None = node
        while above is not None and not isinstance(above, (ast.FormattedValue, ast.stmt)):
            above = self._above.get(above)
        return isinstance(above, ast.FormattedValue)

    def _kind(self, node: ast.AST) -> str:
        word = ""
        below, above = node, self._above.get(node)
        while isinstance(above, _PASSES):
            if isinstance(above, ast.keyword):
                word = above.arg or ""
            below, above = above, self._above.get(above)
        if word in {"hint", "help"}:
            return word
        if isinstance(above, ast.Call) and below is not above.func:
            called = ast.unparse(above.func)
            last = called.rpartition(".")[2]
            if last in self._errors or (called == "super().__init__" and self._in_error(above)):
                return "error"
            if isinstance(self._above.get(above), ast.Raise):
                return "error"
            return _SHOWS.get(last, "text")
        return "text"

    def _in_error(self, node: ast.AST) -> bool:
        above: ast.AST | None = node
        while above is not None and not isinstance(above, ast.ClassDef):
            above = self._above.get(above)
        return isinstance(above, ast.ClassDef) and above.name in self._errors


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _reads_like_prose(text: str) -> bool:
    own = _FILLED.sub("", text)
    return bool(_WORDS.search(_FILLED.sub("it", text)) and _WORD.search(own)) and not _MACHINE.search(own)


def rendered(node: ast.AST) -> str:
    """A literal as people read it.

    Example:
        >>> rendered(ast.parse("f'{counted(self.keys, 'key')} of {topic}'").body[0].value)
        '{keys} of {topic}'
    """
    if isinstance(node, ast.Constant):
        return str(node.value)
    assert isinstance(node, ast.JoinedStr)
    return "".join(
        str(part.value) if isinstance(part, ast.Constant) else "{" + _filled(part.value) + "}" for part in node.values
    )


def _filled(node: ast.AST) -> str:
    """A word for what is filled in; the words that are chosen from, where they are literals."""
    if isinstance(node, ast.IfExp):
        return f"{_choice(node.body)}|{_choice(node.orelse)}"
    names = [
        found.attr if isinstance(found, ast.Attribute) else found.id
        for found in _in_order(node)
        if isinstance(found, (ast.Attribute, ast.Name))
    ]
    return names[-1] if names else "..."


def _choice(node: ast.AST) -> str:
    return rendered(node).replace("{", "").replace("}", "") if _is_text(node) else _filled(node)


def _in_order(node: ast.AST) -> Iterator[ast.AST]:
    """The names in an expression, those of functions first: what is filled in is named last."""
    if isinstance(node, ast.Call):
        yield node.func
        for argument in node.args[:1]:
            yield from _in_order(argument)
    elif isinstance(node, (ast.Attribute, ast.Name)):
        yield node
    elif isinstance(node, ast.comprehension):
        yield from _in_order(node.iter)
    elif isinstance(node, (ast.GeneratorExp, ast.ListComp)):
        yield from _in_order(node.generators[0].iter)
    elif isinstance(node, ast.Subscript):
        yield from _in_order(node.value)
    else:
        for child in ast.iter_child_nodes(node):
            yield from _in_order(child)


if __name__ == "__main__":
    (Path(__file__).parent / "catalogue.md").write_text(catalogue(), encoding="utf-8")
