"""From compiled code to its syntax: what a file says counts only if it compiles to just that code.

A file may have been edited since it was loaded, and a line may hold several lambdas. So the statement that a function
is in is compiled again and compared with the code at hand; positions in the code tell lambdas of one line apart.
"""

from __future__ import annotations
import __future__

import ast
import linecache
from dataclasses import dataclass, field
from functools import wraps
from types import CodeType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
T = TypeVar("T")

_FUTURES: Final = sum({getattr(__future__, name).compiler_flag for name in __future__.all_feature_names})
#: Added to the lines of a candidate, so that its code can be told from others in what was compiled.
_MARK: Final = 1_000_000
#: What pytest puts into the functions whose asserts it rewrites; they compile to nothing that the file says.
_REWRITTEN: Final = "@py"


@dataclass(frozen=True, eq=False)
class Candidate:
    """A function in a file.

    Attributes:
        node: Its syntax.
        statement: The statement at the top of the file that it is in.
    """

    node: FunctionNode
    statement: ast.stmt

    @property
    def name(self) -> str:
        """As its code calls itself."""
        return "<lambda>" if isinstance(self.node, ast.Lambda) else self.node.name

    @property
    def line(self) -> int:
        """The first line of its code."""
        if not isinstance(self.node, ast.Lambda) and self.node.decorator_list:
            return self.node.decorator_list[0].lineno
        return self.node.lineno


@dataclass(eq=False)
class SourceText:
    """A file's text as syntax, with what its statements compile to.

    Attributes:
        file: Where it is.
        text: The text.
        candidates: The functions in it.
        imports: The imports outside of functions.
        rebound: Names that functions declare `global` or `nonlocal`.
        body: The statements at its top.
    """

    file: str
    text: str
    body: list[ast.stmt] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)
    imports: list[ast.stmt] = field(default_factory=list)
    rebound: set[str] = field(default_factory=set)
    names: dict[str, tuple[str, str]] | None = None
    _compiled: dict[tuple[int, int], list[CodeType]] = field(default_factory=dict)

    @classmethod
    def of(cls, file: str, text: str) -> SourceText | None:
        """Parse a text; None if it is not Python."""
        try:
            module = ast.parse(text)
        except (SyntaxError, ValueError):
            return None
        found = cls(file, text, module.body, imports=_imports(module.body))
        for statement in module.body:
            for node in ast.walk(statement):
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                    found.candidates.append(Candidate(node, statement))
                elif isinstance(node, (ast.Global, ast.Nonlocal)):
                    found.rebound.update(node.names)
        return found

    def find(self, code: CodeType) -> FunctionNode | None:
        """The function that compiles to this code; None if there is none."""
        named = [candidate for candidate in self.candidates if candidate.name == code.co_name]
        here = [candidate for candidate in named if candidate.line == code.co_firstlineno]
        if len(here) > 1:
            here = self._placed(here, code)
        if len(here) == 1 and (_is_rewritten(code) or self._compiles_to(here[0], code)):
            return here[0].node
        for candidate in [*here, *(other for other in named if other not in here)]:
            if self._compiles_marked(candidate, code):
                return candidate.node
        return None

    def _placed(self, candidates: list[Candidate], code: CodeType) -> list[Candidate]:
        """Those whose result stands where the code says that it does; all of them if it does not say."""
        spans = set(code.co_positions())
        placed = [candidate for candidate in candidates if _span(candidate.node) in spans]
        return placed or candidates

    def _compiles_to(self, candidate: Candidate, code: CodeType) -> bool:
        return any(
            part.co_firstlineno == candidate.line and part.co_name == candidate.name and same(part, code)
            for part in self._codes(candidate.statement, code.co_flags & _FUTURES)
        )

    def _compiles_marked(self, candidate: Candidate, code: CodeType) -> bool:
        ast.increment_lineno(candidate.node, _MARK)
        try:
            parts = self._compile(candidate.statement, code.co_flags & _FUTURES)
        finally:
            ast.increment_lineno(candidate.node, -_MARK)
        marked = (part for part in parts if part.co_firstlineno >= _MARK and part.co_name == candidate.name)
        return any(same(part, code) for part in marked)

    def _codes(self, statement: ast.stmt, flags: int) -> list[CodeType]:
        place = (statement.lineno, flags)
        if place not in self._compiled:
            self._compiled[place] = self._compile(statement, flags)
        return self._compiled[place]

    def _compile(self, statement: ast.stmt, flags: int) -> list[CodeType]:
        # With the imports, since the compiler calls what is imported in another way than methods of objects.
        module = ast.Module([*self.imports, statement], [])
        try:
            whole = compile(module, self.file, "exec", flags=flags, dont_inherit=True)
        except (SyntaxError, ValueError):
            return []
        found, waiting = [], [whole]
        while waiting:
            code = waiting.pop()
            found.append(code)
            waiting.extend(part for part in code.co_consts if isinstance(part, CodeType))
        return found


_texts: dict[str, SourceText | None] = {}
_found: dict[tuple[int, str], tuple[CodeType, FunctionNode, SourceText]] = {}


def syntax_of(code: CodeType, names: dict[str, Any]) -> FunctionNode | None:
    """The syntax of a function, by its code and globals; None if no source compiles to it."""
    found = source_of(code, names)
    return None if found is None else found[0]


def source_of(code: CodeType, names: dict[str, Any]) -> tuple[FunctionNode, SourceText] | None:
    """The syntax of a function with the text that it stands in; None if no source compiles to it."""
    place = (id(code), code.co_filename)
    if place not in _found:
        for text in _readings(code.co_filename, names):
            node = text.find(code)
            if node is not None:
                _found[place] = (code, node, text)  # holding the code keeps its id from being given to another
                break
        else:
            return None
    return _found[place][1:]


def text_of(file: str, names: dict[str, Any]) -> SourceText | None:
    """The text of a file as it was first read; None if there is none, or it is not Python."""
    return _texts.get(file) or next(_readings(file, names), None)


def rebound_names(file: str, names: dict[str, Any]) -> set[str] | None:
    """Names that functions of a file declare `global` or `nonlocal`, so that they may change; None without a text."""
    known = text_of(file, names)
    return None if known is None else known.rebound


def imports_of(file: str) -> dict[str, tuple[str, str]]:
    """What a file imports by `from ... import`, at its top: the module and the name in it, by the name it gets."""
    text = _texts.get(file)
    if text is None:
        return {}
    if text.names is None:
        text.names = {
            alias.asname or alias.name: (node.module or "", alias.name)
            for node in text.imports
            if isinstance(node, ast.ImportFrom) and not node.level
            for alias in node.names
        }
    return text.names


def once(look: Callable[[FunctionNode], T]) -> Callable[[FunctionNode], T]:
    """Look at the syntax of each function only once: it stays as it is, and every part that reaches it asks."""
    known: dict[int, tuple[FunctionNode, T]] = {}

    @wraps(look)
    def found(node: FunctionNode) -> T:
        if id(node) not in known:
            known[id(node)] = (node, look(node))  # holding the node keeps its id from being given to another
        return known[id(node)][1]

    return found


def _readings(file: str, names: dict[str, Any]) -> Iterator[SourceText]:
    """The text as it was read before, then as it is now."""
    for fresh in (False, True):
        if fresh:
            linecache.checkcache(file)
        text = "".join(linecache.getlines(file, names))
        known = _texts.get(file)
        if known is None or known.text != text:
            known = _texts[file] = SourceText.of(file, text) if text else None
            if known is not None:
                yield known
        elif not fresh:
            yield known


def _imports(body: list[ast.stmt]) -> list[ast.stmt]:
    """The imports at the top of a file, those in its branches included."""
    found: list[ast.stmt] = []
    waiting: list[ast.AST] = list(reversed(body))
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)) and getattr(node, "module", "") != "__future__":
            found.append(node)
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.expr)):
            waiting.extend(reversed(list(ast.iter_child_nodes(node))))
    return found


def _span(node: FunctionNode) -> tuple[int | None, int | None, int | None, int | None]:
    """Where a lambda's result stands; where a function's first statement does."""
    body = node.body if isinstance(node, ast.Lambda) else node.body[0]
    return body.lineno, body.end_lineno, body.col_offset, body.end_col_offset


def _is_rewritten(code: CodeType) -> bool:
    return any(name.startswith(_REWRITTEN) for name in (*code.co_names, *code.co_varnames))


def same(one: CodeType, other: CodeType) -> bool:
    """Whether two codes do the same, wherever they stand."""
    return (
        one.co_code == other.co_code
        and one.co_names == other.co_names
        and one.co_varnames == other.co_varnames
        and one.co_freevars == other.co_freevars
        and one.co_cellvars == other.co_cellvars
        and one.co_flags == other.co_flags
        and _signature(one) == _signature(other)
        and len(one.co_consts) == len(other.co_consts)
        and all(map(_same_constant, one.co_consts, other.co_consts))
    )


def _signature(code: CodeType) -> tuple[int, int, int]:
    return code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount


def _same_constant(one: object, other: object) -> bool:
    if isinstance(one, CodeType) and isinstance(other, CodeType):
        return same(one, other)
    if isinstance(one, frozenset) and isinstance(other, frozenset):
        return sorted(map(repr, one)) == sorted(map(repr, other))  # their order differs between processes
    return type(one) is type(other) and repr(one) == repr(other)  # by repr, so that 0.0 is not -0.0
