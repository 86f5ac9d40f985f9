"""Values are told apart by all that code can see of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from everstate.errors import FingerprintError
from tests.unit.fingerprints import values
from tests.unit.fingerprints.pairs import fingerprint, module, outcome

#: What has no content that could be looked at.
REFUSED = {
    "comparison": ("functools.cmp_to_key(plus)", "KeyWrapper"),
    "reference": ("weakref.ref(plus)", "weakref"),
    "values by reference": ("weakref.WeakValueDictionary({1: plus})", "weakref"),
    "iterator": ("iter([1])", "used up"),
    "numbers that are counted": ("itertools.count()", "used up"),
    "zip": ("zip([1], [2])", "used up"),
    "view of a dict": ("{}.keys()", "dict_keys"),
    "view of memory": ("memoryview(b'a')", "memoryview"),
    "match": ("re.match('a', 'a')", "Match"),
    "code": ("plus.__code__", "code"),
    "code that was compiled": ("compile('1', 'x', 'eval')", "code"),
    "lock in an object": ("Thing(lock=__import__('threading').Lock())", "lock"),
    "object of C that hides its state": ("type('Own', (__import__('_thread')._local,), {})()", "Own|threading"),
}


def program(setup: str, *expressions: str) -> str:
    """A program with a function `helper_N` for each value, which returns it."""
    made = (f"X{n} = {code}\ndef helper_{n}(row):\n    return X{n}" for n, code in enumerate(expressions))
    return values.PROGRAM.format(setup=setup, values="\n".join(made))


@pytest.mark.filterwarnings("ignore:.*matrix")
@pytest.mark.parametrize("group", values.SETUPS)
def test_values_that_code_can_tell_apart_are_told_apart(group, tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    pairs = getattr(values, group)
    one, other = (module(tmp_path, program(values.SETUPS[group], *(p[n] for p in pairs.values()))) for n in (0, 1))
    outcomes = {
        name: outcome(one, other, f"helper_{number}", *pair[2:]) for number, (name, pair) in enumerate(pairs.items())
    }
    assert {name: found for name, found in outcomes.items() if found != "seen"} == {}


@pytest.mark.parametrize(("expression", "words"), REFUSED.values(), ids=REFUSED)
def test_value_without_content_is_refused(expression, words, tmp_path: Path) -> None:
    made = module(tmp_path, program(values.CLASSES, expression))
    with pytest.raises(FingerprintError, match=words) as caught:
        fingerprint(made, "helper_0")
    assert caught.value.hint
    assert caught.value.location is not None


@pytest.mark.slow
@pytest.mark.parametrize("group", values.SETUPS)
def test_value_has_the_same_print_in_every_process(group, tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    every = [pair[0] for pair in getattr(values, group).values()]
    code = program(values.SETUPS[group], f"[{', '.join(every)}, {{'a', 'b', 1, None}}, {{len, str, (1, 'a')}}]")
    root = str(Path(__file__).resolve().parents[3])
    script = f"""
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.unit.fingerprints.pairs import fingerprint, module
print(fingerprint(module(Path({str(tmp_path)!r}) / sys.argv[1], {code!r}), "helper_0"))
"""
    seen = {
        subprocess.run(
            [sys.executable, "-c", script, seed],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1, json.dumps(sorted(seen))
