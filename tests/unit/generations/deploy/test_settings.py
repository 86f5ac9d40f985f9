from __future__ import annotations

from pathlib import Path

import pytest

from everstate.errors import ConfigurationError
from everstate.generations.deploy.settings import Settings, log_address


def test_settings_nothing_given_are_the_defaults():
    assert Settings.resolve({}, environment={}) == Settings()


def test_settings_option_comes_before_environment_and_service():
    resolved = Settings.resolve({"shards": 8}, service={"shards": 2}, environment={"EVERSTATE_SHARDS": "4"})
    assert resolved.shards == 8


def test_settings_environment_comes_before_service():
    assert Settings.resolve({}, service={"shards": 2}, environment={"EVERSTATE_SHARDS": "4"}).shards == 4


def test_settings_options_that_are_none_were_not_given():
    assert Settings.resolve({"memory": None}, environment={"EVERSTATE_MEMORY": "3g"}).memory == "3g"


def test_settings_text_becomes_the_type_of_the_setting():
    resolved = Settings.resolve({"trigger": "0.5", "state_dir": "/x", "full_compiler": "yes"}, environment={})
    assert (resolved.trigger, resolved.state_dir, resolved.full_compiler) == (0.5, Path("/x"), True)


def test_settings_unknown_name_lists_those_there_are():
    with pytest.raises(ConfigurationError, match="unknown setting sharts") as caught:
        Settings.resolve({"sharts": 1}, environment={})
    assert "shards" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("trigger", -1),
        ("max_records", 0),
        ("shards", 0),
        ("cores", 0),
        ("memory", "much"),
        ("log_level", "loud"),
        ("heartbeat", 0),
        ("shards", "two"),
        ("publishers", 0),
        ("publishers", "some"),
        ("full_compiler", "perhaps"),
    ],
)
def test_settings_value_that_does_not_fit_names_option_and_variable(name, value):
    with pytest.raises(ConfigurationError, match=name) as caught:
        Settings.resolve({name: value}, environment={})
    assert f"EVERSTATE_{name.upper()}" in str(caught.value)


def test_log_address_option_environment_service_default(monkeypatch):
    monkeypatch.delenv("EVERSTATE_LOG", raising=False)
    assert log_address(None, None) == "./.everstate"
    assert log_address(None, "own") == "own"
    monkeypatch.setenv("EVERSTATE_LOG", "env")
    assert log_address(None, "own") == "env"
    assert log_address("option", "own") == "option"


def test_settings_page_names_every_setting():
    page = Path(__file__).parents[4] / "docs" / "reference" / "settings.md"
    text = page.read_text(encoding="utf-8")
    for name in Settings.__dataclass_fields__:
        assert f"`{name}`" in text, name
        assert f"EVERSTATE_{name.upper()}" in text, name


@pytest.mark.parametrize("name", sorted(Settings.__dataclass_fields__))
def test_settings_of_the_environment_are_all_understood(name):
    given = {"state_dir": "/x", "scratch_dir": "/x", "memory": "1g", "log_level": "info", "approval": "fail"}
    given |= {"master": "spark://host:7077", "full_compiler": "yes", "tombstone_share": "0.5"}
    resolved = Settings.resolve(environment={f"EVERSTATE_{name.upper()}": given.get(name, "7")})
    assert getattr(resolved, name) != getattr(Settings(), name)
