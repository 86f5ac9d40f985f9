"""Random programs and edits of them: one that changes results is seen or refused, a refactoring is no change."""

from __future__ import annotations

import ast
import difflib
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.figures import PAIRED, REWRITTEN
from tests.unit.fingerprints.random_programs.grammar import program
from tests.unit.fingerprints.random_programs.mutations import mutated
from tests.unit.fingerprints.random_programs.refactorings import may_be_noticed, refactored
from tests.unit.fingerprints.random_programs.trial import Trial, tried

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow

#: Edits of each program.
EDITS = 6


def missed(folder: Path, seed: int) -> Iterator[str]:
    """What edits of one random program changed without being seen, for people."""
    random = Random(seed)
    texts = program(random, random.choice((1, 1, 2, 3)))
    before, again = tried(folder, texts), tried(folder, texts)
    if before.results is None or before.refusal or before.results != again.results:
        return  # it does not work, is refused, or gives another result each time
    if before.fingerprint != again.fingerprint:
        yield f"seed {seed}: another fingerprint of the same program\n" + "\n".join(texts.values())
    for _ in range(EDITS):
        edit = mutated(random, texts)
        if edit is None:
            continue
        kind, changed = edit
        after = tried(folder, changed)
        outcome = judged(before, after)
        PAIRED[outcome] += 1
        if outcome == "missed" and tried(folder, changed).results == after.results:
            yield f"seed {seed}, {kind}: {difference(texts, changed)}\n{before.results}\n{after.results}"


def judged(before: Trial, after: Trial) -> str:
    """What became of an edit."""
    if after.results is None:
        return "does not load"
    if after.results == before.results:
        return "same results"
    if after.refusal:
        return "refused"
    return "seen" if after.fingerprint != before.fingerprint else "missed"


def difference(old: dict[str, str], new: dict[str, str]) -> str:
    """Both versions of the modules that differ, with the lines that do."""
    found = []
    for name, text in old.items():
        mine, theirs = (ast.unparse(ast.parse(part)).splitlines() for part in (text, new[name]))
        found += [f"{name}.py", *difflib.unified_diff(mine, theirs, lineterm="", n=100)] if mine != theirs else []
    return "\n".join(found)


@pytest.mark.parametrize("part", range(4))
def test_edit_of_a_random_program_that_changes_results_is_seen_or_refused(part, tmp_path: Path) -> None:
    assert not [miss for seed in range(part * 15, part * 15 + 15) for miss in missed(tmp_path, seed)]


@pytest.mark.long
@pytest.mark.parametrize("part", range(20))
def test_edits_of_thousands_of_random_programs_are_seen_or_refused(part, tmp_path: Path) -> None:
    first = 1_000 + part * 100
    assert not [miss for seed in range(first, first + 100) for miss in missed(tmp_path, seed)]


def recalculated(folder: Path, seed: int) -> Iterator[str]:
    """Refactorings of one random program that were taken for changes, for people."""
    random = Random(seed)
    texts = program(random, random.choice((1, 1, 2, 3)))
    before = tried(folder, texts)
    for _ in range(EDITS):
        edit = refactored(random, texts)
        if edit is None or before.results is None or before.refusal:
            continue
        kind, changed = edit
        after = tried(folder, changed)
        assert after.results == before.results, f"seed {seed}, {kind}: {difference(texts, changed)}"
        same = after.fingerprint == before.fingerprint
        REWRITTEN[kind if same else f"{kind} (a change)"] += 1
        if not same and not may_be_noticed(kind, changed):
            yield f"seed {seed}, {kind}: {difference(texts, changed)}"


@pytest.mark.parametrize("part", range(2))
def test_refactoring_of_a_random_program_is_no_change(part, tmp_path: Path) -> None:
    assert not [one for seed in range(part * 15, part * 15 + 15) for one in recalculated(tmp_path, seed)]


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
def test_refactorings_of_many_random_programs_are_no_changes(part, tmp_path: Path) -> None:
    first = 1_000 + part * 100
    assert not [one for seed in range(first, first + 100) for one in recalculated(tmp_path, seed)]
