"""The user's code through pickle: the same afterwards, and nothing of this process is changed by it."""

from __future__ import annotations

import dataclasses
import enum
import importlib.util
import sys

import pytest

from everstate.engine.query.by_value import pickled, unpickled
from everstate.errors import DefinitionError
from everstate.fingerprints.outputs import print_unit

MODULE = """
import dataclasses, enum
import everstate as es

@dataclasses.dataclass
class Rule:
    late: float
    note: str = "late"

    def is_late(self, row) -> bool:
        return row["minutes"] > self.late

class Kind(enum.Enum):
    CAR = "car"

RULE = Rule(15.0)

def keep(row) -> bool:
    return RULE.is_late(row) and Kind(row["kind"]) is Kind.CAR

app = es.Service("trips")
app.stream("trips", schema={"minutes": float, "kind": str}).filter(keep).to("late")
"""


@pytest.fixture
def module(tmp_path):
    file = tmp_path / "module_by_value.py"
    file.write_text(MODULE)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[file.stem]


def keep_of(unit):
    (found,) = [node.predicate.call for node in unit.nodes if hasattr(node, "predicate")]
    return found


def test_code_that_was_written_and_read_leaves_the_fingerprint_as_it_was(module):
    (unit,) = module.app.units()
    before = print_unit(unit, policy="fail", settings={}).fingerprint
    again = unpickled(pickled(unit))
    assert print_unit(unit, policy="fail", settings={}).fingerprint == before
    assert keep_of(again)({"minutes": 20.0, "kind": "car"}) is True
    assert keep_of(unit)({"minutes": 20.0, "kind": "car"}) is True


def test_classes_that_are_read_are_new_ones_and_those_of_the_process_stay(module):
    (unit,) = module.app.units()
    before = dict(vars(module.Rule)), dict(vars(module.Kind))
    payload = pickled(unit)
    # Python itself notes here which slots there are, as soon as an object is written.
    before[0]["__slotnames__"] = vars(module.Rule)["__slotnames__"]
    one, two = keep_of(unpickled(payload)), keep_of(unpickled(payload))
    assert dict(vars(module.Rule)) == before[0]
    assert dict(vars(module.Kind)) == before[1]
    kinds = {name.__globals__["Kind"] for name in (one, two)} | {module.Kind}
    assert len(kinds) == 3
    assert all(isinstance(kind, enum.EnumMeta) for kind in kinds)


def test_field_without_a_default_still_has_none(module):
    (unit,) = module.app.units()
    rule = keep_of(unpickled(pickled(unit))).__globals__["RULE"]
    late, note = dataclasses.fields(rule)
    assert late.default is dataclasses.MISSING
    assert note.default == "late"


#: What goes by its name with pickle, or not at all: a line of a module, and an expression that uses it.
WRAPPED = {
    "cached function": ("@functools.lru_cache\ndef f(x): return x * 7", "f(row['n'])"),
    "size of a cache": ("@functools.lru_cache(maxsize=3)\ndef f(x): return x", "f.cache_parameters()['maxsize']"),
    "recursive cached function": (
        "@functools.cache\ndef f(x): return x * f(x - 1) if x else 1",
        "f(row['n']) + f.cache_info().currsize",
    ),
    "cached method": ("class A:\n    @functools.cache\n    def f(self): return 4", "A().f()"),
    "cached property": ("class A:\n    @functools.cached_property\n    def f(self): return [5]", "A().f[0]"),
    "dispatch": (
        "@functools.singledispatch\ndef f(x): return 1\n@f.register\ndef _(x: int): return f('') + 1",
        "f(row['n'])",
    ),
    "dispatch on an own class": (
        "class A: pass\n@functools.singledispatch\ndef f(x): return 1\n@f.register\ndef _(x: A): return 2",
        "f(A()) * 10 + f(0)",
    ),
    "dispatch by method": (
        "class A:\n @functools.singledispatchmethod\n def f(self, x): return 1\n @f.register\n def _(self, x: int): 0",
        "A().f('') if A().f(0) is None else 0",
    ),
    "binary format": ("FORMAT = struct.Struct('<i')", "FORMAT.unpack(b'abcd')[0]"),
    "decoder": ("DECODER = json.JSONDecoder(parse_float=str)", "int(DECODER.decode('[\"1\"]')[0])"),
    "type of an annotation": ("N = typing.NewType('N', int)\ndef f(x: N) -> N: return N(x)", "f(row['n'])"),
    "parameters of a decorator": (
        "P = typing.ParamSpec('P')\ndef d(g: typing.Callable[P, int]): return g\n@d\ndef f(x): return x",
        "f(row['n'])",
    ),
}
LOADED = """
import contextvars, functools, json, sqlite3, struct, threading, typing
import everstate as es
{written}
def use(row): return {{"n": {expression}}}
app = es.Service("trips")
app.stream("trips", schema={{"n": int}}).map(use, schema={{"n": int}}).to("late")
"""


def through_pickle(tmp_path, source):
    """The function of a service after a way through bytes, where the module is gone, and what it gave before."""
    file = tmp_path / "module_elsewhere.py"
    file.write_text(source)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    try:
        spec.loader.exec_module(module)
        (unit,) = module.app.units()
        payload = pickled(unit)
        before = module.use({"n": 3})
    finally:
        del sys.modules[file.stem]
    (again,) = [node.fn.call for node in unpickled(payload).nodes if hasattr(node, "fn")]
    return again, before


@pytest.mark.parametrize(("written", "expression"), WRAPPED.values(), ids=list(WRAPPED))
def test_wrapper_that_pickle_cannot_write_or_writes_by_name_arrives(written, expression, tmp_path):
    again, before = through_pickle(tmp_path, LOADED.format(written=written, expression=expression))
    assert again({"n": 3}) == before


def test_module_with_a_lock_that_no_function_needs_arrives_without_it(tmp_path):
    (tmp_path / "rules_with_a_lock.py").write_text(
        "import sqlite3, threading\nLOCK = threading.Lock()\nOPEN = sqlite3.connect(':memory:')\nLATE = 4\n"
        "def locked():\n    with LOCK: return 1\n"
        "def late(x): return plus(x) + LATE\ndef plus(x): return x + 1\n"
    )
    sys.path.insert(0, str(tmp_path))
    try:
        source = LOADED.format(written="import rules_with_a_lock as rules", expression="rules.late(row['n'])")
        again, before = through_pickle(tmp_path, source)
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop("rules_with_a_lock", None)
    assert again({"n": 3}) == before == {"n": 8}
    assert not {"LOCK", "OPEN", "locked"} & set(vars(again.__globals__["rules"]))


def test_object_that_a_function_needs_and_nobody_can_write_is_a_named_error(tmp_path):
    source = LOADED.format(written="TOKEN = contextvars.ContextVar('n', default=1)", expression="TOKEN.get()")
    with pytest.raises(DefinitionError, match=r"the output late needs something .*module_elsewhere\.py:7") as caught:
        through_pickle(tmp_path, source)
    assert caught.value.hint
