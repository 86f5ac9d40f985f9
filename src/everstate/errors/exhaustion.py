"""Tells what has run out on the machine, or is not for this user, from what is damaged.

A full disk, a limit of open files and missing rights surface anywhere: as a number in Python, as a sentence of SQLite,
RocksDB or Arrow, as a line of a Java exception. Files are whole afterwards, and the cure is another one than that for
damage, so whoever names an error asks here first.
"""

from __future__ import annotations

import errno
import os
import re
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from everstate.errors import AccessError, DiskFullError, OpenFilesError, ResourceError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NUMBERS: Final[dict[int, type[ResourceError]]] = {
    errno.ENOSPC: DiskFullError,
    errno.EDQUOT: DiskFullError,
    errno.EFBIG: DiskFullError,
    errno.EMFILE: OpenFilesError,
    errno.ENFILE: OpenFilesError,
    errno.EACCES: AccessError,
    errno.EPERM: AccessError,
    errno.EROFS: AccessError,
}
#: A disk with less than this is full: files grow by some blocks at a time.
_LEAST: Final = 128 * 1024
#: A database has its own file, a write-ahead file, their index and for a moment a folder: one that is free is too few.
_FILES: Final = 4
#: How the system, SQLite and Java put it.
_WORDS: Final[dict[type[ResourceError], re.Pattern[str]]] = {
    DiskFullError: re.compile(
        r"No space left on device|[Dd]is[ck] quota exceeded|database or disk is full|SQLITE_FULL"
        r"|File too large|not enough space|ENOSPC|EDQUOT"
    ),
    OpenFilesError: re.compile(r"Too many open files|EMFILE|ENFILE"),
    AccessError: re.compile(
        r"\(Permission denied\)|PermissionError: \[Errno|AccessDeniedException|AccessControlException"
        r"|Read-only file system"
    ),
}
_HINTS: Final[dict[type[ResourceError], str]] = {
    DiskFullError: (
        "Nothing is damaged: free some space there, then run the service again; it picks up where it stopped."
    ),
    OpenFilesError: (
        "Nothing is damaged: raise the limit of open files (ulimit -n 65536), then run the service again; it picks up "
        "where it stopped."
    ),
    AccessError: (
        "Nothing is damaged: give this user the right to read and write there, or run it as a user who has it; "
        "it picks up where it stopped."
    ),
}
_REASONS: Final[dict[type[ResourceError], str]] = {
    DiskFullError: "no space is left on the disk",
    OpenFilesError: "too many files are open",
    AccessError: "this user has no right to it",
}


def exhaustion(error: BaseException) -> type[ResourceError] | None:
    """What has run out, if that is why an error was raised; looks at its causes, too.

    Example:
        >>> exhaustion(OSError(28, "No space left on device")).__name__
        'DiskFullError'
        >>> exhaustion(ValueError("not a number")) is None
        True
    """
    for one in chain(error):
        if isinstance(one, ResourceError):
            return type(one)
        if isinstance(one, OSError) and one.errno in _NUMBERS:
            return _NUMBERS[one.errno]
        found = exhaustion_in(str(one))
        if found is not None:
            return found
    return None


def exhaustion_in(text: str) -> type[ResourceError] | None:
    """What has run out according to the text of an error."""
    return next((kind for kind, words in _WORDS.items() if words.search(text)), None)


def exhausted(kind: type[ResourceError], what: str) -> ResourceError:
    """The error for something that failed because it ran out.

    Example:
        >>> print(exhausted(DiskFullError, "the query of output 'totals' failed"))
        the query of output 'totals' failed: no space is left on the disk
          Nothing is damaged: free some space there, then run the service again; it picks up where it stopped.
    """
    return kind(f"{what}: {_REASONS.get(kind, kind.__name__)}", hint=_HINTS.get(kind, _HINTS[DiskFullError]))


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Name what runs out meanwhile; other errors pass as they are.

    Raises:
        ResourceError: If something did.
    """
    try:
        yield
    except OSError as error:
        lacking = exhaustion(error)
        if lacking is None:
            raise
        raise exhausted(lacking, what) from error


def shortage(path: Path) -> type[ResourceError] | None:
    """What there is none of at this moment for a file and those beside it of its name: space, or open files.

    For errors that do not say why something failed: whether a file of that length could grow is tried.
    """
    try:
        longest = max((each.stat().st_size for each in path.parent.glob(f"{path.name}*")), default=0)
        with tempfile.TemporaryFile(dir=path.parent) as probe:
            probe.seek(longest)  # what lies before takes no space
            probe.write(bytes(_LEAST))
            probe.flush()
            _take_files(probe.fileno())
    except OSError as error:
        return _NUMBERS.get(error.errno or 0)
    return None


def _take_files(handle: int) -> None:
    """Open as many files as a database has at a time, and close them."""
    taken: list[int] = []
    try:
        while len(taken) < _FILES:
            taken.append(os.dup(handle))
    finally:
        for each in taken:
            os.close(each)


def chain(error: BaseException) -> Iterator[BaseException]:
    """An error and what caused it, each once."""
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        yield following
        following = following.__cause__ or following.__context__
