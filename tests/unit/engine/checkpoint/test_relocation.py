"""A checkpoint that was moved, linked or copied names its own files."""

from __future__ import annotations

import json

import pytest

from everstate.engine.checkpoint.relocation import relocate
from everstate.errors import CheckpointDamagedError


def described(checkpoint, schema_file):
    """Spark's description of step 0, as Spark 4.3 writes it."""
    path = checkpoint / "state" / "0" / "_metadata" / "v2" / "0"
    path.parent.mkdir(parents=True)
    store = {"storeName": "default", "numColsPrefixKey": 0, "numPartitions": 2, "stateSchemaFilePaths": [schema_file]}
    path.write_text("v2\n" + json.dumps({"operatorInfo": {"operatorId": 0}, "stateStoreInfo": [store]}))
    path.with_name(".0.crc").write_bytes(b"crc")
    return path


def schema_files(path):
    (store,) = json.loads(path.read_text().removeprefix("v2\n"))["stateStoreInfo"]
    return store["stateSchemaFilePaths"]


@pytest.mark.parametrize("folder", ["moved", "with space", "state"])
def test_relocate_moved_checkpoint_names_its_own_files(tmp_path, folder):
    checkpoint = tmp_path / folder / "checkpoint"
    path = described(checkpoint, "file:/elsewhere/state/0/_stateSchema/default/0_1e35")
    relocate(checkpoint)
    assert schema_files(path) == [f"file:{checkpoint}/state/0/_stateSchema/default/0_1e35"]
    assert path.read_text().startswith("v2\n")
    assert not path.with_name(".0.crc").exists()


def test_relocate_of_a_clone_leaves_the_file_that_it_is_linked_with(tmp_path):
    source, target = tmp_path / "1" / "checkpoint", tmp_path / "2" / "checkpoint"
    path = described(source, f"file:{source}/state/0/_stateSchema/default/0_1e35")
    linked = target / path.relative_to(source)
    linked.parent.mkdir(parents=True)
    linked.hardlink_to(path)
    relocate(target)
    assert schema_files(path) == [f"file:{source}/state/0/_stateSchema/default/0_1e35"]
    assert schema_files(linked) == [f"file:{target}/state/0/_stateSchema/default/0_1e35"]


def test_relocate_checkpoint_in_its_place_writes_nothing(tmp_path):
    path = described(tmp_path, f"file:{tmp_path}/state/0/_stateSchema/default/0_1e35")
    before = path.stat()
    relocate(tmp_path)
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert path.with_name(".0.crc").exists()


def test_relocate_of_nothing_does_nothing(tmp_path):
    relocate(tmp_path / "checkpoint")
    assert not (tmp_path / "checkpoint").exists()


@pytest.mark.parametrize("content", ["v2\n{", "v2", "v2\n[]", 'v2\n{"stateStoreInfo": 5}'])
def test_relocate_damaged_description_is_named(tmp_path, content):
    path = described(tmp_path, "file:/a")
    path.write_text(content)
    with pytest.raises(CheckpointDamagedError, match="_metadata"):
        relocate(tmp_path)
