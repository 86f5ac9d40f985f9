"""A plan as Markdown, for the comment of a pull request: the same words, with the user's text in blocks of code."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from everstate.plan.shown.blocks import Style, plain, wrapped
from everstate.plan.text import paragraphs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everstate.plan.actions import Plan
    from everstate.plan.guards import Limits
    from everstate.plan.shown.blocks import Paragraph, Span

#: What Markdown would take for something else than text.
_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>#|~])")
#: What is shown as code.
_CODE: Final = frozenset({Style.OLD, Style.NEW, Style.PLACE, Style.OUTPUT})
_COMMAND: Final = "everstate "
_FENCE: Final = "````"


def markdown(plan: Plan, *, limits: Limits | None = None, root: str = "") -> str:
    """A plan as Markdown.

    Args:
        plan: The plan.
        limits: How many tombstones are too many.
        root: The folder that places are shown relative to.
    """
    return "\n".join(_lines(list(paragraphs(plan, limits=limits, root=root)))).rstrip() + "\n"


def _lines(known: list[Paragraph]) -> Iterator[str]:
    fenced = 0  # how far a block of code that is open is moved in, and one
    for number, paragraph in enumerate(known):
        if paragraph.code:
            if not fenced:
                fenced = 2 * _depth(paragraph) + 1
                yield f"{' ' * (fenced - 1)}{_FENCE}diff"
            yield f"{' ' * (fenced - 1)}{plain(wrapped([paragraph]))[paragraph.indent :]}"
            continue
        if fenced:
            yield f"{' ' * (fenced - 1)}{_FENCE}"
            fenced = 0
        words = "".join(map(_span, paragraph.spans)).strip()
        if number == 0:
            yield f"### {words}"
        elif not paragraph.spans:
            yield ""
        elif not paragraph.indent:
            yield from (f"**{words}**" if words.endswith(":") else words, "")
        else:
            yield f"{' ' * (2 * (_depth(paragraph) - 1))}- {words}"
    if fenced:
        yield f"{' ' * (fenced - 1)}{_FENCE}"


def _depth(paragraph: Paragraph) -> int:
    """How deep in lists a paragraph is: causes and outputs, what is said of them, samples."""
    return 1 if paragraph.indent <= 2 else 2 if paragraph.indent <= 6 else 3


def _span(span: Span) -> str:
    text = span.text
    if not (span.style in _CODE or text.startswith(_COMMAND)) or not text.strip():
        return _SPECIAL.sub(r"\\\1", text)
    inner = text.strip()
    tick = "``" if "`" in inner else "`"
    pad = " " if "`" in inner else ""
    before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    return f"{before}{tick}{pad}{inner}{pad}{tick}{after}"
