"""Builds the documentation as a site in build/site: the pages of the repository, and a reference from the docstrings.

Fails on a link or an anchor that leads nowhere, and on a public name without a place in the reference.
"""

from __future__ import annotations

import inspect
import logging
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

import everstate
import everstate.testing

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "build" / "pages"
REFERENCE = "docs/reference/api.md"
_LINK = re.compile(r"(?:\]\(|\bsrc(?:set)?=\")(?!https?://|#|mailto:)(?P<target>[^)#\s\"]+)")

#: Sections of the site: a page of its own, or a folder whose README leads through the others.
SECTIONS: dict[str, str | dict[str, str]] = {
    "Everstate": "README.md",
    "Concepts": "docs/concepts",
    "Guides": "docs/guides",
    "Reference": "docs/reference",
    "Decisions": "docs/decisions",
    "Glossary": "docs/glossary.md",
    "Project": {
        "Architecture": "ARCHITECTURE.md",
        "Contributing": "CONTRIBUTING.md",
        "Changes": "CHANGELOG.md",
        "Security": "SECURITY.md",
    },
}


def gather() -> None:
    """Copies all pages, and the files that they link to, to one folder."""
    shutil.rmtree(PAGES, ignore_errors=True)
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        _copy(page)
        for found in _LINK.finditer(page.read_text(encoding="utf-8")):
            linked = (page.parent / found["target"]).resolve()
            if linked.is_file() and linked.suffix != ".md":
                _copy(linked)


def _copy(file: Path) -> None:
    copy = PAGES / file.relative_to(ROOT)
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, copy)


def reference() -> str:
    """The page that the docstrings of all public names become."""
    lines = ["# Python API", "", "All that `import everstate as es` offers, from its docstrings.", ""]
    for name in everstate.__all__:
        value = getattr(everstate, name)
        home = inspect.getmodule(value)
        if inspect.ismodule(value):
            lines += [line for part in value.__all__ for line in _entry(getattr(value, part))]
        elif home is not None and home.__name__.startswith("everstate"):
            lines += _entry(value)
        else:
            lines += [f"## {name}", "", f"Polars' own `pl.{name}`.", ""]
    return "\n".join(lines)


def _entry(value: Any) -> list[str]:
    return [f"::: {value.__module__}.{value.__qualname__}", ""]


def navigation() -> list[dict[str, Any]]:
    """Which page stands where; a folder's pages in the order in which its README names them, then the others."""
    return [{title: _place(place)} for title, place in SECTIONS.items()]


def _place(place: str | dict[str, str]) -> Any:
    if isinstance(place, dict):
        return [{title: page} for title, page in place.items()]
    if place.endswith(".md"):
        return place
    overview = (PAGES / place / "README.md").read_text(encoding="utf-8")
    named = list(dict.fromkeys(re.findall(r"\]\(([\w-]+\.md)", overview)))
    others = sorted(page.name for page in (PAGES / place).glob("*.md") if page.name not in {*named, "README.md"})
    return [f"{place}/{page}" for page in ("README.md", *named, *others)]


def main() -> int:
    """Builds the site."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    gather()
    (PAGES / REFERENCE).write_text(reference(), encoding="utf-8")
    config = load_config(str(ROOT / "mkdocs.yml"), nav=navigation(), strict=True)
    try:
        config.plugins.on_startup(command="build", dirty=False)
        build(config)
    except Abort as error:
        print(f"The site was not built: {error}", file=sys.stderr)
        return 1
    finally:
        config.plugins.on_shutdown()
    print(f"The site is in {Path(config.site_dir).relative_to(ROOT)}: open index.html there.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
