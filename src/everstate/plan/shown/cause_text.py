"""What was changed, for people: the edited line, old and new, and the way from there to a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from everstate.plan.categories import Category
from everstate.plan.shown.blocks import BLANK, Paragraph, Span, Style, sentence
from everstate.plan.words import counted, listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from everstate.plan.categories import Difference
    from everstate.plan.edits import Edit
    from everstate.plan.shown.causes import Cause

_REMOVED: Final = frozenset({Category.REMOVED_SOURCE, Category.LESS_STATE})
#: The sentence has what it was, or is.
_SAID: Final = frozenset({Category.NEW_SOURCE, Category.REMOVED_SOURCE})
_INDENT: Final = 2
#: Ways to steps that are shown of one cause.
_WAYS: Final = 3
_KINDS: Final = {"closure": "value of ", "default": "default ", "column": "column "}


def causes_paragraphs(causes: Sequence[Cause], root: str) -> Iterator[Paragraph]:
    """All causes, with an empty line between them; what several have in common is said once.

    Args:
        causes: The causes.
        root: The folder that places are shown relative to.
    """
    for number, cause in enumerate(causes):
        following = causes[number + 1] if number + 1 < len(causes) else None
        goes_on = following is not None and _belong_together(cause, following)
        yield from _cause(cause, root, concerns=not goes_on)
        if following is not None and not goes_on:
            yield BLANK


def _belong_together(one: Cause, other: Cause) -> bool:
    """Whether one line says of both what they concern: columns of one schema, for instance."""
    lines = [line for cause in (one, other) if cause.edit is not None for line in cause.edit.diff]
    return not lines and (one.categories, one.outputs) == (other.categories, other.outputs)


def _cause(cause: Cause, root: str, *, concerns: bool) -> Iterator[Paragraph]:
    if cause.edit is None:
        yield Paragraph((*_difference(cause.difference, root),), _INDENT)
    else:
        yield Paragraph((*_headline(cause.edit, cause, root),), _INDENT)
    if concerns:
        kinds = ", ".join(cause.categories)
        yield sentence(Span(kinds, Style.CATEGORY), f" of {listed(tuple(cause.outputs))}", indent=_INDENT + 2)
    if cause.edit is not None:
        for line in cause.edit.diff:
            style = {"-": Style.OLD, "+": Style.NEW}.get(line[:1], Style.PLACE)
            shown = line if line.startswith("...") else f"{line[:1]} {line[1:]}".rstrip()
            yield Paragraph((Span(shown, style),), _INDENT + 2, code=True)


def place_of(location: str, root: str) -> str:
    """A place relative to a folder."""
    return location.removeprefix(f"{root}/") if root else location


def _headline(edit: Edit, cause: Cause, root: str) -> Iterator[Span]:
    yield Span(f"{_KINDS.get(edit.kind, '')}{edit.name}")
    if edit.old is not None or edit.new is not None:
        joint = "" if edit.name.endswith("=") else " "
        if edit.old is None:
            yield Span(f"{joint}added: ")
            yield Span(edit.new or "", Style.NEW)
        elif edit.new is None:
            yield Span(f"{joint}removed: ")
            yield Span(edit.old, Style.OLD)
        else:
            yield from (Span(joint), Span(edit.old, Style.OLD), Span(" -> "), Span(edit.new, Style.NEW))
    if edit.location:
        gone = bool(edit.diff) and all(line.startswith("-") for line in edit.diff)
        removed = gone or (edit.old is not None and edit.new is None)
        place = f"{'was at ' if removed else ''}{place_of(edit.location, root)}"
        yield from (Span(" ("), Span(place, Style.PLACE), Span(")"))
    if edit.kind != "call" and (edit.kind != "column" or edit.chain):
        for number, way in enumerate(cause.ways[:_WAYS]):
            yield from _way(way, root, first=not number)
        if len(cause.ways) > _WAYS:
            yield Span(f"; and {counted(len(cause.ways) - _WAYS, 'more step')}")


def _way(way: tuple[tuple[str, ...], str, str], root: str, *, first: bool) -> Iterator[Span]:
    chain, step, place = way
    through = "".join(f" <- {name}" for name in chain)
    word = " in " if chain else " <- "
    yield Span(f"{'' if first else '; also'}{through}{word}{step} (")
    yield Span(place_of(place, root), Style.PLACE)
    yield Span(")")


def _difference(difference: Difference, root: str) -> Iterator[Span]:
    """The sentence of a difference whose edit cannot be told."""
    cause = difference.cause
    if difference.category in _SAID or (difference.old is None and difference.new is None):
        yield Span(cause.removesuffix("."))
    else:
        yield Span(f"{cause.removesuffix('.')}: ")
        if difference.old is not None:
            yield Span(difference.old, Style.OLD)
        if difference.new is not None:
            yield Span(" -> " if difference.old is not None else "")
            yield Span(difference.new, Style.NEW)
        else:
            yield Span(" -> nothing")
    if difference.location:
        removed = difference.category in _REMOVED or (difference.old is not None and difference.new is None)
        yield Span(" (")
        yield Span(f"{'was at ' if removed else ''}{place_of(difference.location, root)}", Style.PLACE)
        yield Span(")")
