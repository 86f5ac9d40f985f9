"""An operation is written once: whoever adds one is told here what it still lacks."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

import everstate
from everstate.dsl.grouped import Grouped
from everstate.dsl.service import Service
from everstate.dsl.stream import Stream
from everstate.dsl.table import Table
from everstate.kernels.operations.kernel import EndKernel, RowKernel, StateKernel
from everstate.kernels.operations.kernels import KERNELS
from everstate.topology import nodes
from everstate.topology.nodes import Node
from everstate.topology.traits import Traits
from tests import equivalence

PACKAGE = Path(everstate.__file__).parent
ROOT = PACKAGE.parents[1]
REFERENCE = (ROOT / "docs" / "reference" / "operations.md").read_text()
COMMANDS = (ROOT / "docs" / "reference" / "commands.md").read_text()
#: What runs in a test what a command runs.
RUN_BY = {"tombstone": ["remove_quiet"]}
#: Classes that code archived by the first versions names as those of the package, not of a module in it.
OF_THE_PACKAGE = [
    "Aggregate",
    "Filter",
    "FlatMap",
    "Fold",
    "ForeignJoin",
    "Grouping",
    "Join",
    "Keying",
    "Kind",
    "Latest",
    "Map",
    "Merge",
    "Node",
    "Output",
    "Peek",
    "Project",
    "RekeyStream",
    "RekeyTable",
    "Source",
    "Stateful",
]


def subclasses(kind):
    return [found for one in kind.__subclasses__() for found in (one, *subclasses(one))]


OPERATIONS = [kind for kind in subclasses(Node) if kind.operation and kind.__module__.startswith("everstate.")]
NAMES = {kind.__name__ for kind in (Node, *subclasses(Node)) if kind.__module__.startswith("everstate.")}
each = pytest.mark.parametrize("kind", OPERATIONS, ids=lambda kind: kind.__name__)


def proven():
    found = {}
    for path in Path(equivalence.__file__).parent.glob("test_*.py"):
        module = importlib.import_module(f"tests.equivalence.{path.stem}")
        for kind in getattr(module, "PROVES", ()):
            found.setdefault(kind, []).append(path.read_text())
    return found


@each
def test_operation_says_itself_what_it_is(kind):
    assert isinstance(vars(kind)["traits"], Traits)
    assert vars(kind)["operation"]
    assert bool(vars(kind).get("methods")) != bool(vars(kind).get("command"))


def test_node_classes_are_found_under_the_names_that_archived_code_has():
    assert [name for name in OF_THE_PACKAGE if not hasattr(nodes, name)] == []


@each
def test_operation_has_a_kernel_that_does_what_its_traits_promise(kind):
    kernel, traits = KERNELS[kind], kind.traits
    assert isinstance(kernel, StateKernel) == traits.keeps_state
    assert isinstance(kernel, RowKernel) == (not traits.on_shard)
    assert isinstance(kernel, EndKernel) == (traits.on_shard and not traits.keeps_state)
    if isinstance(kernel, StateKernel):
        assert (kernel.table is not None) == traits.holds_results
        assert (kernel.contents is not None) == (kernel.shown is not None) == traits.own_state
        assert (kernel.convert is not None) == traits.converts
        assert (kernel.fill is not None) == (traits.fills_defaults and not traits.own_state)
        assert kernel.prepare is not StateKernel.prepare or not traits.rekeys_input


def test_kernels_are_those_of_the_operations():
    assert set(KERNELS) == set(OPERATIONS)


@each
def test_operation_that_regroups_says_by_what(kind):
    assert ("regrouping" in {name for base in kind.__mro__[:-2] for name in vars(base)}) == kind.traits.regroups
    assert kind.traits.regroups or not kind.traits.rekeys_input


@each
def test_operation_can_be_typed_and_is_in_the_reference(kind):
    if kind.command:
        assert f"| `everstate {kind.command} " in COMMANDS
    for method in kind.methods:
        assert any(hasattr(flow, method) for flow in (Service, Stream, Table, Grouped)), method
        assert re.search(rf"^\|.*`(app|)\.?{method}\(", REFERENCE, re.MULTILINE), method


@each
def test_operation_is_proven_against_an_oracle(kind):
    texts = proven().get(kind, [])
    assert texts, "no module of tests/equivalence names it in PROVES"
    assert any(f".{method}(" in text for method in (*kind.methods, *RUN_BY.get(kind.command, ())) for text in texts)


def told_apart(tree):
    """Where a module asks for the class of a node."""
    imported = {
        alias.asname or alias.name
        for part in ast.walk(tree)
        if isinstance(part, ast.ImportFrom) and (part.module or "").startswith("everstate.topology")
        for alias in part.names
    }

    def names(part):
        return {
            found.id if isinstance(found, ast.Name) else found.attr
            for found in ast.walk(part)
            if (isinstance(found, ast.Name) and found.id in imported)
            or (isinstance(found, ast.Attribute) and isinstance(found.value, ast.Name) and found.value.id in imported)
        } & NAMES

    for part in ast.walk(tree):
        if isinstance(part, ast.Call) and getattr(part.func, "id", "") in {"isinstance", "issubclass"}:
            yield from names(part.args[1])
        elif isinstance(part, ast.MatchClass):
            yield from names(part.cls)
        elif isinstance(part, ast.Compare) and any(
            getattr(getattr(c, "func", c), "id", "") == "type" for c in [part.left]
        ):
            yield from (name for other in part.comparators for name in names(other))


def test_told_apart_sees_every_way_to_ask_for_a_class():
    asked = """
from everstate.topology import nodes
from everstate.topology.nodes import Fold, Join, Latest as Kept, Map
isinstance(node, (Fold, nodes.Merge))
type(node) is Map
match node:
    case Join(): pass
isinstance(node, Source)
"""
    assert sorted(told_apart(ast.parse(asked))) == ["Fold", "Join", "Map", "Merge"]


def test_node_classes_are_told_apart_nowhere():
    found = {
        str(path.relative_to(PACKAGE)): sorted(names)
        for path in PACKAGE.rglob("*.py")
        if (names := set(told_apart(ast.parse(path.read_text()))))
    }
    assert found == {}
