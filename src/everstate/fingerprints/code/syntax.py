"""A function's syntax as a tree that any Python version writes alike.

Formatting, comments, docstrings, plain annotations and the names of local variables are gone. What the function takes
from outside is left open, as numbered slots: they are filled from the function at hand, whose globals and closure say
what the names mean.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from everstate.fingerprints.code import scopes
from everstate.fingerprints.code.numbers import number
from everstate.fingerprints.code.revealing import ASKING, LOOKING, REVEALING, SETTING, is_private
from everstate.fingerprints.code.scopes import Function, Imported, Scope
from everstate.fingerprints.code.templates import Local, Open, Slot, Template, is_constant, numbered
from everstate.fingerprints.tree import Parameter, Tree, atom

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: Fields that mean nothing, or that the code around says already.
_SKIPPED: Final = frozenset({"ctx", "kind", "type_comment", "type_ignores", "type_params"})
#: Decorators that do not look at annotations.
HARMLESS: Final = frozenset(
    {
        "abstractmethod",
        "cache",
        "cached_property",
        "classmethod",
        "contextmanager",
        "declare",
        "lru_cache",
        "overload",
        "override",
        "property",
        "setter",
        "staticmethod",
        "wraps",
    }
)


def template_of(node: Function, *, annotated: bool) -> Template:
    """The template of a function.

    Args:
        node: Its syntax.
        annotated: Something acts on its annotations, so that they belong to its meaning.
    """
    named = _sees_names(node)
    builder = _Builder(named=named)
    builder.template.looks = named
    builder.template.tree = builder.function(node, None, annotated=annotated, outermost=True)
    return builder.template


def decorators_template(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Template:
    """What stands after the `@` above a function."""
    builder = _Builder(named=False)
    builder.template.tree = numbered([builder.node(decorator, Scope(None)) for decorator in node.decorator_list])
    return builder.template


def annotation_template(text: str) -> Template | None:
    """An annotation that is given as text; None if it is not Python."""
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError:
        return None
    builder = _Builder(named=False)
    builder.template.tree = numbered(builder.annotation(node, Scope(None)))
    return builder.template


class _Builder:
    def __init__(self, *, named: bool) -> None:
        self.template = Template()
        self._named = named
        self._locals: dict[tuple[int, str], Local] = {}
        self._aliases: dict[tuple[int, str], Slot] = {}
        self._slots: dict[tuple[str, tuple[str, ...], Imported | None], int] = {}
        self._scopes: list[Scope] = []  # keeps them alive, since they are numbered by identity
        self._special: dict[type[ast.AST], Callable[[Any, Scope], Tree]] = {
            ast.Name: self._name,
            ast.Attribute: self._attribute,
            ast.Constant: self._constant,
            ast.UnaryOp: self._number,
            ast.BinOp: self._number,
            ast.Tuple: self._tuple,
            ast.JoinedStr: self._joined,
            ast.Call: self._call,
            ast.Lambda: self.function,
            ast.FunctionDef: self._definition,
            ast.AsyncFunctionDef: self._definition,
            ast.ClassDef: self._class,
            ast.ListComp: self._comprehension,
            ast.SetComp: self._comprehension,
            ast.DictComp: self._comprehension,
            ast.GeneratorExp: self._comprehension,
            ast.Assign: self._assignment,
            ast.Expr: lambda node, scope: ["Expr", self.node(node.value, scope)],
            ast.Return: self._return,
            ast.If: self._if,
            ast.AnnAssign: self._annotated_assignment,
            ast.Import: self._import,
            ast.ImportFrom: self._import,
            ast.ExceptHandler: self._named_node,
            ast.MatchAs: self._named_node,
            ast.MatchStar: self._named_node,
            ast.MatchMapping: self._named_node,
        }

    def node(self, node: ast.AST, scope: Scope) -> Tree:
        special = self._special.get(type(node))
        return self._generic(node, scope) if special is None else special(node, scope)

    def _generic(self, node: ast.AST, scope: Scope, *, without: str = "") -> Tree:
        tree: list[Tree] = [type(node).__name__]
        for name in node._fields:
            value = getattr(node, name, None)
            # Fields that are empty are left out: a later Python may have more of them.
            if name in _SKIPPED or name == without or value is None or value == []:
                continue
            tree.append([name, self._field(value, scope)])
        return tree

    def _field(self, value: Any, scope: Scope) -> Tree:
        if isinstance(value, list):
            if value and all(isinstance(part, ast.stmt) for part in value):
                return self.statements(value, scope)
            return [self._field(part, scope) for part in value]
        return self.node(value, scope) if isinstance(value, ast.AST) else value

    def statements(self, body: Sequence[ast.stmt], scope: Scope) -> list[Tree]:
        found = []
        for statement in body:
            if isinstance(statement, (ast.Pass, ast.Global, ast.Nonlocal)):
                self.template.rebinds |= not isinstance(statement, ast.Pass)
                continue
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                continue  # a docstring, or a text in the place of a comment
            tree = self.node(statement, scope)
            if tree is not None:
                found.append(tree)
        return found

    # Functions and classes

    def function(
        self, node: Function, outer: Scope | None, *, annotated: bool = False, outermost: bool = False
    ) -> Tree:
        """A lambda is the function that returns its result."""
        scope = scopes.of_function(node, outer)
        self._scopes.append(scope)
        kind = "async function" if isinstance(node, ast.AsyncFunctionDef) else "function"
        kind += " that yields" if scopes.yields(node) else ""
        defaults: list[Tree] = []
        if outer is not None and not outermost:
            values = [*node.args.defaults, *node.args.kw_defaults]
            defaults = [None if value is None else self.node(value, outer) for value in values]
        parameters = self._parameters(node.args, scope)
        hints = self._annotations(node, scope) if annotated else []
        body = (
            [["Return", self.node(node.body, scope)]]
            if isinstance(node, ast.Lambda)
            else self.statements(node.body, scope)
        )
        return [kind, parameters, defaults, hints, body]

    def _parameters(self, arguments: ast.arguments, scope: Scope) -> list[Tree]:
        kinds = [
            *(("only by position", argument) for argument in arguments.posonlyargs),
            *(("parameter", argument) for argument in arguments.args),
            *(("only by name", argument) for argument in arguments.kwonlyargs),
        ]
        found: list[Tree] = []
        for kind, argument in kinds:
            name = {"parameter": Parameter(argument.arg), "only by name": argument.arg}.get(kind)
            found.append([kind, self._bound(argument.arg, scope), name])
        if arguments.vararg is not None:
            found.append(["rest", self._bound(arguments.vararg.arg, scope)])
        if arguments.kwarg is not None:
            found.append(["rest by name", self._bound(arguments.kwarg.arg, scope)])
        return found

    def _annotations(self, node: Function, scope: Scope) -> list[Tree]:
        hints = [(argument.arg, argument.annotation) for argument in scopes.all_arguments(node.args)]
        hints.append(("return", None if isinstance(node, ast.Lambda) else node.returns))
        return [[name, self.annotation(hint, scope)] for name, hint in hints if hint is not None]

    def annotation(self, node: ast.expr, scope: Scope) -> Tree:
        """An annotation, which may be a text that holds one."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                node = ast.parse(node.value, mode="eval").body
            except SyntaxError:
                return self.node(node, scope)
        return self.node(node, scope)

    def _definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> Tree:
        decorators = [self.node(decorator, scope) for decorator in node.decorator_list]
        acting = any(last_name(decorator) not in HARMLESS for decorator in node.decorator_list)
        name = self._bound(node.name, scope)
        return ["define", name, decorators, self.function(node, scope, annotated=acting)]

    def _class(self, node: ast.ClassDef, scope: Scope) -> Tree:
        around = [self.node(part, scope) for part in [*node.decorator_list, *node.bases, *node.keywords]]
        name = self._bound(node.name, scope)
        inside = scopes.of_class(node, scope)
        self._scopes.append(inside)
        return ["class", name, around, self.statements(node.body, inside)]

    def _comprehension(self, node: scopes.Comprehension, scope: Scope) -> Tree:
        inside = scopes.of_comprehension(node, scope)
        self._scopes.append(inside)
        tree: list[Tree] = [type(node).__name__]
        for place, generator in enumerate(node.generators):
            source = self.node(generator.iter, scope if place == 0 else inside)
            target = self.node(generator.target, inside)
            tree.append([source, target, [self.node(test, inside) for test in generator.ifs], generator.is_async])
        results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        return [*tree, *(self.node(result, inside) for result in results)]

    # Names

    def _local(self, name: str, scope: Scope) -> Tree:
        self.template.private |= is_private(name)
        binder = scope.binder(name)
        if binder is None:
            return ["global", name]
        if binder.is_class:
            return ["attribute", name]
        return self._locals.setdefault((id(binder), name), Local(name if self._named else ""))

    def _bound(self, name: str, scope: Scope) -> Tree:
        found = self._local(name, scope)
        return ["to", found] if isinstance(found, Local) else found

    def _name(self, node: ast.Name, scope: Scope) -> Tree:
        if isinstance(node.ctx, ast.Del):
            return ["del", self._local(node.id, scope)]
        if isinstance(node.ctx, ast.Store):
            return self._bound(node.id, scope)
        return self._outside(node, (), scope) or self._local(node.id, scope)

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Tree:
        chain: list[str] = []
        base: ast.expr = node
        while isinstance(base, ast.Attribute) and isinstance(base.ctx, ast.Load):
            chain.append(base.attr)
            base = base.value
        if isinstance(base, ast.Name):
            slot = self._outside(base, tuple(reversed(chain)), scope)
            if slot is not None:
                self.template.looks |= not REVEALING.isdisjoint(chain)
                self.template.stored |= set() if SETTING.isdisjoint(chain) else {"*"}
                return slot
            self._watch(base, tuple(reversed(chain)), scope)
        self._note(node)
        self.template.methods.setdefault(node.attr, node.lineno)
        return ["Attribute", self.node(node.value, scope), node.attr, type(node.ctx).__name__]

    def _note(self, node: ast.Attribute) -> None:
        self.template.private |= is_private(node.attr)
        self.template.looks |= node.attr in REVEALING
        self.template.stored |= {"*"} if node.attr in SETTING else set()
        if not isinstance(node.ctx, ast.Load):
            self.template.stored.add(node.attr)
            self.template.looks |= node.attr == "__init__"

    def _outside(self, node: ast.Name, attributes: tuple[str, ...], scope: Scope) -> Tree | None:
        """The slot of a name that means something outside; None if the function binds it."""
        if not isinstance(node.ctx, ast.Load):
            return None
        self.template.private |= is_private(node.id)
        binder = scope.binder(node.id)
        imported = None if binder is None else binder.imported(node.id)
        if binder is not None and imported is None:
            return None
        return self._slot(Slot(node.id, attributes, node.lineno, imported))

    def _watch(self, node: ast.Name, attributes: tuple[str, ...], scope: Scope) -> None:
        slot = self._aliases.get((id(scope.binder(node.id)), node.id))
        if slot is not None:
            self.template.watched.append(replace(slot, attributes=slot.attributes + attributes, line=node.lineno))

    def _slot(self, slot: Slot) -> Tree:
        name = "" if slot.imported is not None else slot.name
        place = (name, slot.attributes, slot.imported)
        if place not in self._slots:
            self._slots[place] = len(self.template.slots)
            self.template.slots.append(slot)
        return Open(self._slots[place])

    def _import(self, node: ast.Import | ast.ImportFrom, scope: Scope) -> Tree | None:
        """An import that is the only one of its name is resolved where the name is used."""
        trees: list[Tree] = []
        for name, imported in scopes.imported_names(node):
            binder = scope.binder(name)
            if binder is None or binder.imported(name) is None:
                trees.append([self._bound(name, scope), self._slot(Slot(name, (), node.lineno, imported))])
        return ["import", *trees] if trees else None

    def _named_node(self, node: ast.AST, scope: Scope) -> Tree:
        """A handler or a pattern that binds a name."""
        field_name = "rest" if isinstance(node, ast.MatchMapping) else "name"
        name = getattr(node, field_name)
        bound = None if name is None else self._bound(name, scope)
        return [bound, self._generic(node, scope, without=field_name)]

    # Expressions and statements with more than one way to write them

    def _constant(self, node: ast.Constant, scope: Scope) -> Tree:
        del scope
        self.template.looks |= isinstance(node.value, str) and node.value in REVEALING
        leaf = atom(node.value, written=True)
        return leaf if leaf is not None else str(node.value) if node.value is None else "..."

    def _tuple(self, node: ast.Tuple, scope: Scope) -> Tree:
        """One of constants is a constant."""
        parts = [self.node(part, scope) for part in node.elts]
        plain = isinstance(node.ctx, ast.Load) and all(map(is_constant, parts))
        return ["tuple", parts] if plain else ["Tuple", ["elts", parts]]

    def _return(self, node: ast.Return, scope: Scope) -> Tree:
        return ["Return", "None" if node.value is None else self.node(node.value, scope)]

    def _if(self, node: ast.If, scope: Scope) -> Tree:
        test = self.node(node.test, scope)
        return ["If", test, self.statements(node.body, scope), self.statements(node.orelse, scope)]

    def _number(self, node: ast.UnaryOp | ast.BinOp, scope: Scope) -> Tree:
        value = number(node)
        return self._generic(node, scope) if value is None else atom(value, written=True)

    def _joined(self, node: ast.JoinedStr, scope: Scope) -> Tree:
        """Texts that follow each other are one, however they were written."""
        parts: list[Tree] = []
        for value in node.values:
            if isinstance(value, ast.Constant):
                text = str(value.value)
                if parts and isinstance(parts[-1], str):
                    parts[-1] += text
                elif text:
                    parts.append(text)
            else:
                parts.append(self.node(value, scope))
        return ["text", *parts]

    def _call(self, node: ast.Call, scope: Scope) -> Tree:
        for keyword in node.keywords:
            if keyword.arg is None:
                self.template.spreads = True
            else:
                self.template.keywords.add(keyword.arg)
        called = self.node(node.func, scope)
        values = [self.node(argument, scope) for argument in node.args]
        named = [[keyword.arg, self.node(keyword.value, scope)] for keyword in node.keywords]
        return ["call", called, values, named]

    def _annotated_assignment(self, node: ast.AnnAssign, scope: Scope) -> Tree | None:
        if scope.is_class:
            return self._generic(node, scope)
        if node.value is None:
            return None
        return self._assignment(ast.Assign(targets=[node.target], value=node.value), scope)

    def _assignment(self, node: ast.Assign, scope: Scope) -> Tree:
        value = self.node(node.value, scope)
        targets = [self.node(target, scope) for target in node.targets]
        if isinstance(value, Open):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self._aliases[id(scope.binder(target.id)), target.id] = self.template.slots[value.number]
        return ["Assign", targets, value]


def _sees_names(node: Function) -> bool:
    """Whether code sees its own local names; `vars(thing)` sees those of the thing."""
    parts = list(ast.walk(node))
    aside = {id(part.func) for part in parts if isinstance(part, ast.Call) and part.args and _name(part) in ASKING}
    return any(isinstance(part, ast.Name) and part.id in LOOKING and id(part) not in aside for part in parts)


def _name(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def last_name(decorator: ast.expr) -> str:
    """The last part of a decorator's name: `cache` of `@functools.cache`, `retry` of `@retry(3)`."""
    if isinstance(decorator, ast.Call):
        return last_name(decorator.func)
    if isinstance(decorator, ast.Attribute):
        return decorator.attr
    return decorator.id if isinstance(decorator, ast.Name) else ""
