"""Archived code: by value, but for secrets, which it names."""

from __future__ import annotations

import stat
from dataclasses import dataclass

import pytest

import everstate as es
from everstate.dsl.config import OVERRIDES
from everstate.engine.code_archive import archive, restored
from everstate.errors import AccessError, CheckpointDamagedError, CheckpointMissingError, DefinitionError, secrets
from everstate.generations.state.folder import OutputFolder
from everstate.topology.nodes import Map

SECRET = "hunter2-hunter2"


@dataclass
class Stored:
    """The part of a generation that is asked for."""

    code: str
    number: int = 1


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(secrets, "_given", {})
    return OutputFolder(tmp_path / "shop" / "out" / "1")


def unit(**settings):
    token = OVERRIDES.set(settings)
    try:
        app = es.Service("shop")
        key, least = app.config("api_token", "none"), app.config("least", 5)
    finally:
        OVERRIDES.reset(token)

    def called(row):
        return f"{key}/{least}/{row['a']}"

    app.table("t", schema={"a": int}).map(called, schema=str).to("out")
    return app.units()[0]


def result(found):
    (mapping,) = [node for node in found.nodes if isinstance(node, Map)]
    return mapping.fn.call({"a": 1})


def test_archived_code_holds_no_secret_and_gives_the_same_result(folder):
    stored = Stored(archive(folder, unit(api_token=SECRET, least=7)))
    assert SECRET.encode() not in folder.code_file.read_bytes()
    assert result(restored(folder, stored)) == f"{SECRET}/7/1"


def test_archived_code_that_this_user_may_not_read_is_not_called_missing(folder, monkeypatch):
    stored = Stored(archive(folder, unit()))

    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(type(folder.code_file), "read_bytes", refuse)
    with pytest.raises(AccessError, match=r"unit\.bin cannot be read"):
        restored(folder, stored)


def test_archived_code_gets_the_secret_of_today(folder, monkeypatch):
    stored = Stored(archive(folder, unit(api_token=SECRET)))
    secrets.remember({"api_token": "rotated-rotated"})
    assert result(restored(folder, stored)) == "rotated-rotated/5/1"
    monkeypatch.setattr(secrets, "_given", {})
    monkeypatch.setenv("EVERSTATE_CONFIG_API_TOKEN", "from-the-environment")
    assert result(restored(folder, stored)) == "from-the-environment/5/1"


def test_archived_code_whose_secret_nobody_gives_is_named(folder, monkeypatch):
    stored = Stored(archive(folder, unit(api_token=SECRET)))
    monkeypatch.setattr(secrets, "_given", {})
    with pytest.raises(CheckpointMissingError, match="needs the setting 'api_token'") as caught:
        restored(folder, stored)
    assert "EVERSTATE_CONFIG_API_TOKEN" in str(caught.value)


def test_archived_code_is_for_its_owner_alone(folder):
    archive(folder, unit())
    assert stat.S_IMODE(folder.code_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700


def test_archived_code_that_somebody_changed_is_not_run(folder):
    stored = Stored(archive(folder, unit()))
    folder.code_file.write_bytes(folder.code_file.read_bytes() + b"x")
    with pytest.raises(CheckpointDamagedError, match="does not match its checksum"):
        restored(folder, stored)


class Hours(float):
    """A number that pickle makes again without its unit."""

    def __new__(cls, value, unit):
        made = super().__new__(cls, value)
        made.unit = unit
        return made


def test_code_that_could_not_be_loaded_again_is_refused_before_anything_is_deployed(folder):
    limit = Hours(1.5, "h")
    app = es.Service("shop")
    app.table("t", schema={"a": int}).filter(lambda row: row["a"] > limit).to("out")
    with pytest.raises(DefinitionError, match=r"the output out needs something that workers cannot load: .*'unit'"):
        archive(folder, app.units()[0])
    assert not folder.code_file.exists()
