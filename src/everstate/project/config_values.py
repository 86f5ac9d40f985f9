"""Configuration values of services, as files give them: `--config FILE`, or what a project's file says."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from everstate.errors import ConfigurationError
from everstate.project.project_file import CONFIG, Project, current

if TYPE_CHECKING:
    from collections.abc import Mapping

_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_FALSE: Final = frozenset({"0", "false", "no", "off"})


@dataclass(frozen=True)
class ConfigValues:
    """Values by name, and where they stand.

    Attributes:
        values: By name.
        project: The project that gives them.
        file: The file that they are in, if that is not the project's own.
    """

    values: Mapping[str, object] = field(default_factory=dict)
    project: Project = field(default_factory=Project)
    file: Path | None = None

    def place(self, name: str) -> str:
        """Where a value stands, for people."""
        return str(self.file) if self.file is not None else self.project.place(CONFIG, name)


def config_values() -> ConfigValues:
    """What the project of the working directory says.

    Raises:
        ConfigurationError: If it cannot be read.
    """
    project = current()
    given = project.config
    if not isinstance(given, Path):
        return ConfigValues(given, project)
    if not given.is_file():
        raise project.refusal(
            f"there is no file {given}", "Write it, or correct the path, which is relative to this file.", CONFIG
        )
    return ConfigValues(read_values(given), project, given)


def truth(given: object) -> bool:
    """True or false, as people write them.

    Raises:
        ValueError: If it is neither.

    Example:
        >>> truth("yes"), truth("Off"), truth(True)
        (True, False, True)
    """
    text = str(given).lower()
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise ValueError(given)


def read_values(file: Path) -> dict[str, object]:
    """The values in a file, which is TOML, or JSON if its name ends so.

    Raises:
        ConfigurationError: If it cannot be read.
    """
    try:
        content = file.read_text(encoding="utf-8")
        document: Any = json.loads(content) if file.suffix == ".json" else tomllib.loads(content)
    except (OSError, ValueError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ConfigurationError(
            f"the configuration {file} cannot be read: {why}", hint="It must be TOML, or JSON in a file *.json."
        ) from error
    if not isinstance(document, dict):
        raise ConfigurationError(
            f"the configuration {file} is not a table of names and values", hint="Write lines such as: least = 100"
        )
    return document
