from __future__ import annotations

from dataclasses import fields

from everstate.generations.deploy.options import RunOptions, Wishes
from everstate.generations.deploy.settings import Settings


def test_run_options_are_all_settings_and_wishes():
    known = {field.name for field in fields(Settings)} | Wishes.names()
    assert RunOptions.__annotations__.keys() == known | {"log", "show", "session", "wishes", "asks"}
