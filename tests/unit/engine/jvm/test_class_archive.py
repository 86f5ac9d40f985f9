from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from everstate.engine.jvm import class_archive
from everstate.engine.jvm.java import Java
from everstate.errors import EngineError


@pytest.fixture
def jars(tmp_path, monkeypatch):
    """Spark's jars, a Java and an empty cache."""
    folder = tmp_path / "spark" / "jars"
    folder.mkdir(parents=True)
    (folder / "a.jar").write_bytes(b"a")
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache of mine"))
    monkeypatch.setattr(class_archive, "select_java", lambda: Java(Path("/opt/java"), "17.0.15"))
    return folder


def trained(monkeypatch, content=b"classes"):
    monkeypatch.setattr(class_archive, "_train", lambda java, made, folder: made.write_bytes(content))


def test_java_options_without_an_archive_are_quiet_and_complete(jars):
    assert class_archive.java_options() == "-Xlog:disable -Xshare:auto -XX:TieredStopAtLevel=1"


def test_java_options_with_an_archive_name_it_in_quotes(jars, monkeypatch):
    trained(monkeypatch)
    path = class_archive.build_archive()
    assert path == class_archive.archive_path()
    assert f'-XX:SharedArchiveFile="{path}"' in class_archive.java_options()


def test_java_options_with_the_full_compiler_leave_java_its_own_choice(jars):
    assert class_archive.java_options(full_compiler=True) == "-Xlog:disable -Xshare:auto"


def test_java_options_without_java_leave_the_error_to_the_session(jars, monkeypatch):
    def none():
        raise EngineError("no Java")

    monkeypatch.setattr(class_archive, "select_java", none)
    assert "SharedArchiveFile" not in class_archive.java_options()
    assert class_archive.build_archive() is None


def test_archive_path_changes_with_java_and_with_any_jar(jars, monkeypatch):
    before = class_archive.archive_path()
    os.utime(jars / "a.jar", ns=(1, 1))
    touched = class_archive.archive_path()
    (jars / "b.jar").write_bytes(b"b")
    added = class_archive.archive_path()
    monkeypatch.setattr(class_archive, "select_java", lambda: Java(Path("/opt/java"), "21.0.1"))
    assert len({before, touched, added, class_archive.archive_path()}) == 4


def test_java_options_with_a_cut_archive_leave_it_out_until_it_is_built_again(jars, monkeypatch):
    trained(monkeypatch)
    path = class_archive.build_archive()
    path.write_bytes(b"cla")
    assert "SharedArchiveFile" not in class_archive.java_options()
    assert class_archive.build_archive() == path
    assert "SharedArchiveFile" in class_archive.java_options()


def test_build_archive_that_cannot_be_written_only_warns(jars, monkeypatch, tmp_path, caplog):
    trained(monkeypatch)
    (tmp_path / "cache of mine").write_text("a file where the folder should be")
    with caplog.at_level(logging.WARNING):
        assert class_archive.build_archive() is None
    assert "start more slowly" in caplog.text


def test_build_archive_whose_training_fails_only_warns_and_leaves_nothing(jars, monkeypatch, caplog):
    monkeypatch.setattr(class_archive.sys, "executable", "/bin/false")
    with caplog.at_level(logging.WARNING):
        assert class_archive.build_archive() is None
    assert "ended with 1" in caplog.text
    assert list(class_archive.cache_folder().iterdir()) == []


def test_build_archive_keeps_the_newest_only(jars, monkeypatch):
    trained(monkeypatch)
    class_archive.cache_folder().mkdir(parents=True)
    for age in range(5):
        old = class_archive.cache_folder() / f"spark-{age}.jsa"
        old.write_bytes(b"")
        os.utime(old, (age, age))
    built = class_archive.build_archive()
    assert {path.name for path in class_archive.cache_folder().glob("*.jsa")} == {
        built.name,
        "spark-4.jsa",
        "spark-3.jsa",
    }
