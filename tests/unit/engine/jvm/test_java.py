from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from everstate.engine.jvm import java
from everstate.errors import EngineError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine without any Java; `install` adds one."""
    for folder in ("bin", "home", "prefix", "system"):
        (tmp_path / folder).mkdir()
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(java.sys, "prefix", str(tmp_path / "prefix"))
    monkeypatch.setattr(java, "_SYSTEM_FOLDERS", (f"{tmp_path}/system/*",))
    return tmp_path


def install(home: Path, version: str | None, script: str = "exit 1") -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text(f"#!/bin/sh\n{script}\n")
    (home / "bin" / "java").chmod(0o755)
    if version:
        (home / "release").write_text(f'IMPLEMENTOR="Test"\nJAVA_VERSION="{version}"\n')
    return home


def test_find_java_with_java_home_takes_it_before_the_path(machine, monkeypatch):
    named = install(machine / "named", "21.0.2")
    on_path = install(machine / "other", "17.0.1")
    (machine / "bin" / "java").symlink_to(on_path / "bin" / "java")
    assert java.find_java() == on_path
    monkeypatch.setenv("JAVA_HOME", str(named))
    assert java.find_java() == named


def test_find_java_with_an_old_java_home_looks_further(machine, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(install(machine / "old", "11.0.9")))
    found = install(machine / "prefix" / "jdk" / "jdk-17.0.9+9-jre", "17.0.9")
    assert java.find_java() == found


@pytest.mark.parametrize("place", ["prefix/jdk", "home/.jdk", "system"])
def test_find_java_in_every_place_of_the_set_up_finds_it(machine, place):
    found = install(machine / place / "jdk-17", "17.0.9")
    assert java.find_java() == found


def test_find_java_among_several_prefers_a_tested_version(machine):
    install(machine / "system" / "a-25", "25.0.1")
    install(machine / "system" / "b-21", "21.0.1")
    preferred = install(machine / "system" / "c-17", "17.0.1")
    assert java.find_java() == preferred


def test_find_java_without_a_release_file_asks_the_program(machine):
    real = machine / "real"
    script = f"printf '    java.home = {real}\\n    java.version = 17.0.3\\n' >&2"
    install(machine / "stub", None, script)
    (machine / "bin" / "java").symlink_to(machine / "stub" / "bin" / "java")
    assert java.select_java() == java.Java(real, "17.0.3")


def test_find_java_with_a_program_that_fails_is_no_java(machine):
    install(machine / "system" / "broken", None)
    with pytest.raises(EngineError, match="none was found"):
        java.find_java()


def test_find_java_with_only_an_old_one_names_it_and_the_cure(machine, monkeypatch):
    old = install(machine / "system" / "jdk-8", "1.8.0_452")
    with pytest.raises(EngineError) as failure:
        java.find_java()
    assert f"{old} is Java 8" in str(failure.value)
    assert "jdk.install('17')" in str(failure.value)
    (machine / "bin" / "apt-get").write_text("#!/bin/sh\n")
    (machine / "bin" / "apt-get").chmod(0o755)
    assert "apt-get install openjdk-17-jre-headless" in java.cure()
