from __future__ import annotations

from dataclasses import fields

import pytest

from everstate.errors import CheckpointDamagedError, StateError
from everstate.generations.state.folder import FORMAT, OutputFolder, OutputRecord, read_document, write_document

RECORD = OutputRecord(shards=2, generation="1", fingerprint="f", initial={"orders": {0: 5}})


@pytest.fixture
def folder(tmp_path):
    made = OutputFolder(tmp_path / "shop" / "totals" / "1")
    made.write_record(RECORD)
    return made


def test_record_is_read_as_it_was_written(folder):
    assert folder.read_record() == RECORD


def test_record_without_a_number_is_of_the_first_format(folder):
    known = read_document(folder.record_file)
    write_document(folder.record_file, {name: known[name] for name in known if name != "format"})
    assert folder.read_record() == RECORD


def test_record_of_a_newer_version_is_refused_by_name(folder):
    write_document(folder.record_file, {**read_document(folder.record_file), "format": FORMAT + 1, "unheard_of": 1})
    with pytest.raises(StateError, match=f"the state in {folder.path} has format {FORMAT + 1}; this version") as caught:
        folder.read_record()
    assert not isinstance(caught.value, CheckpointDamagedError)
    assert "--recalculate" not in str(caught.value)


def test_record_with_other_fields_needs_another_format():
    assert (FORMAT, [each.name for each in fields(OutputRecord)]) == (
        1,
        ["shards", "generation", "fingerprint", "initial"],
    )
