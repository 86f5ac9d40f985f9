from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from contextlib import contextmanager

import polars as pl
import pytest

from everstate.errors import AccessError, LogError, ManifestDamagedError, TopicNotFoundError
from everstate.log import EmbeddedLog
from everstate.log.embedded.manifest import identity

ROW = pl.DataFrame({"key": [b"a"], "value": [b"1"]})


def files(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize("bare", [False, True])
def test_log_without_its_manifest_is_refused_and_keeps_its_files(log, empty, bare):
    log.topic("orders")
    log.send("orders", (b"a", b"1"))
    log.close()
    (log.path / "manifest.db").unlink()
    if empty:
        (log.path / "manifest.db").touch()
    if bare:
        (log.path / "identity.json").unlink()
    before = files(log.path)
    with pytest.raises(ManifestDamagedError, match=r"has lost its manifest: .*manifest\.db is missing or empty"):
        EmbeddedLog(log.path)
    assert files(log.path) == before


def test_identity_that_two_processes_of_one_number_write_at_once_is_whole(tmp_path, monkeypatch):
    replacing, begun = identity.replacing, []

    @contextmanager
    def overtaken(path, **options):
        with replacing(path, **options) as stream:
            yield stream
            if not begun:
                begun.append(path)
                identity._write(path, "0" * 32)

    monkeypatch.setattr(identity, "replacing", overtaken)
    identity._write(tmp_path / "identity.json", "0" * 32)
    assert [path.name for path in tmp_path.iterdir()] == ["identity.json"]
    identity.agree(tmp_path, "0" * 32)


def test_log_whose_identity_this_user_may_not_read_is_not_called_damaged(log, monkeypatch):
    log.topic("orders")
    log.close()
    read_bytes = type(log.path).read_bytes

    def refuse(path):
        if path.name == "identity.json":
            raise PermissionError(13, "Permission denied", str(path))
        return read_bytes(path)

    monkeypatch.setattr(type(log.path), "read_bytes", refuse)
    with pytest.raises(AccessError, match=r"identity\.json cannot be read: .*\n.*Nothing is damaged"):
        EmbeddedLog(log.path).topics()


def test_log_with_the_manifest_of_another_log_is_refused(log, tmp_path):
    log.topic("orders")
    log.send("orders", (b"a", b"1"))
    log.close()
    other = EmbeddedLog(tmp_path / "other")
    for number in range(20):
        other.create_topic(f"t{number}")
    other.close()
    shutil.copy(tmp_path / "other" / "manifest.db", log.path / "manifest.db")
    with pytest.raises(LogError, match="belongs to another log"):
        EmbeddedLog(log.path)


def test_log_whose_manifest_is_an_older_copy_is_refused_until_that_is_accepted(log):
    log.topic("orders")
    log.close()
    shutil.copy(log.path / "manifest.db", log.path.parent / "older.db")
    log.send("orders", (b"a", b"1"))
    log.close()
    shutil.copy(log.path.parent / "older.db", log.path / "manifest.db")
    with pytest.raises(ManifestDamagedError, match=r"lacks its last [0-9]+ transactions"):
        EmbeddedLog(log.path)
    (log.path / "manifest.count").unlink()
    assert len(EmbeddedLog(log.path).read("orders", 0, 0)) == 0
    assert len(log.files()) == 1  # what the lost transaction wrote is no litter


@pytest.mark.parametrize("keep", [0, 100, -50])
def test_log_killed_and_its_write_ahead_file_cut_is_refused(log, tmp_path, keep):
    log.topic("orders")
    log.send("orders", (b"a", b"1"))
    copy = tmp_path / "killed"
    shutil.copytree(log.path, copy)
    wal = copy / "manifest.db-wal"
    wal.write_bytes(wal.read_bytes()[:keep])
    with pytest.raises(ManifestDamagedError):
        EmbeddedLog(copy)


def test_log_killed_opens_with_all_that_was_durable(log, tmp_path):
    log.topic("orders")
    log.send("orders", (b"a", b"1"))
    shutil.copytree(log.path, tmp_path / "killed")
    (tmp_path / "killed" / "manifest.db-shm").unlink()
    assert len(EmbeddedLog(tmp_path / "killed").read("orders", 0, 0)) == 1


def test_log_id_is_the_same_for_every_process_and_another_for_every_log(log, tmp_path):
    assert log.id is None
    log.topic("orders")
    assert log.id == EmbeddedLog(log.path).id
    other = EmbeddedLog(tmp_path / "other")
    other.create_topic("orders")
    assert other.id != log.id


def test_log_that_is_only_read_is_not_created(tmp_path):
    log = EmbeddedLog(tmp_path / "none" / "log")
    assert log.topics() == []
    assert log.metas("shop") == {}
    assert log.last_commit("shop", "orders") is None
    assert len(log.order("shop", "orders", [])) == 0
    assert log.holder("shop") is None
    with pytest.raises(TopicNotFoundError):
        log.read("orders", 0, 0)
    assert list(tmp_path.iterdir()) == []
    EmbeddedLog(tmp_path / "none" / "log").create_topic("orders")
    assert log.topics() == ["orders"]


def test_log_its_files_are_its_owners_alone(tmp_path):
    mask = os.umask(0)
    try:
        log = EmbeddedLog(tmp_path / "log")
        log.create_topic("orders")
        log.append("orders", ROW)
        found = {path: stat.S_IMODE(path.stat().st_mode) for path in [log.path, *log.path.rglob("*")]}
    finally:
        os.umask(mask)
    assert {path.name: mode for path, mode in found.items() if mode != (0o700 if path.is_dir() else 0o600)} == {}
    assert {"manifest.db", "manifest.db-wal", "identity.json", "manifest.count"} <= {path.name for path in found}


def test_log_folder_that_is_a_link_works_and_one_that_leads_nowhere_is_named(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    log = EmbeddedLog(tmp_path / "link")
    log.create_topic("orders")
    assert EmbeddedLog(tmp_path / "real").topics() == ["orders"]
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(LogError, match=r"folder .* cannot be used"):
        EmbeddedLog(tmp_path / "loop").create_topic("orders")
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    with pytest.raises(LogError, match=r"folder .* cannot be used"):
        EmbeddedLog(tmp_path / "nowhere").create_topic("orders")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody without rights")
@pytest.mark.parametrize("use", ["log.create_topic('new')", "log.topics()"])
def test_log_folder_that_may_not_be_written_is_named_at_once(log, use):
    log.topic("orders")
    log.close()
    for folder in [*log.path.parents][:3]:
        folder.chmod(0o755)
    log.path.chmod(0o755)
    (log.path / "manifest.db").chmod(0o644)
    code = (
        "import os, sys, time\n"
        "from everstate.log import EmbeddedLog\n"
        "import everstate.log.embedded.log\n"
        "from everstate.errors import LogError\n"
        "os.setuid(65534)\n"
        "began = time.monotonic()\n"
        "try:\n"
        "    log = EmbeddedLog(sys.argv[1])\n"
        f"    {use}\n"
        "except LogError as error:\n"
        "    assert error.hint and 'cannot be' in error.message, error\n"
        "assert time.monotonic() - began < 20\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(log.path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_note_of_writes_that_was_cut_off_tells_nothing(tmp_path):
    identity.note_writes(tmp_path, 300)
    assert identity.noted_writes(tmp_path) == 300
    path = tmp_path / identity.COUNT_NAME
    for damage in (b"", path.read_bytes()[:10], b"\0" * 26, path.read_bytes().replace(b"12c", b"92c")):
        path.write_bytes(damage)
        assert identity.noted_writes(tmp_path) == 0
