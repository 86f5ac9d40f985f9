"""What code reads of names and texts that otherwise say nothing: a function's name, a docstring, an annotation.

Renaming a function changes no result, unless something looks at the name. What is looked at can rarely be told, so
where anything does, the names of all that is reached count. The same goes for docstrings, annotations, the names of
parameters, the order of members and the list of subclasses; where lines and files are read, there is nothing to
compare.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from everstate.errors import FingerprintError
from everstate.fingerprints.code.sources import once
from everstate.fingerprints.outside.effects import Effect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everstate.fingerprints.code.scopes import Function

_NOTHING: Final = frozenset[str]()
_SIGNATURE: Final = frozenset({"signatures", "hints"})
_ALL: Final = frozenset({"names", "class names", "modules", "class modules", "docs", "hints", "signatures", "order"})
_NAMES: Final = frozenset({"names", "class names"})
_MODULES: Final = frozenset({"modules", "class modules"})
_PLACE: Final = frozenset({"places"})
_PLACES: Final = """
    co_filename co_firstlineno co_code co_lines co_positions co_consts co_names co_lnotab co_linetable co_cellvars
    co_freevars co_stacksize co_nlocals co_exceptiontable tb_lineno tb_frame tb_lasti gi_frame gi_code cr_frame cr_code
    ag_frame ag_code __firstlineno__ __static_attributes__
"""
_LOOKING_AT_PLACES: Final = """
    inspect.getsource inspect.currentframe inspect.stack inspect.trace inspect.getframeinfo inspect.getouterframes
    inspect.getinnerframes inspect.getfile inspect.getabsfile inspect.findsource inspect.getlineno inspect.getcomments
    inspect.getblock sys._getframe sys._current_frames traceback.format traceback.extract traceback.TracebackException
    traceback.StackSummary traceback.walk dis
"""
#: What is read with an attribute.
_ATTRIBUTES: Final[dict[str, frozenset[str]]] = {
    "__name__": _NAMES,
    "__qualname__": _NAMES,
    "__module__": _MODULES,
    "__doc__": frozenset({"docs"}),
    "__annotations__": frozenset({"hints"}),
    "__signature__": _SIGNATURE,
    "__text_signature__": _SIGNATURE,
    "__code__": _NAMES | _SIGNATURE,
    "__dict__": _ALL - _SIGNATURE,
    "__getattribute__": _ALL,
    "__subclasses__": frozenset({"subclasses"}),
    "__class__": frozenset({"types"}),
    "__mro__": frozenset({"types"}),
    "__bases__": frozenset({"types"}),
    "__base__": frozenset({"types"}),
    "model_json_schema": _ALL,
    "json_schema": _ALL,
    "co_name": _NAMES,
    "co_qualname": _NAMES,
    **dict.fromkeys(("co_varnames", "co_argcount", "co_kwonlyargcount", "co_posonlyargcount", "co_flags"), _SIGNATURE),
    **dict.fromkeys(_PLACES.split(), _PLACE),
}
#: What is read by a function of Python's; a name stands for everything that begins so, and the longest one wins.
_OUTSIDERS: Final[dict[str, frozenset[str]]] = {
    "builtins.str": frozenset({"formats"}),
    "builtins.repr": frozenset({"formats"}),
    "builtins.format": frozenset({"formats"}),
    "builtins.ascii": frozenset({"formats"}),
    "builtins.print": frozenset({"formats"}),
    "builtins.type": frozenset({"types"}),
    "builtins.type.__subclasses__": frozenset({"subclasses"}),
    "builtins.vars": _ALL - _SIGNATURE,
    "builtins.dir": frozenset({"order"}),
    "builtins.help": _ALL,
    **dict.fromkeys(("pprint", "reprlib", "string", "logging", "csv"), frozenset({"formats"})),
    **dict.fromkeys(("pickle", "copyreg", "marshal", "shelve"), _NAMES | _MODULES),
    "pydoc": _ALL,
    "typing.get_type_hints": frozenset({"hints"}),
    "annotationlib": frozenset({"hints"}),
    "inspect": _ALL,
    "inspect.is": frozenset(),
    "inspect.cleandoc": frozenset(),
    "inspect.unwrap": frozenset(),
    "inspect.getdoc": frozenset({"docs"}),
    "inspect.get_annotations": frozenset({"hints"}),
    "inspect.signature": _SIGNATURE,
    "inspect.getfullargspec": _SIGNATURE,
    "inspect.getcallargs": _SIGNATURE,
    **dict.fromkeys(_LOOKING_AT_PLACES.split(), _PLACE),
}
_NAMED_TEXT: Final = re.compile(r"__[a-z_]+?__|\b(?:co|tb)_[a-z]+\b")
_GETTERS: Final = frozenset({"getattr", "attrgetter"})


@dataclass(frozen=True)
class Place(Effect):
    """Something that reads where code stands, or its text."""

    def refused(self) -> FingerprintError:
        """The error for it."""
        return FingerprintError(
            f"{self.name} reads the lines or the text of code, which change without any change of meaning",
            location=self.location,
            hint='Pass what it needs as a value, or declare which version it is: @es.declare(version="1")',
        )


def of_attribute(name: str) -> frozenset[str]:
    """What is read with an attribute of this name."""
    return _ATTRIBUTES.get(name, frozenset())


@cache
def of_outsider(dotted: str) -> frozenset[str]:
    """What a function that is not the user's reads."""
    begins = (dotted[:length] for length in range(len(dotted), 0, -1))
    return next((_OUTSIDERS[begin] for begin in begins if begin in _OUTSIDERS), frozenset())


def of_text(text: str) -> frozenset[str]:
    """What may be read with a text that names an attribute, as in `getattr(thing, "__name__")`."""
    if "_" not in text:
        return _NOTHING
    return _NOTHING.union(*(of_attribute(name) for name in _NAMED_TEXT.findall(text)))


@once
def of_function(node: Function) -> frozenset[str]:
    """What a function's own code, with its constants as literals, reads of anything that cannot be told."""
    bound = frozenset(_bound(node))
    return frozenset().union(*(_of_node(part, bound) for part in _parts(node)))


def inner(node: Function) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """The functions and classes that a function makes."""
    for part in ast.walk(node):
        if part is not node and isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield part


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """All of a function's syntax but docstrings and annotations."""
    waiting: list[ast.AST] = [node]
    while waiting:
        part = waiting.pop()
        yield part
        for name, value in ast.iter_fields(part):
            if name in ("annotation", "returns") or (isinstance(part, ast.Expr) and isinstance(value, ast.Constant)):
                continue
            waiting.extend(v for v in (value if isinstance(value, list) else [value]) if isinstance(v, ast.AST))


def _bound(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            yield part.id
        elif isinstance(part, ast.arg):
            yield part.arg
        elif isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler)) and part.name:
            yield part.name


def _of_node(node: ast.AST, bound: frozenset[str]) -> frozenset[str]:
    match node:
        case ast.Constant(value=str(text)):
            return of_text(text)
        case ast.Attribute(ctx=ast.Load(), attr=name, value=owner):
            return _of_attribute(name, owner, bound)
        case ast.FormattedValue(value=value):
            return _of_shown([value], bound)
        case ast.BinOp(op=ast.Mod(), right=right) if not _is_number(right):
            return _of_shown(right.elts if isinstance(right, ast.Tuple) else [right], bound)
        case ast.Call(func=func, args=args):
            return _of_call(func.id if isinstance(func, ast.Name) else getattr(func, "attr", ""), args, bound)
    return frozenset()


def _of_attribute(name: str, owner: ast.expr, bound: frozenset[str]) -> frozenset[str]:
    kinds = of_attribute(name)
    if not kinds or (isinstance(owner, ast.Name) and owner.id not in bound):
        return frozenset()  # what a name from outside stands for is known where it is looked up
    if name == "__dict__" and isinstance(owner, ast.Name) and owner.id == "self":
        return frozenset()
    if _is_class(owner) and kinds in (_NAMES, _MODULES):
        return kinds - {"names", "modules"}
    return kinds


def _is_class(node: ast.expr) -> bool:
    """`type(x)` or `x.__class__`."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "type"
    return isinstance(node, ast.Attribute) and node.attr == "__class__"


def _of_call(name: str, given: list[ast.expr], bound: frozenset[str]) -> frozenset[str]:
    if name in ("str", "repr", "ascii", "print", "format", "format_map"):
        return _of_shown(given, bound)
    if name in _GETTERS:
        wanted = given[1:2] if name == "getattr" else given
        return frozenset().union(*(_ALL | {"subclasses"} for part in wanted if not _is_told(part)))
    return frozenset()


def _of_shown(parts: list[ast.expr], bound: frozenset[str]) -> frozenset[str]:
    """What is put into a text; a name from outside may stand for a class."""
    outside = any(isinstance(part, ast.Name) and part.id not in bound for part in parts)
    return frozenset({"formats", "types"} if outside else {"formats"})


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not isinstance(node.value, (str, bytes))


def _is_told(node: ast.expr) -> bool:
    """Whether the name of an attribute is written out, or cannot be one of Python's."""
    if isinstance(node, ast.JoinedStr) and node.values:
        node = node.values[0]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mod)):
        node = node.left
    else:
        return isinstance(node, ast.Constant)
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value[:2] not in ("", "_", "__")
