"""Polars expressions as trees, by their structure.

Polars writes an expression as JSON, in a form that is its own and changes from version to version. Here it is brought
into one form: fields that are off or empty are as good as not there, what was renamed gets its present name, and
literals count by type and value.
"""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from everstate.errors import FingerprintError
from everstate.fingerprints.outside.distributions import owner_of
from everstate.fingerprints.tree import Tree, atom

if TYPE_CHECKING:
    from collections.abc import Callable

    from everstate.location import Location

#: What `str` of an expression calls numbers that JSON does not have.
_NOT_FINITE: Final = re.compile(r"NaN|-?inf\b")
_LITERALS: Final = frozenset({"Dyn", "Scalar", "Series", "Range"})
_FROZEN: Final = frozenset({"List", "Array", "Struct", "Enum", "Categorical", "Binary", "BinaryOwned"})
#: How the bytes of a pickled function begin, in every version of the protocol.
_PICKLE: Final = re.compile(rb"\x80[\x02-\x05]")
_PYTHON: Final = "Use a plain function instead, map(fn) or filter(fn): its code can be compared."


def expression(given: pl.Expr, location: Location | None = None, reached: Callable[[str], None] | None = None) -> Tree:
    """The tree of an expression.

    Args:
        given: The expression.
        location: Where the user wrote it.
        reached: Is told the distribution of each plugin in it.

    Raises:
        FingerprintError: If there is a Python function in it.
    """
    try:
        written = json.loads(given.meta.serialize(format="json"))
    except (pl.exceptions.PolarsError, ValueError, TypeError):
        raise _holds_python(str(given), location) from None
    return canonical(written, str(given), location, reached)


def canonical(
    written: Any, text: str, location: Location | None = None, reached: Callable[[str], None] | None = None
) -> Tree:
    """The tree of an expression that some version of Polars has written as JSON and as text."""
    reading = _Reading(text, location, reached)
    tree = reading.tree(written)
    # JSON writes NaN and both infinities as null; the expression's text tells which they were, in their order.
    return [tree, _NOT_FINITE.findall(text)] if reading.not_finite else tree


class _Reading:
    def __init__(self, text: str, location: Location | None, reached: Callable[[str], None] | None) -> None:
        self.not_finite = False
        self._text = text
        self._location = location
        self._reached = reached

    def tree(self, part: Any) -> Tree:
        if isinstance(part, dict):
            return self._node(part)
        if isinstance(part, list):
            return self._list(part)
        return "null" if part is None else atom(part)

    def _node(self, part: dict[str, Any]) -> Tree:
        if len(part) == 1:
            ((name, body),) = part.items()
            if name == "Literal" and isinstance(body, dict) and _LITERALS.intersection(body):
                return self._literal(body)
            if name.startswith("Anonymous") or "Python" in name:
                raise _holds_python(self._text, self._location)
            if name == "FfiPlugin":
                return self._plugin(body)
            name, body = _present(name, body)
            return [name, self.tree(body)]
        return [[name, self.tree(body)] for name, body in sorted(part.items()) if not _is_off(body)]

    def _list(self, parts: list[Any]) -> Tree:
        if _is_pickled(parts):
            raise _holds_python(self._text, self._location)
        return [self.tree(part) for part in parts]

    def _literal(self, body: dict[str, Any]) -> Tree:
        ((form, content),) = body.items()
        if form == "Series" or (isinstance(content, dict) and _FROZEN.intersection(content)):
            return self._frozen(body)
        if not isinstance(content, dict) or len(content) != 1:
            return ["literal", form, self.tree(content)]
        ((kind, value),) = content.items()
        if kind.startswith("Float") and value is None:
            self.not_finite = True
        prefix = "any " if form == "Dyn" else ""
        return ["literal", prefix + kind, self.tree(value)]

    def _frozen(self, body: dict[str, Any]) -> Tree:
        """A list or series, which is written as bytes in a format of Polars' own."""
        ((form, content),) = body.items()
        if isinstance(content, dict) and {"Binary", "BinaryOwned"} & set(content):
            ((_, value),) = content.items()
            return ["literal", "Binary", atom(bytes(value))]
        literal = pl.Expr.deserialize(io.StringIO(json.dumps({"Literal": body})), format="json")
        series = pl.select(literal).to_series()
        return ["literal", form, str(series.dtype), _plain(series.to_list())]

    def _plugin(self, body: dict[str, Any]) -> Tree:
        library = Path(str(body.get("lib", "")))
        package = owner_of(library.resolve()) if "site-packages" in library.parts else None
        if package is None:
            raise FingerprintError(
                f"the version of {library.name} that this expression uses is not known",
                location=self._location,
                hint="Install the plugin as a package, so that it has a version.",
            )
        if self._reached is not None:
            self._reached(package)
        return ["plugin", package, str(body.get("symbol")), atom(bytes(body.get("kwargs") or []))]


def _present(name: str, body: Any) -> tuple[str, Any]:
    """A node of an earlier version of Polars as the present one writes it."""
    if name == "Agg" and isinstance(body, dict) and "Quantile" in body:
        old = body["Quantile"]
        return "Function", {
            "input": [old["expr"], old["quantile"]],
            "function": {"Quantile": {"method": old["method"]}},
        }
    if name == "Implode" and not (isinstance(body, dict) and "maintain_order" in body):
        return name, {"input": body, "maintain_order": True}
    if name == "Window" and isinstance(body, dict) and "Over" in body.get("options", {}):
        rest = {field: value for field, value in body.items() if field != "options"}
        return "Over", {**rest, "mapping": body["options"]["Over"]}
    if name == "Reinterpret" and isinstance(body, bool):
        return name, [body, None]
    return name, body


def _is_off(body: Any) -> bool:
    return body is None or body is False


def _is_pickled(part: list[Any]) -> bool:
    if len(part) < 8 or not all(type(item) is int and 0 <= item < 256 for item in part):
        return False
    return _PICKLE.search(bytes(part)) is not None


def _plain(value: Any) -> Tree:
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return [[name, _plain(part)] for name, part in value.items()]
    leaf = atom(value)
    return leaf if leaf is not None else repr(value)


def _holds_python(text: str, location: Location | None) -> FingerprintError:
    return FingerprintError(
        f"this expression holds a Python function: {text if len(text) <= 200 else text[:200] + '...'}",
        location=location,
        hint=_PYTHON,
    )
