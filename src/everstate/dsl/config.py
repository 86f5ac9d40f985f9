"""Configuration values of a service: from the command line, a file, the environment, or the default in the code."""

from __future__ import annotations

import json
import os
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from everstate.errors import ConfigurationError, secrets
from everstate.project.config_values import config_values, truth

if TYPE_CHECKING:
    from collections.abc import Mapping

    from everstate.location import Location

#: What `--set` and `--config` gave, while the user's file is loaded.
OVERRIDES: Final[ContextVar[Mapping[str, object] | None]] = ContextVar("everstate_config", default=None)

#: The names of all settings that this process has asked for.
ASKED: Final[set[str]] = set()


def lookup(name: str, default: str | float, location: Location | None) -> Any:
    """The value of a setting, of the default's type.

    Raises:
        ConfigurationError: If what was given is not of that type.
    """
    ASKED.add(name)
    overrides = OVERRIDES.get() or {}
    variable = secrets.variable(name)
    if name in overrides:
        return _typed(name, overrides[name], default, "--set or --config", location)
    if variable in os.environ:
        return _typed(name, os.environ[variable], default, variable, location)
    written = config_values()
    if name in written.values:
        return _typed(name, written.values[name], default, written.place(name), location)
    return default


def _typed(name: str, given: Any, default: str | float, origin: str, location: Location | None) -> Any:
    kind = type(default)
    try:
        return {bool: truth, int: _integer}.get(kind, kind)(given)
    except (TypeError, ValueError):
        raise ConfigurationError(
            f"configuration {name!r}: {secrets.shown(name, given)} from {origin} is not {_noun(kind)}",
            location=location,
            hint=f"Pass {_noun(kind)}, like the default: --set {name}={_example(name, default)}",
        ) from None


def _example(name: str, default: object) -> str:
    return secrets.MASK if secrets.is_secret(name) else secrets.masked(json.dumps(default))


def _integer(given: Any) -> int:
    if isinstance(given, float):
        # 2.5 from a file must not become 2 in silence.
        raise ValueError(given)  # noqa: TRY004 - the caller turns both into one error
    return int(given)


def _noun(kind: type) -> str:
    return {str: "text", int: "a whole number", float: "a number", bool: "true or false"}[kind]
