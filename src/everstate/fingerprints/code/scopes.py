"""Which names a function binds itself, so that renaming them changes nothing."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Comprehension: TypeAlias = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp

FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS: Final = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True)
class Imported:
    """What an import statement inside a function binds: a module, or a name in it."""

    module: str
    name: str | None
    level: int


@dataclass(eq=False)
class Scope:
    """A function, comprehension or class body.

    Attributes:
        outer: The scope around it.
        is_class: Its names are attributes, and functions inside do not see them.
        bound: How often each name is bound here.
        outside: Names declared `nonlocal`.
        module: Names declared `global`.
        imports: What import statements bind, by name.
    """

    outer: Scope | None
    is_class: bool = False
    bound: Counter[str] = field(default_factory=Counter)
    outside: set[str] = field(default_factory=set)
    module: set[str] = field(default_factory=set)
    imports: dict[str, Imported] = field(default_factory=dict)

    def binder(self, name: str) -> Scope | None:
        """The scope that binds a name seen from here; None if it is not bound in the function at all."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.module:
                return None
            if name in scope.bound and name not in scope.outside and (scope is self or not scope.is_class):
                return scope
            scope = scope.outer
        return None

    def imported(self, name: str) -> Imported | None:
        """What a name stands for if just one import binds it here."""
        return self.imports.get(name) if self.bound[name] == 1 else None


def of_function(node: Function, outer: Scope | None) -> Scope:
    """The scope of a function or lambda."""
    scope = Scope(outer)
    scope.bound.update(argument.arg for argument in all_arguments(node.args))
    _collect(node.body if isinstance(node.body, list) else [node.body], scope)
    return scope


def of_class(node: ast.ClassDef, outer: Scope | None) -> Scope:
    """The scope of a class body."""
    scope = Scope(outer, is_class=True)
    _collect(node.body, scope)
    return scope


def of_comprehension(node: Comprehension, outer: Scope) -> Scope:
    """The scope of a comprehension: its targets. What `:=` binds inside belongs to the function around."""
    scope = Scope(outer)
    for generator in node.generators:
        scope.bound.update(part.id for part in ast.walk(generator.target) if isinstance(part, ast.Name))
    return scope


def all_arguments(arguments: ast.arguments) -> list[ast.arg]:
    """All parameters in order."""
    rest = [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *rest]


def yields(node: Function) -> bool:
    """Whether a function is a generator: what it holds of others does not count."""
    waiting: list[ast.AST] = list(node.body) if isinstance(node.body, list) else [node.body]
    while waiting:
        part = waiting.pop()
        if isinstance(part, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(part, (*FUNCTIONS, ast.ClassDef)):
            waiting.extend(ast.iter_child_nodes(part))
    return False


def _collect(nodes: Iterable[ast.AST], scope: Scope) -> None:
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        _bind(node, scope)
        if isinstance(node, FUNCTIONS):
            waiting.extend(_evaluated_outside(node))
        elif isinstance(node, ast.ClassDef):
            waiting.extend([*node.decorator_list, *node.bases, *node.keywords])
        elif isinstance(node, COMPREHENSIONS):
            # Only what := binds in it is bound here.
            scope.bound.update(part.target.id for part in ast.walk(node) if isinstance(part, ast.NamedExpr))
        else:
            waiting.extend(ast.iter_child_nodes(node))


def _evaluated_outside(node: Function) -> list[ast.AST]:
    defaults = [*node.args.defaults, *(default for default in node.args.kw_defaults if default is not None)]
    return [*defaults, *([] if isinstance(node, ast.Lambda) else node.decorator_list)]


def _bind(node: ast.AST, scope: Scope) -> None:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            scope.bound[name] += 1
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.ExceptHandler() | ast.MatchAs():
            _bind_if_named(scope, node.name)
        case ast.MatchStar():
            _bind_if_named(scope, node.name)
        case ast.MatchMapping():
            _bind_if_named(scope, node.rest)
        case ast.Global(names=names):
            scope.module.update(names)
        case ast.Nonlocal(names=names):
            scope.outside.update(names)
        case ast.Import() | ast.ImportFrom():
            for name, imported in imported_names(node):
                # The same import in two branches is one.
                scope.bound[name] += scope.imports.get(name) != imported
                scope.imports[name] = imported


def _bind_if_named(scope: Scope, name: str | None) -> None:
    if name is not None:
        scope.bound[name] += 1


def imported_names(node: ast.Import | ast.ImportFrom) -> list[tuple[str, Imported]]:
    """What an import statement binds: `import a.b` binds a, `import a.b as c` binds a.b."""
    if isinstance(node, ast.ImportFrom):
        return [(a.asname or a.name, Imported(node.module or "", a.name, node.level)) for a in node.names]
    found = []
    for alias in node.names:
        name = alias.asname or alias.name.partition(".")[0]
        found.append((name, Imported(alias.name if alias.asname else name, None, 0)))
    return found
