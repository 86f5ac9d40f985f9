"""Checkpoints that begin where others are."""

from __future__ import annotations

import json

import pytest

from everstate.engine.checkpoint.checkpoint import batch_end, numbers, query_id
from everstate.engine.checkpoint.clone import clone
from everstate.errors import MigrationError


def checkpoint(folder, batches):
    """What Spark leaves after so many batches, as far as it matters here."""
    source = folder / "checkpoint"
    store = source / "state" / "0" / "0"
    for path in (source / "offsets", source / "commits", store / "SSTs", source / "state" / "0" / "_metadata" / "v2"):
        path.mkdir(parents=True)
    (source / "metadata").write_text(json.dumps({"id": "the-active-one"}))
    (source / "state" / "0" / "_metadata" / "v2" / "0").write_text("metadata")
    (store / "SSTs" / "7-x.sst").write_text("table")
    (store / ".8.tmp").write_text("half written")
    for batch in range(batches):
        (source / "offsets" / str(batch)).write_text(f'v1\n{{}}\n{{"orders": {{"0": {10 * (batch + 1)}}}}}')
        (source / "commits" / str(batch)).write_text("v1\n{}")
        (store / f"{batch + 1}_id.changelog").write_text(f"changes of batch {batch}")
        (store / f".{batch + 1}_id.changelog.crc").write_text("crc")
    return source


def test_clone_ends_one_batch_before_the_last_and_plans_that(tmp_path):
    source, target = checkpoint(tmp_path, 4), tmp_path / "2" / "checkpoint"
    target.parent.mkdir()
    found = clone(source, target, {"orders": {0: 0}})
    assert (found.batch_id, found.start, found.end) == (2, {"orders": {0: 20}}, {"orders": {0: 30}})
    assert numbers(target / "offsets") == [0, 1, 2, 3]
    assert numbers(target / "commits") == [0, 1, 2]
    assert batch_end(target, 3) == {"orders": {0: 40}}
    assert query_id(target) == found.query_id != "the-active-one"
    store = target / "state" / "0" / "0"
    assert sorted(path.name for path in store.glob("*.changelog")) == [f"{n}_id.changelog" for n in (1, 2, 3)]
    assert (store / "SSTs" / "7-x.sst").samefile(source / "state" / "0" / "0" / "SSTs" / "7-x.sst")
    assert not (store / ".8.tmp").exists()
    assert not target.with_name("checkpoint.partial").exists()


def test_clone_of_the_second_batch_begins_where_the_source_began(tmp_path):
    source = checkpoint(tmp_path, 2)
    found = clone(source, tmp_path / "clone", {"orders": {0: 3}})
    assert (found.batch_id, found.start) == (0, {"orders": {0: 3}})


@pytest.mark.parametrize("batches", [0, 1])
def test_clone_of_a_generation_that_has_hardly_begun_is_refused(tmp_path, batches):
    with pytest.raises(MigrationError, match="has not completed a second micro-batch"):
        clone(checkpoint(tmp_path, batches), tmp_path / "clone", {})


def test_clone_takes_the_place_of_one_that_was_not_finished(tmp_path):
    source, target = checkpoint(tmp_path, 3), tmp_path / "clone"
    for folder in (target, target.with_name("clone.partial")):
        (folder / "offsets").mkdir(parents=True)
        (folder / "offsets" / "99").write_text("of another time")
    clone(source, target, {})
    assert numbers(target / "offsets") == [0, 1, 2]


def test_clone_of_files_that_go_all_the_time_is_given_up(tmp_path, monkeypatch):
    source = checkpoint(tmp_path, 3)
    monkeypatch.setattr(
        "everstate.engine.checkpoint.clone.os.link", lambda *_: (_ for _ in ()).throw(FileNotFoundError("gone"))
    )
    with pytest.raises(MigrationError, match="kept changing while it was being copied"):
        clone(source, tmp_path / "clone", {})
    assert not (tmp_path / "clone").exists()
