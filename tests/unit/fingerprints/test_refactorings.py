"""Other ways to write the same: seen as equal where it is proven, and as a change where it only looks so.

The pairs are in `refactorings/`: both versions of the main module, between lines of `---`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.fingerprints.random_programs.trial import Trial, tried

FOLDER = Path(__file__).parent / "refactorings"
#: What a line of that name stands for: `note` adds to a list that all calls share, so that order shows.
PARTS = {
    "NOTED": (
        "import everstate as es\nL = []\n@es.declare(random=True)\n"
        "def note(v):\n    L.append(v)\n    return len(L) * 10 + v"
    ),
    "LOOP": "def h(a, b):\n    for i in range(2):\n        a = a * 3 + b * i\n    return a",
}
MODULES = {
    "far": "K = 3\ndef plus(v):\n    return v + K\n",
    "near": "T = 1\ndef up():\n    global T\n    T += 1\n",
}


def pairs(name: str) -> dict[str, tuple[str, str]]:
    """The pairs of a file, by what they are."""
    text = (FOLDER / name).read_text()
    for part, meaning in PARTS.items():
        text = text.replace(f"{part}\n", f"{meaning}\n")
    found = {}
    for section in text.split("=== ")[1:]:
        title, _, both = section.partition("\n")
        old, new = both.split("---\n")
        found[title] = (old, new)
    return found


EQUAL = pairs("equal.txt")
DIFFERENT = pairs("different.txt")


def both(folder: Path, pair: tuple[str, str]) -> tuple[Trial, Trial]:
    """What becomes of both versions."""
    old, new = (tried(folder, {**MODULES, "main": text}) for text in pair)
    assert old.results is not None
    assert new.results is not None
    return old, new


@pytest.mark.parametrize("pair", EQUAL.values(), ids=EQUAL)
def test_fingerprint_after_a_refactoring_is_the_same(pair, tmp_path: Path) -> None:
    old, new = both(tmp_path, pair)
    assert old.results == new.results
    assert old.refusal == new.refusal == ""
    assert old.fingerprint == new.fingerprint


@pytest.mark.parametrize("pair", DIFFERENT.values(), ids=DIFFERENT)
def test_fingerprint_after_what_only_looks_like_a_refactoring_differs(pair, tmp_path: Path) -> None:
    old, new = both(tmp_path, pair)
    assert old.results != new.results
    assert old.refusal or new.refusal or old.fingerprint != new.fingerprint
