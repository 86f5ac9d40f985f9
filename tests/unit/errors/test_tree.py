"""The tree of errors: one root, and a hint for everything that a caller sees."""

from __future__ import annotations

import ast
import inspect
import pickle
from pathlib import Path

import pytest

import everstate
from everstate import errors
from everstate.errors import EverstateError, RecordError
from everstate.location import Location

SOURCES = sorted(Path(everstate.__file__).parent.rglob("*.py"))
KINDS = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, EverstateError)
}


def raised_without_hint(path: Path) -> list[str]:
    """The places where an error is made without a hint, and its class has none for all of its kind.

    Errors of single records are left out: their messages are the reasons of dead letters, and the hint comes from where
    the record is named.
    """
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        name = getattr(node.func, "id", getattr(node.func, "attr", "")) if isinstance(node, ast.Call) else ""
        kind = KINDS.get(name)
        if kind is None or kind.cure or issubclass(kind, RecordError):
            continue
        if kind.__init__ is not EverstateError.__init__:
            continue  # it makes its hint itself, as the next test says
        if not any(keyword.arg in {"hint", None} for keyword in node.keywords):
            found.append(f"{path.name}:{node.lineno}: {name}")
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_error_that_is_raised_has_a_hint(path) -> None:
    assert raised_without_hint(path) == []


def test_errors_that_make_their_message_make_their_hint() -> None:
    own = [kind for kind in KINDS.values() if kind.__init__ is not EverstateError.__init__]
    given = {"column": "x", "available": ["a"], "topic": "orders"}
    for kind in own:
        names = [p for p, q in inspect.signature(kind).parameters.items() if q.default is q.empty]
        assert kind(**{name: given.get(name, "x") for name in names}).hint, kind


def test_search_for_errors_without_a_hint_finds_one(tmp_path) -> None:
    (tmp_path / "x.py").write_text("raise SchemaError('no hint')\nraise SchemaError('one', hint='two')\n")
    assert raised_without_hint(tmp_path / "x.py") == ["x.py:1: SchemaError"]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_error_has_a_place_in_the_tree_and_says_when_it_occurs(kind) -> None:
    assert kind.__doc__
    assert kind.__name__ in (errors.__doc__ or "")
    assert kind.__name__.endswith("Error")


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_error_is_the_same_after_pickling(kind) -> None:
    error: EverstateError = kind.__new__(kind)
    EverstateError.__init__(error, "what failed", location=Location("a.py", 3), hint="what to do")
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy)) == (kind, "what failed (a.py:3)\n  what to do")


def test_every_error_is_listed_in_the_reference() -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "errors.md").read_text()
    assert [name for name in KINDS if f"`{name}`" not in page and name != "EverstateError"] == []
