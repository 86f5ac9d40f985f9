"""Which files of a store the next batch needs; with Spark's own files: tests/spark/test_checkpoint_damage.py."""

from __future__ import annotations

import json
import struct
import zipfile

import pyarrow as pa
import pytest

from everstate.engine.checkpoint import inspection
from everstate.engine.checkpoint.changelog import lineage
from everstate.engine.checkpoint.checkpoint import read_verified
from everstate.errors import AccessError, CheckpointDamagedError, CheckpointMissingError, OpenFilesError


def changelog(versions, *, compress=True, size=64):
    """A file of changes, as Spark writes it, in frames of some bytes."""
    document = json.dumps([{"version": number, "checkpointUniqueId": f"id{number}"} for number in versions]).encode()
    content = struct.pack(">H", 2) + b"v4" + struct.pack(">H", len(document)) + document + b"rest"
    frames = []
    for at in range(0, len(content), size):
        part = content[at : at + size]
        body = pa.Codec("lz4_raw").compress(part, asbytes=True) if compress else part
        method = 0x20 if compress else 0x10
        frames.append(struct.pack("<8sBIII", b"LZ4Block", method | 5, len(body), len(part), 0) + body)
    return b"".join(frames)


def write_store(folder, *, snapshots, changes, lineages):
    for number in snapshots:
        with zipfile.ZipFile(folder / f"{number}_id{number}.zip", "w") as archive:
            archive.writestr("metadata", 'v2\n{"sstFiles":[]}')
    for number in changes:
        (folder / f"{number}_id{number}.changelog").write_bytes(changelog(lineages.get(number, ())))


@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize("versions", [range(0), range(1, 2), range(10, 400)])
def test_lineage_of_a_changelog_is_read(versions, compress):
    assert lineage(changelog(versions, compress=compress)) == {number: f"id{number}" for number in versions}


@pytest.mark.parametrize("content", [b"", b"LZ4Block", b"x" * 100, changelog(range(100))[:200]])
def test_lineage_of_something_else_is_refused(content):
    with pytest.raises(ValueError, match="it "):
        lineage(content)


def test_store_first_versions_without_a_snapshot_are_replayed_from_the_beginning(tmp_path):
    write_store(tmp_path, snapshots=(), changes=range(1, 4), lineages={3: range(1, 3)})
    inspection._check_store(tmp_path, 3, "id3")


def test_store_with_a_snapshot_of_the_newest_version_needs_nothing_else(tmp_path):
    write_store(tmp_path, snapshots=(7,), changes=(), lineages={})
    inspection._check_store(tmp_path, 7, "id7")


def test_store_lineage_with_a_gap_is_named(tmp_path):
    write_store(tmp_path, snapshots=(3,), changes=range(3, 7), lineages={6: (3, 5)})
    with pytest.raises(CheckpointDamagedError, match="leaves out version 4"):
        inspection._check_store(tmp_path, 6, "id6")


@pytest.mark.parametrize(("number", "kind"), [(24, OpenFilesError), (13, AccessError), (30, AccessError)])
def test_file_that_cannot_be_opened_is_not_called_damaged(tmp_path, monkeypatch, number, kind):
    def refuse(_):
        raise OSError(number, "it may not be opened")

    (tmp_path / "metadata").write_text("{}")
    monkeypatch.setattr(type(tmp_path), "read_bytes", refuse)
    with pytest.raises(kind, match="Nothing is damaged"):
        read_verified(tmp_path / "metadata")


def test_snapshot_that_changes_build_on_missing_is_named(tmp_path):
    write_store(tmp_path, snapshots=(1, 10), changes=range(1, 16), lineages={15: range(10, 15)})
    inspection._check_store(tmp_path, 15, "id15")
    (tmp_path / "10_id10.zip").unlink()
    with pytest.raises(CheckpointMissingError, match=r"10_id10\.zip"):
        inspection._check_store(tmp_path, 15, "id15")


@pytest.mark.parametrize("lost", [12, 15])
def test_changes_after_the_snapshot_missing_are_named(tmp_path, lost):
    write_store(tmp_path, snapshots=(1, 10), changes=range(1, 16), lineages={15: range(10, 15)})
    (tmp_path / f"{lost}_id{lost}.changelog").unlink()
    with pytest.raises(CheckpointMissingError, match=f"{lost}_id{lost}.changelog"):
        inspection._check_store(tmp_path, 15, "id15")


def test_files_that_the_next_batch_does_not_need_may_be_missing(tmp_path):
    write_store(tmp_path, snapshots=(10,), changes=range(11, 16), lineages={15: range(10, 15)})
    inspection._check_store(tmp_path, 15, "id15")
