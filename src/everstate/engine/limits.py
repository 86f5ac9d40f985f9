"""Watches what the machine gives: open files and space on disks. What is nearly used up is said before it fails."""

from __future__ import annotations

import contextlib
import logging
import shutil
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import psutil

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

logger = logging.getLogger(__name__)

#: Between two looks.
_LOOK_S: Final = 10.0
#: Of the open files that a process may have.
_MANY: Final = 0.8
#: A disk is nearly full with less than this share free, unless that is still much.
_LITTLE: Final = 0.05
_MUCH: Final = 5 * 1024**3


@dataclass
class Limits:
    """Warns once of each limit that is near, and again if it was far in between.

    Attributes:
        folders: What each folder is for, by its path; those that share a disk are named together.
        processes: The processes whose open files count: what each is called, by its number.
        clock: Gives seconds.
    """

    folders: dict[Path, str]
    processes: Callable[[], dict[int, str]]
    clock: Callable[[], float] = time.monotonic
    _warned: set[str] = field(default_factory=set)
    _looked: float | None = None

    def look(self) -> None:
        """Warn of what is near; looks every few seconds, however often it is called."""
        now = self.clock()
        if self._looked is not None and now - self._looked < _LOOK_S:
            return
        self._looked = now
        found = dict([*space_warnings(self.folders), *file_warnings(self.processes())])
        for name, text in found.items():
            if name not in self._warned:
                logger.warning("%s", text)
        self._warned = set(found)


def raise_open_files() -> None:
    """Let this process, and those that it starts, open as many files as the system allows it to."""
    try:
        import resource  # noqa: PLC0415 - there is none on Windows
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        # Some systems call the hard limit infinite and refuse it all the same.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def space_warnings(folders: dict[Path, str]) -> list[tuple[str, str]]:
    """A warning by name for each disk that is nearly full."""
    disks: dict[int, tuple[int, int, list[str]]] = {}
    for path, purpose in folders.items():
        with contextlib.suppress(OSError):
            there = next(place for place in (path, *path.parents) if place.exists())
            usage = shutil.disk_usage(there)
            disks.setdefault(there.stat().st_dev, (usage.free, usage.total, []))[2].append(f"{purpose} ({path})")
    text = "The disk of %s is nearly full: %s MB of %s MB are free. Free some space before the service has to stop."
    return [
        (f"disk {disk}", text % (" and ".join(purposes), f"{free / 1e6:,.0f}", f"{total / 1e6:,.0f}"))
        for disk, (free, total, purposes) in disks.items()
        if is_little(free, total)
    ]


def is_little(free: int, total: int) -> bool:
    """Whether so many free bytes of a disk are worth a warning.

    Example:
        >>> is_little(10**9, 10**11), is_little(10**10, 10**12), is_little(10**7, 10**8)
        (True, False, False)
    """
    return free < total * _LITTLE and free < _MUCH


def file_warnings(processes: dict[int, str]) -> Iterable[tuple[str, str]]:
    """A warning by name for each process that has nearly as many files open as it may."""
    for number, name in processes.items():
        with contextlib.suppress(psutil.Error, OSError, AttributeError):  # limits are not known everywhere
            process = psutil.Process(number)
            opened, most = process.num_fds(), process.rlimit(psutil.RLIMIT_NOFILE)[0]
            if are_many(opened, most):
                facts = f"{name} (process {number}) has {opened:,} of at most {most:,} files open."
                yield f"files {number}", f"{facts} Raise the limit before the service has to stop: ulimit -n 65536"


def are_many(opened: int, most: int) -> bool:
    """Whether so many open files are worth a warning; a limit below zero is none.

    Example:
        >>> are_many(900, 1024), are_many(400, 1024), are_many(10**6, -1)
        (True, False, False)
    """
    return 0 < most < opened / _MANY


def watched_folders(named: Sequence[tuple[Path | None, str]]) -> dict[Path, str]:
    """Folders by their path, without those that are not used."""
    return {path.absolute(): purpose for path, purpose in named if path is not None}
