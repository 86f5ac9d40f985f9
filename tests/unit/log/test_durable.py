from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from everstate.log.durable import make_folder, replacing


def modes(*paths):
    return [stat.S_IMODE(path.stat().st_mode) for path in paths]


@pytest.fixture
def synced(monkeypatch):
    """What was synced, in order, by its name at that moment."""
    names = []
    original = os.fsync

    def fsync(handle):
        names.append(Path(f"/proc/self/fd/{handle}").readlink().name)
        original(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    return names


def test_replacing_file_gets_its_name_after_its_bytes_are_durable(tmp_path, synced):
    with replacing(tmp_path / "document") as stream:
        stream.write(b"whole")
        assert not (tmp_path / "document").exists()
    assert (tmp_path / "document").read_bytes() == b"whole"
    assert synced == [".document.partial", tmp_path.name]
    assert modes(tmp_path / "document") == [0o600]


def test_replacing_that_fails_leaves_what_was_there(tmp_path):
    path = tmp_path / "document"
    path.write_bytes(b"before")
    with pytest.raises(ZeroDivisionError), replacing(path) as stream:
        stream.write(b"%d" % (1 // 0))
    assert path.read_bytes() == b"before"


def test_make_folder_every_new_name_is_durable_and_private(tmp_path, synced):
    make_folder(tmp_path / "a" / "b")
    assert synced == [tmp_path.name, "a"]
    assert modes(tmp_path / "a", tmp_path / "a" / "b") == [0o700, 0o700]
    make_folder(tmp_path / "a" / "b")
    assert len(synced) == 2


def test_make_folder_where_a_file_is_fails(tmp_path):
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(NotADirectoryError):
        make_folder(tmp_path / "a" / "b")
