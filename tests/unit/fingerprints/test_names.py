"""Names, docstrings, annotations and signatures count where they are read as data, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from everstate.errors import FingerprintError
from tests.unit.fingerprints.pairs import edits, fingerprint, module, outcome, result, seen


def test_names_and_texts_that_are_read_count(tmp_path: Path) -> None:
    found = {title: outcome(*edit.modules(tmp_path)) for title, edit in edits("names").items()}
    # What lists or pickles members runs code of theirs, which cannot be followed.
    refused = dict.fromkeys(("members by inspect", "pickled class"), "refused")
    assert {title: what for title, what in found.items() if what != "seen"} == refused


@pytest.mark.parametrize("edit", edits("places").values(), ids=edits("places"))
def test_code_that_reads_lines_or_texts_of_code_is_refused(edit, tmp_path: Path) -> None:
    with pytest.raises(FingerprintError) as caught:
        fingerprint(edit.modules(tmp_path)[0])
    assert caught.value.hint
    assert caught.value.location is not None


@pytest.mark.parametrize("edit", edits("silent").values(), ids=edits("silent"))
def test_edit_that_changes_no_result_is_not_seen(edit, tmp_path: Path) -> None:
    one, other = edit.modules(tmp_path)
    assert result(one) == result(other)
    assert seen(one) == seen(other) is not None


def test_code_that_reads_lines_is_accepted_if_its_version_is_declared(tmp_path: Path) -> None:
    text = (
        "import traceback\nimport everstate as es\n@es.declare(version='{}')\n"
        "def helper(row):\n    return traceback.format_stack()"
    )
    prints = [fingerprint(module(tmp_path, text.format(version))) for version in (1, 2, 1)]
    assert prints[0] == prints[2] != prints[1]


def test_class_whose_version_is_declared_is_not_looked_at(tmp_path: Path) -> None:
    text = (
        "import threading\nimport everstate as es\n@es.declare(version='{}')\nclass Guarded:\n"
        "    lock = threading.Lock()\ndef helper(row):\n    return Guarded()"
    )
    prints = [fingerprint(module(tmp_path, text.format(version))) for version in (1, 2, 1)]
    assert prints[0] == prints[2] != prints[1]
