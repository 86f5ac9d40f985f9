"""A plan for people: lines of words, each with what it is, so that whoever prints them chooses the colours."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias

from everstate.plan.actions import Begin, Keep, Migrate, Recalculate, Refuse, Restore
from everstate.plan.differences import Category
from everstate.plan.guards import concerns_of
from everstate.plan.words import counted, duration, listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everstate.plan.actions import Action, Estimate, Plan, Reading
    from everstate.plan.differences import Difference
    from everstate.plan.guards import Concern, Limits
    from everstate.plan.preview import Preview, Sample


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


@dataclass(frozen=True)
class Span:
    """Words of one style."""

    text: str
    style: Style = Style.PLAIN


Line: TypeAlias = tuple[Span, ...]

_BLANK: Final[Line] = ()
_REMOVED: Final = frozenset({Category.REMOVED_OUTPUT, Category.REMOVED_SOURCE, Category.LESS_STATE})


def plain(lines: tuple[Line, ...]) -> str:
    """The lines without their styles."""
    return "\n".join("".join(span.text for span in line) for line in lines)


def text(plan: Plan, *, limits: Limits | None = None, root: str = "") -> tuple[Line, ...]:
    """A plan as lines.

    Args:
        plan: The plan.
        limits: How many tombstones are too many.
        root: The folder that places are shown relative to.
    """
    found = concerns_of(plan, limits)
    lines: list[Line] = [(Span(_headline(plan)),)]
    for action in plan.actions:
        if not isinstance(action, Keep):
            lines.append(_BLANK)
        lines += _action(action, plan.preview(action.output), root.rstrip("/"))
        lines += _concerns([concern for concern in found if concern.output == action.output])
    return tuple(lines)


def _headline(plan: Plan) -> str:
    if plan.refusals:
        refused = tuple(action.output for action in plan.refusals)
        return f"Service {plan.service} cannot start: {listed(refused)} {'is' if len(refused) == 1 else 'are'} refused."
    if not plan.changes:
        return f"Service {plan.service}: nothing changes."
    return f"Service {plan.service}: {len(plan.changes)} of {counted(len(plan.actions), 'output')} would change."


def _action(action: Action, preview: Preview | None, root: str) -> Iterator[Line]:
    yield Span(action.output, Style.OUTPUT), Span(": "), Span(action.kind, Style.ACTION)
    for difference in action.differences:
        yield _difference(difference, root)
    for warning in action.warnings:
        yield Span("  warning: ", Style.WARNING), Span(warning)
    if isinstance(action, Refuse):
        yield Span(f"  {action.problem}", Style.WARNING), Span(".")
        yield (Span(f"  {action.hint}"),)
    for reading in action.sources:
        yield from _reading(reading)
    if isinstance(action, (Begin, Recalculate, Restore)) and action.records:
        yield (Span(f"  takes {_time(action.estimate)}"),)
    if isinstance(action, Migrate) and action.checked:
        yield (Span(f"  takes {_time(action.estimate)}, if it has to be recalculated"),)
    if action.ordered and action.publishes:
        yield (Span(f"  depends on the order of arrival: {', '.join(action.ordered)}"),)
    yield from _circumstances(action)
    yield (Span(f"  {action.follows}"),)
    if preview is not None:
        yield from _preview(preview)


def _difference(difference: Difference, root: str) -> Line:
    line = [Span("  "), Span(str(difference.category), Style.CATEGORY), Span(f": {difference.cause}")]
    if difference.old is not None:
        line += [Span(" "), Span(difference.old, Style.OLD)]
    if difference.new is not None:
        line += [Span(" -> " if difference.old is not None else " "), Span(difference.new, Style.NEW)]
    elif difference.old is not None:
        line.append(Span(" -> nothing"))
    if difference.location:
        place = difference.location.removeprefix(f"{root}/") if root else difference.location
        removed = difference.category in _REMOVED or (difference.old is not None and difference.new is None)
        line += [Span(" ("), Span(f"{'was at ' if removed else ''}{place}", Style.PLACE), Span(")")]
    return tuple(line)


def _reading(reading: Reading) -> Iterator[Line]:
    if reading.records:
        archived = f", {reading.archived:,} of them in the archive" if reading.archived else ""
        yield (Span(f"  reads {counted(reading.records, 'record')} from {reading.topic}{archived}"),)
    if reading.truncated:
        yield Span("  incomplete: ", Style.WARNING), Span(f"topic {reading.topic} {reading.truncated}")


def _time(estimate: Estimate) -> str:
    how = "measured earlier" if estimate.measured else "assumed"
    return f"about {duration(estimate.seconds)} at {estimate.rate:,.0f} records a second ({how})"


def _circumstances(action: Action) -> Iterator[Line]:
    if isinstance(action, Recalculate) and action.asked:
        yield (Span("  requested with --recalculate"),)
    if isinstance(action, Restore) and action.asked:
        yield (Span("  requested with everstate rollback"),)
    if isinstance(action, Recalculate) and action.instead:
        yield (Span(f"  {action.instead}"),)
    if isinstance(action, (Begin, Recalculate, Migrate)) and action.resumes is not None:
        yield (Span(f"  resumes generation {action.resumes}, which was prepared or left half built"),)
    if action.discards is not None:
        yield (Span(f"  discards generation {action.discards}, which is being built"),)


def _preview(preview: Preview) -> Iterator[Line]:
    counts = preview.counts
    yield (
        Span("  preview: "),
        Span(f"{counts.new:,} new", Style.NEW),
        Span(f", {counts.changed:,} changed, "),
        Span(f"{counts.stale:,} stale", Style.OLD),
        Span(f", {counts.unchanged:,} unchanged; {counted(counts.written, 'record')} to write"),
    )
    if not preview.kept:
        yield (Span("  this preview was small, so nothing of it is kept: the run recalculates"),)
    if preview.upstream:
        yield (Span(f"  these counts leave out what changes in {listed(preview.upstream)}"),)
    for sign, samples in (("+", preview.new), ("~", preview.changed), ("-", preview.stale)):
        yield from (_sample(sign, sample) for sample in samples)
    if counts.newly_dead:
        dead = counted(counts.newly_dead, "record")
        yield (Span(f"  {dead} that the active version accepts would be dead-lettered", Style.WARNING),)
    for record in preview.dead:
        yield (Span(f"    ! {record.topic}, partition {record.partition}, offset {record.offset}: {record.reason}"),)


def _sample(sign: str, sample: Sample) -> Line:
    line = [Span(f"    {sign} {sample.key}")]
    if sample.old is not None:
        line += [Span(": "), Span(sample.old, Style.OLD)]
    if sample.new is not None:
        line += [Span(" -> " if sample.old is not None else ": "), Span(sample.new, Style.NEW)]
    return tuple(line)


def _concerns(found: list[Concern]) -> Iterator[Line]:
    for concern in found:
        yield Span("  needs approval: ", Style.WARNING), Span(concern.message)
    for hint in dict.fromkeys(concern.hint for concern in found):
        yield (Span(f"  {hint}"),)
