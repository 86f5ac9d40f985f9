"""Where a name was written: the statement that binds it, in the module that it was imported from."""

from __future__ import annotations

import ast
import linecache
import sys
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

from everstate.fingerprints.code.sources import SourceText, text_of
from everstate.fingerprints.outside import origins

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_current: dict[str, SourceText] = {}
_bindings: dict[int, tuple[SourceText, dict[str, ast.stmt]]] = {}


@dataclass(frozen=True, eq=False)
class Scope:
    """The names of a module, and its file."""

    names: dict[str, Any]
    file: str

    @classmethod
    def of(cls, names: dict[str, Any]) -> Scope:
        """The scope of a module or of a function's globals."""
        return cls(names, str(names.get("__file__") or ""))

    @property
    def module(self) -> str:
        """The module's name."""
        return str(self.names.get("__name__") or "")

    @property
    def is_users(self) -> bool:
        """Whether it is the user's own."""
        return origins.of_globals(self.names).kind == "user"

    @property
    def text(self) -> SourceText | None:
        """Its text."""
        return current_text(self.file, self.names) if self.file else None


@dataclass(frozen=True, eq=False)
class Place:
    """Where a name was given its meaning.

    Attributes:
        scope: The module.
        name: The name there.
        statement: What binds it; None if the text does not have it.
    """

    scope: Scope
    name: str
    statement: ast.stmt | None

    @property
    def line(self) -> int:
        """The line of the statement."""
        return 0 if self.statement is None else self.statement.lineno


def current_text(file: str, names: dict[str, Any]) -> SourceText | None:
    """The text of a file as it is now: a module may have been loaded again since another text of it was looked at."""
    linecache.checkcache(file)
    now = "".join(linecache.getlines(file, names))
    first = text_of(file, names)
    if first is not None and first.text == now:
        return first
    known = _current.get(file)
    if known is None or known.text != now:
        known = SourceText.of(file, now)
        if known is not None:
            _current[file] = known
    return known


def place_of(scope: Scope, name: str) -> Place:
    """Where a global name was written, by way of imports."""
    seen = set()
    while (scope.file, name) not in seen:
        seen.add((scope.file, name))
        text = scope.text
        statement = None if text is None else bindings_of(text).get(name)
        if not isinstance(statement, ast.ImportFrom):
            return Place(scope, name, statement)
        alias = next(alias for alias in statement.names if (alias.asname or alias.name) == name)
        module = sys.modules.get(_absolute(statement, scope))
        if module is None or isinstance(getattr(module, alias.name, None), ModuleType):
            return Place(scope, name, statement)
        scope, name = Scope.of(vars(module)), alias.name
    return Place(scope, name, None)


def bindings_of(text: SourceText) -> dict[str, ast.stmt]:
    """The statements of a text that bind names at its top, branches included; the last one of a name counts."""
    known = _bindings.get(id(text))
    if known is None:
        known = _bindings[id(text)] = (text, bindings(text.body))
    return known[1]


def bindings(body: Iterable[ast.stmt]) -> dict[str, ast.stmt]:
    """The same of any statements."""
    return {name: statement for statement in _statements(body) for name in _bound(statement)}


def given(statement: ast.stmt | None) -> ast.expr | None:
    """The expression that a statement gives its names: what is assigned, or what a loop goes through."""
    if isinstance(statement, ast.For):
        return statement.iter
    value = getattr(statement, "value", None)
    return value if isinstance(value, ast.expr) else None


def class_of(text: SourceText, qualname: str) -> ast.ClassDef | None:
    """A class by its name; one that a function makes is looked for wherever it is."""
    name = qualname.rpartition(".")[2]
    parts = (part for top in text.body for part in ast.walk(top))
    return next((part for part in parts if isinstance(part, ast.ClassDef) and part.name == name), None)


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        if isinstance(statement, (ast.If, ast.Try, ast.With, ast.For, ast.While)):
            for part in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(statement, part, []))
            for handler in getattr(statement, "handlers", []):
                yield from _statements(handler.body)


def _bound(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.Assign(targets=targets):
            for target in targets:
                yield from (part.id for part in ast.walk(target) if isinstance(part, ast.Name))
        case ast.For(target=target):
            yield from (part.id for part in ast.walk(target) if isinstance(part, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.AugAssign(target=ast.Name(id=name)):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.ImportFrom(names=names) | ast.Import(names=names):
            yield from (alias.asname or alias.name for alias in names)


def _absolute(statement: ast.ImportFrom, scope: Scope) -> str:
    if not statement.level:
        return statement.module or ""
    parts = str(scope.names.get("__package__") or "").split(".")
    above = parts[: len(parts) - statement.level + 1]
    return ".".join([*above, statement.module] if statement.module else above)
