"""One key under both versions, for people: field by field, and the records that it is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from everstate.plan.shown.blocks import Paragraph, Span, Style, sentence
from everstate.plan.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everstate.plan.preview import Contribution, Explanation, FieldChange

_CHANGES: Final[dict[str, tuple[str, Style, str]]] = {
    "new": ("+", Style.NEW, "is new"),
    "changed": ("~", Style.CHANGED, "changes"),
    "tombstone": ("-", Style.OLD, "gets a tombstone"),
    "unchanged": ("=", Style.SAME, "does not change"),
    "absent": ("=", Style.SAME, "is in neither version"),
}
_SIGNS: Final[dict[str, tuple[str, Style, str]]] = {
    "old": ("-", Style.OLD, "no longer counts"),
    "new": ("+", Style.NEW, "counts now"),
    "both": ("=", Style.SAME, "counts in both"),
}
#: Characters of a record's value that are shown.
_LONGEST: Final = 160


def explanation_paragraphs(known: Explanation, indent: int) -> Iterator[Paragraph]:
    """A key under both versions.

    Args:
        known: What becomes of the key.
        indent: How far the text is moved in.
    """
    sign, style, words = _CHANGES[known.change]
    yield sentence(Span(f"{sign} ", style), "key ", Span(known.key, Style.OUTPUT), f" {words}", indent=indent)
    yield from _values(known, indent + 2)
    if known.unknown:
        yield sentence(f"its records cannot be determined: {known.unknown}", indent=indent + 2)
        return
    if known.records:
        yield sentence(f"made of {counted(known.records, 'record')}:", indent=indent + 2)
    for found in known.contributions:
        yield Paragraph((*_contribution(found),), indent + 4, 2)
    more = known.records - len(known.contributions)
    if more:
        yield sentence(f"and {counted(more, 'more record')}: --all shows every one", indent=indent + 4)


def _values(known: Explanation, indent: int) -> Iterator[Paragraph]:
    if not known.fields:
        if known.old != known.new:
            yield Paragraph((*_change(known.old, known.new),), indent, 2)
        elif known.old is not None:
            yield sentence(Span(known.old, Style.SAME), indent=indent)
        return
    width = max(len(found.name) for found in known.fields)
    for found in known.fields:
        yield Paragraph((Span(f"{found.name.ljust(width)}  "), *_change(found.old, found.new)), indent, width + 2)


def _change(old: str | None, new: str | None) -> Iterator[Span]:
    if old == new:
        yield Span(new or "", Style.SAME)
    else:
        yield from (Span(_or_none(old), Style.OLD), Span(" -> "), Span(_or_none(new), Style.NEW))


def _or_none(value: str | None) -> str:
    return "none" if value is None else value


def _contribution(found: Contribution) -> Iterator[Span]:
    sign, style, words = _SIGNS[found.counts]
    if found.fields:
        sign, style, words = "~", Style.CHANGED, "counts differently"
    name = found.topic if found.key is None else f"{found.topic} {found.key}"
    yield from (Span(f"{sign} ", style), Span(f"{name} {words}"))
    if found.fields:
        yield from _entered(found.fields)
    value = found.value if len(found.value) <= _LONGEST else f"{found.value[:_LONGEST]}..."
    yield from (Span(": "), Span(value, Style.PLACE))
    yield Span(f" (partition {found.partition}, offset {found.offset})")


def _entered(fields: tuple[FieldChange, ...]) -> Iterator[Span]:
    for number, one in enumerate(fields):
        yield Span(f"{', ' if number else ', as '}{one.name} ")
        yield from _change(one.old, one.new)
