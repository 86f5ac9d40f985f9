from __future__ import annotations

import pytest

import everstate as es
from everstate.dsl.config import OVERRIDES
from everstate.errors import ConfigurationError


@pytest.fixture
def given():
    """Sets what the command line gave, and takes it back."""
    tokens = []
    yield lambda values: tokens.append(OVERRIDES.set(values))
    for token in reversed(tokens):
        OVERRIDES.reset(token)


def test_config_without_anything_given_is_the_default() -> None:
    assert es.Service("s").config("vip_from", 1000) == 1000


def test_config_from_the_environment_has_the_type_of_the_default(monkeypatch) -> None:
    monkeypatch.setenv("EVERSTATE_CONFIG_VIP_FROM", "5")
    app = es.Service("s")
    assert app.config("vip_from", 1000) == 5
    assert app.config("vip-from", 1.5) == 5.0
    assert app.configuration == {"vip_from": 5, "vip-from": 5.0}


def test_config_from_the_command_line_beats_the_environment(monkeypatch, given) -> None:
    monkeypatch.setenv("EVERSTATE_CONFIG_MODE", "slow")
    given({"mode": "fast"})
    assert es.Service("s").config("mode", "off") == "fast"


@pytest.mark.parametrize(("text", "value"), [("true", True), ("0", False), ("Yes", True), ("off", False)])
def test_config_bool_is_read_from_words(given, text: str, value: bool) -> None:
    given({"flag": text})
    assert es.Service("s").config("flag", default=not value) is value


@pytest.mark.parametrize(("bad", "default"), [("many", 3), (2.5, 3), ("maybe", True), ("x", 1.5)])
def test_config_of_another_type_is_refused_with_the_command(given, bad, default) -> None:
    given({"n": bad})
    with pytest.raises(ConfigurationError, match="--set n="):
        es.Service("s").config("n", default)
