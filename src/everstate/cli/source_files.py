"""The user's modules as their files are now.

Python keeps compiled modules, and takes one to be current if the source is as long as the one that it was made of and
dates from the same second. A version of a service that takes the place of another with `mv`, out of an archive or from
a build that dates all files alike would be that other version, and its plan would say that nothing has changed.
"""

from __future__ import annotations

import sys
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES, ExtensionFileLoader, FileFinder, SourceFileLoader
from typing import TYPE_CHECKING

from everstate.fingerprints.outside import origins

if TYPE_CHECKING:
    from importlib.abc import PathEntryFinder
    from types import CodeType


class SourceLoader(SourceFileLoader):
    """Compiles a module each time that it is loaded."""

    def get_code(self, fullname: str) -> CodeType:
        """What the source says."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


_find = FileFinder.path_hook((ExtensionFileLoader, EXTENSION_SUFFIXES), (SourceLoader, SOURCE_SUFFIXES))


def _in_users_folder(folder: str) -> PathEntryFinder:
    if not origins.is_users_folder(folder):
        raise ImportError(folder)  # the next hook takes it
    return _find(folder)


def go_by_source() -> None:
    """From now on, whatever this process imports from folders of the user's is what the files say."""
    if _in_users_folder in sys.path_hooks:
        return
    sys.path_hooks.insert(0, _in_users_folder)
    for folder in [known for known in sys.path_importer_cache if origins.is_users_folder(known)]:
        del sys.path_importer_cache[folder]
