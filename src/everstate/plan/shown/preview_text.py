"""A preview for people: counts as a bar, and samples with the fields that differ side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from everstate.plan.shown.blocks import Paragraph, Span, Style, sentence
from everstate.plan.shown.explanation_text import explanation_paragraphs
from everstate.plan.words import counted, listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everstate.plan.preview import Counts, Preview, Sample

_BAR: Final = 40


def preview_paragraphs(preview: Preview, indent: int, *, stream: bool = False) -> Iterator[Paragraph]:
    """What a recalculation in the shadow has found.

    Args:
        preview: What it has found.
        indent: How far the text is moved in.
        stream: The output is a stream, whose records stand.
    """
    counts = preview.counts
    if counts.new + counts.live:
        yield from _counts(counts, indent)
    elif not stream:  # what a stream has published stands, so there is nothing to count
        yield sentence("preview: neither version has a key", indent=indent)
    if preview.upstream:
        yield sentence(f"these counts leave out what changes in {listed(preview.upstream)}", indent=indent)
    if preview.explained is not None:
        yield from explanation_paragraphs(preview.explained, indent)
        return
    for sign, style, samples in (
        ("+", Style.NEW, preview.new),
        ("~", Style.CHANGED, preview.changed),
        ("-", Style.OLD, preview.stale),
    ):
        for sample in samples:
            yield Paragraph((Span(sign, style), Span(" "), *_sample(sample)), indent + 2)
    if counts.newly_dead:
        dead = counted(counts.newly_dead, "record")
        words = f"{dead} that the active version accepts would be dead-lettered"
        yield sentence(Span(words, Style.WARNING), indent=indent)
    for record in preview.dead:
        place = f"{record.topic}, partition {record.partition}, offset {record.offset}"
        yield sentence(Span("! ", Style.WARNING), f"{place}: {record.reason}", indent=indent + 2)


def _counts(counts: Counts, indent: int) -> Iterator[Paragraph]:
    kinds = (
        ("█", Style.NEW, counts.new, "new"),
        ("▓", Style.CHANGED, counts.changed, "changed"),
        ("▒", Style.OLD, counts.stale, "tombstone" if counts.stale == 1 else "tombstones"),
        ("░", Style.SAME, counts.unchanged, "unchanged"),
    )
    cells = shares(tuple(number for _, _, number, _ in kinds), _BAR)
    bar = tuple(Span(block * cell, style) for (block, style, _, _), cell in zip(kinds, cells, strict=True) if cell)
    yield Paragraph((Span("preview "), *bar), indent, code=True)
    spans: list[Span] = []
    for block, style, number, word in kinds:
        spans += [
            Span(", " if spans else ""),
            Span(f"{block} ", style, whole=True),
            Span(f"{number:,} {word}", style),
        ]
    yield Paragraph((*spans, Span(f"; {counted(counts.written, 'record')} to write")), indent, 2)


def shares(numbers: tuple[int, ...], width: int) -> tuple[int, ...]:
    """A width divided by numbers: what is there at all gets a cell.

    Example:
        >>> shares((1, 0, 999), 10)
        (1, 0, 9)
    """
    total = sum(numbers)
    if not total:
        return tuple(0 for _ in numbers)
    cells = [max(1, number * width // total) if number else 0 for number in numbers]
    largest = max(range(len(numbers)), key=lambda place: numbers[place])
    cells[largest] += width - sum(cells)
    return tuple(cells)


def _sample(sample: Sample) -> Iterator[Span]:
    yield Span(sample.key)
    if sample.fields:
        for number, found in enumerate(sample.fields):
            yield Span(f"{',' if number else ':'} {found.name} ")
            yield Span("none" if found.old is None else found.old, Style.OLD)
            yield Span(" -> ")
            yield Span("none" if found.new is None else found.new, Style.NEW)
        if sample.equal:
            yield Span(f"; {counted(sample.equal, 'other field')} the same", Style.PLACE)
        return
    if sample.old is not None:
        yield from (Span(": "), Span(sample.old, Style.OLD))
    if sample.new is not None:
        yield from (Span(" -> " if sample.old is not None else ": "), Span(sample.new, Style.NEW))
