"""One function or class of the user's: its text, its place, and a digest of its own content."""

from __future__ import annotations

import ast
import textwrap
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

from everstate.errors import secrets
from everstate.fingerprints.code.functions import template_of_function
from everstate.fingerprints.code.sources import source_of
from everstate.fingerprints.code.templates import numbered
from everstate.fingerprints.noted import contents
from everstate.fingerprints.noted.notes import Definition, DefinitionKind
from everstate.fingerprints.noted.places import bindings, class_of
from everstate.fingerprints.tree import digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from everstate.fingerprints.code.sources import FunctionNode, SourceText
    from everstate.fingerprints.code.templates import Template
    from everstate.fingerprints.noted.places import Scope

_LONGEST: Final = 40_000

template_of = template_of_function


def decorated_by(call: FunctionType) -> FunctionType | None:
    """The function that a decorator put `call` in the place of, with its name (`functools.wraps`); else None."""
    inner = getattr(call, "__wrapped__", None)
    if not isinstance(inner, FunctionType) or call.__code__.co_name == call.__name__:
        return None
    return inner


def name_of(call: FunctionType) -> str:
    """A name that is unique to a function, but for those that one function makes several times."""
    name = f"{call.__module__}.{call.__qualname__}"
    if decorated_by(call) is None:
        return name
    return f"{call.__globals__.get('__name__')}.{call.__code__.co_qualname} of {name}"


def function(call: FunctionType, name: str, values: tuple[str, ...]) -> Definition:
    """A function, without what it uses."""
    code = call.__code__
    found = source_of(code, call.__globals__)
    template = template_of(call)
    label = _label(call)
    if found is None or template is None:
        own = contents.digest(f"{code.co_code!r}{[part for part in code.co_consts if isinstance(part, (str, int))]}")
        return Definition(name, "function", label, code.co_filename, code.co_firstlineno, "", own)
    node, text = found
    kind: DefinitionKind = "lambda" if isinstance(node, ast.Lambda) else "function"
    source = secrets.hidden(without_secrets(_source(node, text), (node,)), values)[:_LONGEST]
    return Definition(name, kind, label, code.co_filename, _first_line(node), source, _digest(node, template))


def class_(kind: type, name: str, scope: Scope, values: tuple[str, ...]) -> tuple[Definition, list[ast.AST]]:
    """A class without its methods, and the syntax of what is said in it besides."""
    node = None if scope.text is None else class_of(scope.text, kind.__qualname__)
    if node is None or scope.text is None:
        plain = {key: part for key, part in vars(kind).items() if isinstance(part, (str, int, float)) and key[0] != "_"}
        text = contents.content(plain, mask=True)
        return Definition(name, "class", kind.__name__, scope.file, 0, text, contents.digest(text)), []
    methods = [part for part in node.body if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef))]
    rest = [part for part in node.body if part not in methods and not _is_docstring(part)]
    lines = scope.text.text.splitlines()
    hidden = {line for part in methods for line in range(_first_line(part), (part.end_lineno or part.lineno) + 1)}
    first = _first_line(node)
    # Lines of methods stay as empty ones, so that each of the others is where it was.
    whole = range(first, (node.end_lineno or first) + 1)
    source = textwrap.dedent("\n".join("" if line in hidden else lines[line - 1] for line in whole)).rstrip()
    said: list[ast.AST] = [*node.decorator_list, *node.bases, *(word.value for word in node.keywords), *rest]
    own = contents.digest(" ".join(ast.dump(part) for part in said))
    masked = secrets.hidden(without_secrets(source, (node,)), values)[:_LONGEST]
    return Definition(name, "class", kind.__name__, scope.file, first, masked, own), said


def member(kind: type, attribute: str, scope: Scope) -> ast.stmt | None:
    """The statement of a class that gives an attribute its value."""
    node = None if scope.text is None else class_of(scope.text, kind.__qualname__)
    return None if node is None else bindings(node.body).get(attribute)


def defaults(call: FunctionType) -> Iterator[tuple[str, Any, ast.expr]]:
    """The parameters of a function that have defaults, with the value and the syntax of each."""
    found = source_of(call.__code__, call.__globals__)
    if found is None:
        return
    given = found[0].args
    placed = [*given.posonlyargs, *given.args]
    values = call.__defaults__ or ()
    for parameter, value, node in zip(placed[len(placed) - len(values) :], values, given.defaults, strict=False):
        yield parameter.arg, value, node
    for parameter, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        if default is not None and parameter.arg in (call.__kwdefaults__ or {}):
            yield parameter.arg, (call.__kwdefaults__ or {})[parameter.arg], default


#: Methods whose `key=` and `key_format=` say which columns are a key, and how it is written.
_KEYED: Final = frozenset({"stream", "table", "global_table", "to", "rekey"})


def without_secrets(text: str, nodes: Iterable[ast.AST]) -> str:
    """A text in which no literal stands that is named like a secret: `token = "..."`, `connect(password="...")`."""
    for node in nodes:
        parts = list(ast.walk(node))
        calls = (part for part in parts if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute))
        columns = {id(word) for call in calls if call.func.attr in _KEYED for word in call.keywords}  # type: ignore[attr-defined]
        for part in parts:
            if id(part) not in columns:
                for literal in _secret_literals(part):
                    text = text.replace(literal, secrets.MASK)
    return text


def _secret_literals(part: ast.AST) -> Iterator[str]:
    match part:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(found))):
            pairs = [(name, found)]
        case ast.keyword(arg=str(name), value=ast.Constant(value=str(found))):
            pairs = [(name, found)]
        case _:
            pairs = []
    yield from (found for name, found in pairs if len(found) >= secrets.SHORTEST and secrets.is_secret(name))


def _digest(node: FunctionNode, template: Template) -> str:
    """Of what is written in a function, its defaults aside: another name for a variable is no change."""
    names = [[slot.name, *slot.attributes] for slot in template.slots]
    decorators = [] if isinstance(node, ast.Lambda) else [ast.dump(part) for part in node.decorator_list]
    return digest([numbered(template.tree), names, decorators], keywords=None)


def _label(call: FunctionType) -> str:
    if decorated_by(call) is not None:  # as people call the decorator
        return f"{call.__code__.co_qualname.partition('.<locals>')[0]}()"
    name = call.__qualname__.replace("<locals>.", "")
    if call.__name__ == "<lambda>":
        around = name.rpartition(".")[0]
        return f"lambda in {around}()" if around else "lambda"
    return f"{name}()"


def _source(node: FunctionNode, text: SourceText) -> str:
    if isinstance(node, ast.Lambda):
        return ast.get_source_segment(text.text, node) or ""
    lines = text.text.splitlines()[_first_line(node) - 1 : node.end_lineno]
    return textwrap.dedent("\n".join(lines))


def _first_line(node: ast.AST) -> int:
    decorators = getattr(node, "decorator_list", None)
    return int(decorators[0].lineno if decorators else getattr(node, "lineno", 0))


def _is_docstring(part: ast.stmt) -> bool:
    return isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant) and isinstance(part.value.value, str)
