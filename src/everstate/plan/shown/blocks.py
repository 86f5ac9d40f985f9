"""What a text for people is made of: paragraphs of words, each with what it is, wrapped where they are printed.

Whoever prints chooses the colours and the width; Markdown is made of the same paragraphs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Style(StrEnum):
    """What a word is."""

    PLAIN = "plain"
    OUTPUT = "output"
    ACTION = "action"
    CATEGORY = "category"
    OLD = "old"
    NEW = "new"
    PLACE = "place"
    WARNING = "warning"
    CHANGED = "changed"
    SAME = "same"


@dataclass(frozen=True)
class Span:
    """Words of one style.

    Attributes:
        text: The words.
        style: What they are.
        whole: They are never torn apart: a command that is copied must be one line.
    """

    text: str
    style: Style = Style.PLAIN
    whole: bool = False


#: One line on the terminal.
Line: TypeAlias = tuple[Span, ...]
_COMMANDS: Final = re.compile(r"(everstate [a-z]+ .*?)(?=\. |\.?$)")
_WORDS: Final = re.compile(r"\s+|\S+")


@dataclass(frozen=True)
class Paragraph:
    """Some words that belong together.

    Attributes:
        spans: The words; none for an empty line.
        indent: How far it is moved in.
        hang: How much further the lines are moved in that follow the first.
        code: It is the user's own text, which is never wrapped.
    """

    spans: Line = ()
    indent: int = 0
    hang: int = 4
    code: bool = False

    def lines(self, width: int | None = None) -> Iterator[Line]:
        """Its lines, none of them wider than `width` unless a single word is."""
        begin = Span(" " * self.indent)
        whole = (begin, *self.spans) if self.indent else self.spans
        length = sum(len(span.text) for span in whole)
        if self.code or width is None or length <= width:
            yield whole
            return
        line: list[Span] = [begin] if self.indent else []
        used, gap = self.indent, ""
        for word, style in _words(self.spans):
            if not word.strip():
                gap = word
                continue
            if used > self.indent and used + len(gap) + len(word) > width:
                yield tuple(line)
                used, gap = self.indent + self.hang, ""
                line = [Span(" " * used)]
            line.append(Span(gap + word, style))
            used, gap = used + len(gap) + len(word), ""
        yield tuple(line)


BLANK: Final = Paragraph()


def wrapped(paragraphs: Iterable[Paragraph], width: int | None = None) -> tuple[Line, ...]:
    """Paragraphs as lines.

    Args:
        paragraphs: The paragraphs.
        width: How wide a line may be; None for any width.
    """
    return tuple(line for paragraph in paragraphs for line in paragraph.lines(width))


def plain(lines: Iterable[Line]) -> str:
    """Lines without their styles."""
    return "\n".join("".join(span.text for span in line).rstrip() for line in lines)


def sentence(*parts: str | Span, indent: int = 0, hang: int = 2) -> Paragraph:
    """A paragraph of plain words and others."""
    spans = tuple(part if isinstance(part, Span) else Span(part) for part in parts)
    return Paragraph(spans, indent, hang)


def with_commands(text: str, style: Style = Style.PLAIN) -> Line:
    """A sentence whose commands are never torn apart: they are copied.

    Example:
        >>> [span.text for span in with_commands("Go on: everstate run shop.py --approve. It is safe.")]
        ['Go on: ', 'everstate run shop.py --approve', '. It is safe.']
    """
    parts = _COMMANDS.split(text)
    return tuple(Span(part, style, whole=bool(number % 2)) for number, part in enumerate(parts) if part)


def _words(spans: Line) -> Iterator[tuple[str, Style]]:
    """Words and the gaps between them; a word may consist of several styles, which must not be torn apart."""
    glued: list[tuple[str, Style]] = [
        (part, span.style) for span in spans for part in ([span.text] if span.whole else _WORDS.findall(span.text))
    ]
    # A gap before or after a place is a place to wrap; where two spans touch there is none, so they go together as far
    # as it matters: "(" + "a.py:1" + ")" is short, and wrapped before "(".
    pending: list[tuple[str, Style]] = []
    for word, style in glued:
        if not word.strip():
            yield from _together(pending)
            pending = []
            yield word, style
        else:
            pending.append((word, style))
    yield from _together(pending)


def _together(parts: list[tuple[str, Style]]) -> Iterator[tuple[str, Style]]:
    if len(parts) <= 1:
        yield from parts
        return
    # The style of the longest part stands for all of them.
    yield "".join(word for word, _ in parts), max(parts, key=lambda part: len(part[0]))[1]
