"""The user's code through pickle: the same afterwards, and nothing of this process is changed by it."""

from __future__ import annotations

import dataclasses
import enum
import importlib.util
import sys

import pytest

from everstate.engine.query.by_value import pickled, unpickled
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
