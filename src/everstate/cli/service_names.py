"""From what a user types for a service to the Python module that defines it.

A file that lies in a package is imported by its dotted name, as Python itself would: so relative imports work, and it
is the same module whether it was named as a file or as `package.module`.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import importlib.util
import pkgutil
import re
import sys
from dataclasses import dataclass
from importlib.machinery import SOURCE_SUFFIXES, PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Final

from everstate.cli.source_files import SourceLoader, go_by_source
from everstate.errors import DefinitionError
from everstate.fingerprints.outside import origins

if TYPE_CHECKING:
    from collections.abc import Iterable
    from importlib.machinery import ModuleSpec
    from types import ModuleType

#: Files whose folder is where a project's packages begin.
_MARKERS: Final = ("everstate.toml", "pyproject.toml", "setup.py", "setup.cfg", ".git")
_DOTTED: Final = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_ATTRIBUTE: Final = re.compile(r"[\w.-]+")


@dataclass(frozen=True)
class Target:
    """Where a service is defined.

    Attributes:
        place: The file or the dotted module, as it was typed.
        file: The file; None for a module.
        attribute: The name in it, or the service's name; None if there is only one service.
    """

    place: str
    file: Path | None
    attribute: str | None = None

    @classmethod
    def of(cls, text: str, folder: Path | None = None) -> Target:
        """Read `package.module:name`, or a file, with or without a name.

        Args:
            text: What was typed.
            folder: What a relative path of a file begins at; by default the working directory.

        Raises:
            DefinitionError: If it is neither.

        Example:
            >>> Target.of("shop.orders:app")
            Target(place='shop.orders', file=None, attribute='app')
            >>> Target.of("src/shop/orders.py").file
            PosixPath('src/shop/orders.py')
        """
        place, sign, attribute = text.rpartition(":")
        named = bool(sign) and bool(_ATTRIBUTE.fullmatch(attribute)) and not _path(text, folder).exists()
        place = place if named else text
        path = _path(place, folder)
        found = cls(place, path, attribute) if named else cls(place, path)
        if place and (path.suffix == ".py" or path.is_file() or re.search(r"[/\\]", place)):
            return found
        if not _DOTTED.fullmatch(place):
            raise DefinitionError(
                f"{text!r} names neither a file nor a module",
                hint="Write package.module:app, or the Python file that defines the service.",
            )
        return Target(place, None, found.attribute)


def _path(text: str, folder: Path | None) -> Path:
    return Path(text) if folder is None else folder / text


def import_file(file: Path, folders: Iterable[Path]) -> ModuleType:
    """The module that a file is; one in a package by its dotted name.

    Args:
        file: The file, which is there.
        folders: What is searched for imports besides the file's own folder.

    Raises:
        DefinitionError: If it is no Python file, or Python finds another file by that name.
    """
    go_by_source()
    path = file.resolve()
    root, name = package_of(path)
    for folder in (path.parent, *folders):
        _search(folder, last=True)
    in_package = "." in name or path.stem == "__init__"
    if not in_package or _is_taken(name.partition(".")[0], root):
        return _import_flat(file, path)
    _search(root)
    module = _import_fresh(name)
    if Path(module.__file__ or "").resolve() != path:
        raise DefinitionError(
            f"{file} is not what Python imports as {name}: that is {module.__file__}",
            hint="Two folders have a package of this name; rename one, or run the file where only one is on the path.",
        )
    return module


def import_module(name: str, folders: Iterable[Path]) -> ModuleType:
    """A module by its dotted name, searched for in these folders first.

    Raises:
        DefinitionError: If there is none.
    """
    go_by_source()
    places = list(folders)
    for folder in reversed(places):
        _search(folder)
    try:
        return _import_fresh(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name != missing and not name.startswith(f"{missing}."):
            raise
        raise DefinitionError(f"there is no module {missing}", hint=_alternatives(missing, places)) from error


def is_module(name: str, folders: Iterable[Path]) -> bool:
    """Whether there is a module of this name, as far as that can be told without importing anything."""
    places: list[str] | None = [*(str(folder) for folder in folders), *sys.path]
    for part in name.split("."):
        found = PathFinder.find_spec(part, places)
        if found is None:
            return False
        places = list(found.submodule_search_locations or ())
    return True


def package_of(path: Path) -> tuple[Path, str]:
    """The folder where a file's top package lies, and the dotted name of the file.

    Folders with an `__init__.py` are packages. Where the file imports relatively from a folder without one, that is a
    namespace package, which begins below the nearest folder that Python searches, that is called `src`, or that looks
    like the beginning of a project.
    """
    names = [] if path.stem == "__init__" else [path.stem]
    folder, packages = path.parent, 0
    while (folder / "__init__.py").is_file() and folder.name.isidentifier():
        names.append(folder.name)
        folder, packages = folder.parent, packages + 1
    above, further = folder, list[str]()
    while packages + len(further) < _relative_level(path) or (further and not _begins_packages(above)):
        if not above.name.isidentifier():
            return folder, ".".join(reversed(names))
        further.append(above.name)
        above = above.parent
    return (above if further else folder), ".".join(reversed([*names, *further]))


def _relative_level(path: Path) -> int:
    """How many packages a file must lie in for its relative imports to mean something."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return 0  # it cannot be imported either, and then the message says why
    return max((node.level for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)), default=0)


def _begins_packages(folder: Path) -> bool:
    searched = any(entry and Path(entry).resolve() == folder for entry in sys.path) or folder == Path.cwd()
    return folder.name == "src" or searched or any((folder / marker).exists() for marker in _MARKERS)


def _search(folder: Path, *, last: bool = False) -> None:
    """Put a folder on the path: first, or last so that nothing that is found without it is found otherwise."""
    entry = str(folder.resolve())
    if last:
        if entry not in sys.path:
            sys.path.append(entry)
        return
    if entry in sys.path:
        sys.path.remove(entry)
    sys.path.insert(0, entry)


def _import_flat(file: Path, path: Path) -> ModuleType:
    """A file that is no part of a package, with its neighbours, as `python FILE` does."""
    loader = SourceLoader(_flat_name(path), str(path))
    spec = importlib.util.spec_from_file_location(loader.name, path, loader=loader)
    if spec is None or path.suffix not in SOURCE_SUFFIXES:
        raise DefinitionError(f"{file} is not a Python file", hint="Give it a name that ends in .py.")
    module = importlib.util.module_from_spec(spec)
    _search(path.parent)
    # Workers get it by value from here.
    sys.modules[spec.name] = module
    try:
        loader.exec_module(module)
    except BaseException:
        sys.modules.pop(spec.name, None)
        raise
    return module


def _flat_name(path: Path) -> str:
    """The file's own name, unless another module has it: a service in `json.py` must not replace Python's."""
    known = sys.modules.get(path.stem)
    taken = known is not None and getattr(known, "__file__", None) != str(path)
    return f"everstate_service_{path.stem}" if taken else path.stem


def _import_fresh(name: str) -> ModuleType:
    """Import a module as its file is now; its package from where it is found now, if that is elsewhere by now."""
    importlib.invalidate_caches()
    top = name.partition(".")[0]
    known = sys.modules.get(top)
    if known is not None and origins.of_loaded(known).kind == "user":
        found = PathFinder.find_spec(top)
        moved = found is not None and _places(found) != _places(known.__spec__)
        for loaded in list(sys.modules):
            if loaded == name or (moved and f"{loaded}.".startswith(f"{top}.")):
                del sys.modules[loaded]
    return importlib.import_module(name)


def _is_taken(top: str, root: Path) -> bool:
    """Whether a package has the name of one that is loaded and is not the user's, such as Python's `json`."""
    known = sys.modules.get(top)
    if known is None:
        return top in sys.stdlib_module_names
    inside = any(Path(place).resolve().is_relative_to(root) for place in _places(known.__spec__))
    return not inside and origins.of_loaded(known).kind != "user"


def _places(spec: ModuleSpec | None) -> list[str]:
    """Where a top module or package lies."""
    if spec is None:
        return []
    return list(spec.submodule_search_locations or ()) or [place for place in [spec.origin] if place]


def _alternatives(missing: str, folders: list[Path]) -> str:
    """What to do about a module that is not there."""
    parent, _, last = missing.rpartition(".")
    paths = list(getattr(sys.modules.get(parent), "__path__", ())) if parent else [str(folder) for folder in folders]
    names = [found.name for found in pkgutil.iter_modules(paths)]
    close = difflib.get_close_matches(last, names, 1)
    if close:
        return f"Did you mean {'.'.join(filter(None, [parent, close[0]]))}?"
    if parent:
        return f"{parent} has: {', '.join(sorted(names)) or 'no modules'}."
    searched = ", ".join(str(folder) for folder in folders)
    return f"Looked for in {searched} and among installed packages. Run it in the project's folder, or name a file."
