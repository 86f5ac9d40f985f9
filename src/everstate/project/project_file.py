"""The project that the working directory lies in, as its file describes it."""

from __future__ import annotations

import difflib
import os
import tomllib
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from everstate.errors import ConfigurationError
from everstate.location import Location
from everstate.project.lines import lines_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

#: The file of a project, and the table in a file that it may share with others.
FILE: Final = "everstate.toml"
SHARED: Final = "pyproject.toml"
_TABLE: Final = ("tool", "everstate")
#: What a file may say besides settings by their names.
LOG: Final = "log"
SERVICES: Final = "services"
CONFIG: Final = "config"
#: The folder of the embedded log, where nothing else is said.
DEFAULT_LOG: Final = ".everstate"
_PATHS: Final = frozenset({LOG, "state_dir", "scratch_dir"})


@dataclass(frozen=True)
class Project:
    """What a project's file says; the empty one if there is none.

    Attributes:
        file: The file; None if there is none.
        values: What it says, by name.
        lines: The line of each key by its path.
    """

    file: Path | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    lines: Mapping[tuple[str, ...], int] = field(default_factory=dict)

    @property
    def folder(self) -> Path | None:
        """Where the project is: relative paths begin here."""
        return None if self.file is None else self.file.parent

    @property
    def services(self) -> Mapping[str, str]:
        """What is loaded for a service's name: `package.module:name`, or a file.

        Raises:
            ConfigurationError: If the file says something else of one.
        """
        services = self.values.get(SERVICES, {})
        if not isinstance(services, dict):
            hint = 'Write a table: [services], and in it: orders = "shop.orders:app"'
            raise self.refusal(f"{SERVICES} is not a table of names", hint, SERVICES)
        for name, target in services.items():
            if not isinstance(target, str) or not target:
                hint = f'Write where it is defined: {name} = "package.module:app", or a file.'
                raise self.refusal(f"service {name} is not text", hint, SERVICES, name)
        return services

    @property
    def config(self) -> Mapping[str, object] | Path:
        """Values for `Service.config`, or the file that they are in.

        Raises:
            ConfigurationError: If it is neither.
        """
        config = self.values.get(CONFIG, {})
        if isinstance(config, str) and config and self.folder is not None:
            return self.folder / config
        if not isinstance(config, dict):
            raise self.refusal(f"{CONFIG} is neither a table nor a file", 'Write: config = "config.toml"', CONFIG)
        return config

    def value(self, name: str) -> Any:
        """A setting; a relative path begins at the file's folder. None if the file does not say."""
        value = self.values.get(name)
        if self.folder is None or value is None or name not in _PATHS:
            return value
        if not isinstance(value, str) or not value:
            raise self.refusal(f"{name} is not a folder", f'Write it as text: {name} = "data"', name)
        return value if "://" in value else str(Path(os.path.normpath(self.folder / value)))

    def require_known(self, settings: Collection[str]) -> None:
        """Refuse names that mean nothing: a setting that is misspelt would be without effect, in silence.

        Args:
            settings: The names of settings.

        Raises:
            ConfigurationError: If there is one.
        """
        known = {*settings, LOG, SERVICES, CONFIG}
        for name in self.values:
            if name not in known:
                close = difflib.get_close_matches(name.replace("-", "_"), known, 1)
                listed = f"The names are: {', '.join(sorted(known))}."
                raise self.refusal(f"unknown setting {name}", f"Did you mean {close[0]}?" if close else listed, name)

    def place(self, *path: str) -> str:
        """Where something stands, for people.

        Example:
            >>> Project(Path("everstate.toml"), {"log": "x"}, {("log",): 3}).place("log")
            'everstate.toml line 3'
        """
        line = self._line(path)
        name = "" if self.file is None else _shown(self.file)
        return f"{name} line {line}" if line else name

    def refusal(self, message: str, hint: str, *path: str) -> ConfigurationError:
        """An error about something that the file says, at its line."""
        location = None if self.file is None else Location(_shown(self.file), self._line(path) or 1)
        return ConfigurationError(message, location=location, hint=hint)

    def _line(self, path: tuple[str, ...]) -> int | None:
        """The line of a key; of the table that it stands in, if it is written there in one line."""
        prefix = _TABLE if self.file is not None and self.file.name == SHARED else ()
        paths = ((*prefix, *path[:length]) for length in range(len(path), 0, -1))
        return next((self.lines[one] for one in paths if one in self.lines), None)


def current() -> Project:
    """The project of the working directory: the nearest file, in this folder or above.

    Raises:
        ConfigurationError: If it cannot be read.
    """
    try:
        here = Path.cwd()
    except OSError:
        return Project()  # a folder that was deleted
    for folder in (here, *here.parents):
        for name in (FILE, SHARED):
            file = folder / name
            if _is_ours(file, given=folder == here):
                project = _read(file, _stamp(file))
                if project is not None:
                    return project
    return Project()


def _is_ours(file: Path, *, given: bool) -> bool:
    """Whether a file is there, and not a stranger's: one in `/tmp` would decide which code a command runs below."""
    try:
        about = file.stat()
    except OSError:
        return False
    return given or not hasattr(os, "geteuid") or os.geteuid() == 0 or _owner(about) in {0, os.geteuid()}


def _owner(about: os.stat_result) -> int:
    return about.st_uid


def _stamp(file: Path) -> tuple[int, int]:
    about = file.stat()
    return about.st_mtime_ns, about.st_size


@lru_cache(maxsize=8)
def _read(file: Path, stamp: tuple[int, int]) -> Project | None:
    """What a file says; None for one that is not about Everstate. Read again when it has changed."""
    del stamp
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError):
        text = ""
    if file.name == SHARED and "everstate" not in text:
        return None  # whatever it says, and whether it is TOML, is for others
    try:
        values: Any = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ConfigurationError(f"{_shown(file)} cannot be read: {why}", hint="It must be TOML.") from error
    for part in _TABLE if file.name == SHARED else ():
        values = values.get(part) if isinstance(values, dict) else None
    if not isinstance(values, dict):
        return None
    return Project(file, values, lines_of(text))


def _shown(file: Path) -> str:
    """A file as one would type it here."""
    try:
        return os.path.relpath(file) if file.is_absolute() else str(file)
    except (OSError, ValueError):
        return str(file)
