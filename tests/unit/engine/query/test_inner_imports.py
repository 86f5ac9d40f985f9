"""Modules of the user's that functions import when they run: in workers, in archives, and in plans."""

from __future__ import annotations

import importlib
import sys

import pytest

from everstate.engine.query.by_value import pickled, unpickled
from everstate.errors import DefinitionError, FingerprintError
from everstate.fingerprints.outputs import print_unit

SERVICE = """
import everstate as es

{function}

app = es.Service("trips")
app.stream("trips", schema={{"minutes": float}}).filter(keep).to("late")
"""
FILES = {
    "inner_rules.py": "from inner_limits import LATE\ndef is_late(row):\n    return row['minutes'] > LATE\n",
    "inner_limits.py": "LATE = 15.0\n",
    "inner_late.py": "def is_late(row):\n    import inner_limits\n    return row['minutes'] > inner_limits.LATE\n",
    "inner_shop/__init__.py": "FACTOR = 1.0\n",
    "inner_shop/rules.py": "from . import FACTOR\nLATE = 15.0\n",
    "inner_spread/rules.py": "LATE = 15.0\n",
    "inner_locked.py": "import threading\nLOCK = threading.Lock()\nLATE = 15.0\n",
}
WAYS = {
    "a name": "from inner_rules import is_late\n    return is_late(row)",
    "a name under another": "from inner_rules import is_late as found\n    return found(row)",
    "a module": "import inner_rules\n    return inner_rules.is_late(row)",
    "a module under another name": "import inner_shop.rules as rules\n    return row['minutes'] > rules.LATE",
    "a module of a package": "import inner_shop.rules\n    return row['minutes'] > inner_shop.rules.LATE",
    "a package beside its module": (
        "import inner_shop.rules\n    return row['minutes'] * inner_shop.FACTOR > inner_shop.rules.LATE"
    ),
    "a module from its package": "from inner_shop import rules\n    return row['minutes'] > rules.LATE",
    "a module from a package without a file": "from inner_spread import rules\n    return row['minutes'] > rules.LATE",
    "a module that imports inside of a function, too": "from inner_late import is_late\n    return is_late(row)",
    "inside of an inner function": (
        "def inner():\n        from inner_rules import is_late\n        return is_late(row)\n    return inner()"
    ),
    "what may be missing": (
        "try:\n        import inner_nowhere\n    except ImportError:\n        import inner_limits as inner_nowhere\n"
        "    return row['minutes'] > inner_nowhere.LATE"
    ),
    "one of Python's": "import math\n    return row['minutes'] > math.sqrt(225)",
    "a name of a module that has a lock": "from inner_locked import LATE\n    return row['minutes'] > LATE",
    "a module that has a lock": "import inner_locked\n    return row['minutes'] > inner_locked.LATE",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the user's modules, from which they are imported; forgotten afterwards."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # files change within the second that bytecode is dated by
    yield tmp_path
    forget()


def forget():
    for name in [name for name in sys.modules if name.startswith("inner_")]:
        del sys.modules[name]
    importlib.invalidate_caches()


def unit_of(folder, body):
    (folder / "inner_service.py").write_text(SERVICE.format(function=f"def keep(row) -> bool:\n    {body}"))
    forget()
    (unit,) = importlib.import_module("inner_service").app.units()
    return unit


def keeps(unit):
    (call,) = [node.predicate.call for node in unit.nodes if hasattr(node, "predicate")]
    return [call({"minutes": minutes}) for minutes in (10.0, 20.0, 40.0)]


def fingerprint(unit):
    return print_unit(unit, policy="fail", settings={}).fingerprint


@pytest.mark.parametrize("way", WAYS)
def test_function_that_imports_runs_where_its_modules_are_not(folder, way, monkeypatch):
    payload = pickled(unit_of(folder, WAYS[way]))
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != str(folder)])
    forget()
    assert keeps(unpickled(payload)) == [False, True, True]
    assert not [name for name in sys.modules if name.startswith("inner_")]


@pytest.mark.parametrize("way", ["a name", "a module of a package", "a module that imports inside of a function, too"])
def test_function_from_an_archive_keeps_its_modules_beside_newer_ones(folder, way):
    older = unpickled(pickled(unit_of(folder, WAYS[way])))
    for name in ("inner_limits.py", "inner_shop/rules.py"):
        (folder / name).write_text(FILES[name].replace("15.0", "30.0"))
    newer = unit_of(folder, WAYS[way])
    assert keeps(newer) == keeps(unpickled(pickled(newer))) == [False, False, True]
    assert keeps(older) == [False, True, True]
    assert keeps(unpickled(pickled(older))) == [False, True, True], "the version that runs is sent to workers, too"


@pytest.mark.parametrize("way", [way for way in WAYS if way not in ("one of Python's", "what may be missing")])
def test_change_in_a_module_that_a_function_imports_is_seen(folder, way):
    before = fingerprint(unit_of(folder, WAYS[way]))
    assert fingerprint(unit_of(folder, WAYS[way])) == before
    for name in FILES:
        (folder / name).write_text((folder / name).read_text().replace("15.0", "30.0"))
    assert fingerprint(unit_of(folder, WAYS[way])) != before


def test_name_that_cannot_be_written_is_refused_with_its_module_at_its_line(folder):
    unit = unit_of(folder, "from inner_locked import LOCK\n    return bool(LOCK)")
    with pytest.raises(DefinitionError, match="what a function imports from 'inner_locked' cannot be sent") as told:
        pickled(unit)
    assert str(told.value.location).endswith("inner_service.py:5")
    assert told.value.hint == "Make such an object inside of the function that uses it, from plain values."


def test_module_that_is_not_there_is_refused_at_its_line(folder):
    with pytest.raises(FingerprintError, match="inner_nowhere") as told:
        fingerprint(unit_of(folder, "from inner_nowhere import is_late\n    return is_late(row)"))
    assert str(told.value.location).endswith("inner_service.py:6")


def test_module_whose_name_is_made_up_at_run_time_is_refused_at_its_line(folder):
    body = "import importlib\n    return importlib.import_module('inner_rules').is_late(row)"
    with pytest.raises(FingerprintError, match="importlib") as told:
        fingerprint(unit_of(folder, body))
    assert str(told.value.location).endswith("inner_service.py:6")
