"""A project's file: where it is found, what it may say, and where a mistake in it stands."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import everstate as es
from everstate.errors import ConfigurationError
from everstate.generations.deploy.settings import Settings, choose_log
from everstate.project.config_values import config_values
from everstate.project.lines import lines_of
from everstate.project.project_file import current

TOML = """# what all commands know
log = "data/log"

trigger = 0.5
[services]
orders = "shop.orders:app"

[config]
least = 100
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Writes a project's file, in a folder below which the process works."""
    for name in [name for name in os.environ if name.startswith("EVERSTATE_")]:
        monkeypatch.delenv(name)
    deep = tmp_path / "project" / "deep" / "deeper"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)

    def write(text: str = TOML, name: str = "everstate.toml", folder: str = "") -> Path:
        file = tmp_path / "project" / folder / name
        file.write_text(text)
        return file

    return write


def test_file_is_found_above_and_its_paths_begin_there(project):
    file = project()
    found = current()
    assert found.file == file
    assert found.value("log") == str(file.parent / "data" / "log")
    assert found.services == {"orders": "shop.orders:app"}
    assert found.config == {"least": 100}


def test_table_of_pyproject_says_the_same_at_its_own_lines(project):
    text = '[project]\nname = "x"\n\n[tool.everstate]\nlog = "here"\nservices = {orders = 5}\n'
    file = project(text, "pyproject.toml")
    found = current()
    assert found.value("log") == str(file.parent / "here")
    assert found.place("log") == "../../pyproject.toml line 5"
    with pytest.raises(ConfigurationError, match="service orders is not text") as caught:
        _ = found.services
    assert caught.value.location.line == 6


@pytest.mark.parametrize("text", ['[project]\nname = "x"\n', "this = = is no TOML", "[tool.ruff]\n"])
def test_pyproject_about_other_things_is_passed_by(project, text):
    project()
    project(text, "pyproject.toml", "deep")
    assert current().value("trigger") == 0.5


def test_nearest_file_counts_and_a_file_of_its_own_before_pyproject(project):
    project()
    project('[tool.everstate]\nlog = "shared"\n', "pyproject.toml", "deep")
    assert current().file.name == "pyproject.toml"
    near = project('log = "own"\n', "everstate.toml", "deep")
    assert current().file == near


def test_file_that_is_edited_is_read_again(project):
    project()
    assert current().value("trigger") == 0.5
    project(TOML.replace("0.5", "0.75"))
    assert current().value("trigger") == 0.75


@pytest.mark.parametrize("name", ["everstate.toml", "pyproject.toml"])
def test_file_that_is_no_toml_is_named(project, name):
    project("[tool.everstate]\nlog = = 5\n", name)
    with pytest.raises(ConfigurationError, match=rf"{name} cannot be read.*line 2"):
        current()


def test_file_of_another_user_above_is_passed_by(project, monkeypatch):
    project()
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    monkeypatch.setattr("everstate.project.project_file._owner", lambda about: 12345)
    assert current().file is None


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("triger = 1", "unknown setting triger", "Did you mean trigger?"),
        ("state-dir = 'x'", "unknown setting state-dir", "Did you mean state_dir?"),
        ("[service]", "unknown setting service", "Did you mean services?"),
        ("zzz = 1", "unknown setting zzz", "The names are: approval"),
        ("max_records = 'many'", "the setting max_records cannot be 'many'", "Correct this line"),
        ("max_records = -1", "the setting max_records must be", "Correct this line"),
        ("state_dir = 5", "state_dir is not a folder", 'state_dir = "data"'),
    ],
)
def test_mistake_is_named_with_its_line_and_what_was_meant(project, line, message, hint):
    project(f"# first\n\n{line}\n")
    with pytest.raises(ConfigurationError, match=message) as caught:
        Settings.resolve()
    assert (caught.value.location.file, caught.value.location.line) == ("../../everstate.toml", 3)
    assert hint in caught.value.hint


def test_settings_command_line_environment_file_code_default(project, monkeypatch):
    project("trigger = 0.5\nshards = 3\ncores = 2\nstate_dir = 'state'\n")
    monkeypatch.setenv("EVERSTATE_CORES", "5")
    found = Settings.resolve({"trigger": 0.25}, service={"shards": 7, "state_dir": "own"})
    assert (found.trigger, found.cores, found.shards, found.memory) == (0.25, 5, 3, "2g")
    assert found.state_dir == current().folder / "state"


def test_mistake_in_a_value_that_does_not_count_is_no_error(project):
    project("max_records = 'many'\n")
    assert Settings.resolve({"max_records": 5}).max_records == 5


def test_log_command_line_environment_file_code_default(project, monkeypatch):
    folder = project("trigger = 1\n").parent
    assert choose_log(None, "own").address == "own"
    assert choose_log(None, None).address == str(folder / ".everstate")
    project()
    assert choose_log(None, "own").address == str(folder / "data" / "log")
    assert choose_log(None, "own").why == "../../everstate.toml line 2 says to look"
    monkeypatch.setenv("EVERSTATE_LOG", "variable")
    assert choose_log(None, "own").address == "variable"
    assert choose_log("option", "own").address == "option"
    project('log = "kafka://broker"\n')
    monkeypatch.delenv("EVERSTATE_LOG")
    assert choose_log().address == "kafka://broker"


def test_configuration_comes_after_the_environment_and_before_the_default(project, monkeypatch):
    project()
    app = es.Service("shop")
    assert app.config("least", 5) == 100
    assert app.config("most", 7) == 7
    monkeypatch.setenv("EVERSTATE_CONFIG_LEAST", "50")
    assert app.config("least", 5) == 50


def test_configuration_of_another_type_names_the_line(project):
    project()
    with pytest.raises(ConfigurationError, match=r"everstate\.toml line 9 is not true or false"):
        es.Service("shop").config("least", default=True)


def test_configuration_in_a_file_of_its_own(project):
    folder = project('config = "config/shop.toml"\n').parent
    with pytest.raises(ConfigurationError, match="there is no file") as caught:
        config_values()
    assert caught.value.location.line == 1
    (folder / "config").mkdir()
    (folder / "config" / "shop.toml").write_text("least = 3\n")
    assert es.Service("shop").config("least", 5) == 3


def test_lines_of_dotted_and_quoted_keys_are_found():
    text = 'a.b = 1\n["x y".z]\n"q" = 2  # z\n[[list]]\nm = """\nnot = 1\n"""\n'
    assert lines_of(text)[("a", "b")] == 1
    assert lines_of(text)[("x y", "z")] == 2
    assert lines_of(text)[("x y", "z", "q")] == 3
    assert lines_of(text)[("list", "m")] == 5


def test_folder_that_was_deleted_has_no_project(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert current().file is None
