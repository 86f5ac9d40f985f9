"""Writes a new project: a package with a service, its tests, and what goes with them."""

from __future__ import annotations

import keyword
import os
import re
import sys
import sysconfig
from importlib import resources
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from everstate.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable
    from pathlib import Path

_TEMPLATE: Final = "template"
#: Ends the name of each file of the template, so that no tool takes it for code of this package.
_ENDING: Final = ".txt"
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:[_-][a-z0-9]+)*")
_TAKEN: Final = sys.stdlib_module_names | {"everstate", "tests"}
#: Names of files that packaging or version control would treat in a way of its own.
_RENAMED: Final = {"gitignore": ".gitignore"}


def start_project(name: str, parent: Path) -> list[Path]:
    """Write a project into a folder of its name.

    Args:
        name: The project's name; that of its package has `_` for `-`.
        parent: Where the folder is made.

    Returns:
        The files that were written, relative to the folder.

    Raises:
        ConfigurationError: If the name cannot be that of a package, or there is something of that name.
    """
    package = name.replace("-", "_")
    unfit = not _NAME.fullmatch(name) or keyword.iskeyword(package)
    taken = not unfit and (package in _TAKEN or _is_installed(package))
    if unfit or taken:
        why = "is the name of another package" if taken else "cannot be the name of a package"
        raise ConfigurationError(
            f"the name {name!r} {why}",
            hint="Use lower-case letters, digits, '-' and '_', beginning with a letter, such as: order-totals",
        )
    folder = parent / name
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigurationError(f"{folder} already exists", hint="Choose another name, or move that one away.")
    written = []
    for path, content in _files():
        place = path.replace("/package/", f"/{package}/")
        file = folder / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content.replace("@NAME@", name).replace("@PACKAGE@", package), encoding="utf-8")
        written.append(file.relative_to(folder))
    return written


def _is_installed(package: str) -> bool:
    """Whether an import of that name would find a package that is installed, and not the project's own."""
    found = find_spec(package)
    places = [sysconfig.get_path(name) for name in ("purelib", "platlib")]
    files = [] if found is None else [found.origin, *(found.submodule_search_locations or ())]
    return any(file and file.startswith(f"{place}{os.sep}") for file in files for place in places)


def _files() -> Iterator[tuple[str, str]]:
    """The files of the template with their content, by their path."""
    waiting: list[tuple[str, Traversable]] = [("", resources.files("everstate.project") / _TEMPLATE)]
    while waiting:
        path, place = waiting.pop()
        if place.is_dir():
            waiting.extend((f"{path}{entry.name}/" if entry.is_dir() else path, entry) for entry in place.iterdir())
        elif place.name.endswith(_ENDING):
            name = place.name.removesuffix(_ENDING)
            yield f"{path}{_RENAMED.get(name, name)}", place.read_text(encoding="utf-8")
