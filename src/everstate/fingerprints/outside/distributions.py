"""Installed packages: which one a file belongs to, its version, and what it needs in turn."""

from __future__ import annotations

import re
import zoneinfo
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Final

_SITES: Final = ("site-packages", "dist-packages")
_NAME: Final = re.compile(r"^\s*([A-Za-z0-9][A-Za-z0-9._-]*)")


def canonical(name: str) -> str:
    """The one spelling of a distribution's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def owner_of(path: Path) -> str | None:
    """The distribution that installed a file; None if none says so."""
    place = next(n for n, part in reversed(list(enumerate(path.parts))) if part in _SITES)
    site, inside = Path(*path.parts[: place + 1]), "/".join(path.parts[place + 1 :])
    return next((name for name, record in _records(site) if f"\n{inside}," in record), None)


@cache
def _records(site: Path) -> tuple[tuple[str, str], ...]:
    """Names and lists of files of the distributions in a folder, likely owners of large packages first."""
    found = []
    for record in sorted(site.glob("*.dist-info/RECORD")):
        name = record.parent.name.removesuffix(".dist-info").rpartition("-")[0]
        found.append((canonical(name), "\n" + record.read_text(encoding="utf-8", errors="replace")))
    return tuple(found)


@cache
def owner_of_top(name: str) -> str | None:
    """The distribution of a module that has not been imported, by the first part of its name."""
    if not name.isidentifier():
        return None
    for dist in metadata.distributions():
        files = dist.read_text("RECORD") or ""
        if re.search(rf"^{name}(/|\.py,|\.[\w-]*(so|pyd),)", files, flags=re.MULTILINE):
            return canonical(dist.metadata["Name"])
    return None


@cache
def versions_of(name: str) -> tuple[tuple[str, str], ...]:
    """A distribution and those it needs, in turn, as (name, version); what is not installed is left out."""
    found: dict[str, str] = {}
    waiting = [name]
    while waiting:
        current = canonical(waiting.pop())
        if current in found:
            continue
        try:
            dist = metadata.distribution(current)
        except metadata.PackageNotFoundError:
            continue
        found[current] = dist.version
        waiting.extend(_required(dist))
    return tuple(sorted(found.items()))


def _required(dist: metadata.Distribution) -> list[str]:
    needed = [text for text in dist.requires or [] if "extra ==" not in text and "extra==" not in text]
    return [match[1] for match in map(_NAME.match, needed) if match is not None]


@cache
def zone_data_version() -> str:
    """The version of the time zone data that Python reads: the system's where there is one, else tzdata's."""
    for folder in zoneinfo.TZPATH:
        listing = Path(folder) / "tzdata.zi"
        if listing.is_file():
            with listing.open(encoding="utf-8") as lines:
                return lines.readline().removeprefix("#").removeprefix(" version").strip()
        if Path(folder).is_dir():
            return "system"
    try:
        return metadata.version("tzdata")
    except metadata.PackageNotFoundError:
        return ""
