"""A plan for people: what was changed, what follows for each output, what it costs, and how to apply it."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from everstate.plan.actions import Begin, Keep, Migrate, Recalculate, Refuse, Restore, Retire
from everstate.plan.guards import concerns_of
from everstate.plan.shown.blocks import BLANK, Line, Paragraph, Span, Style, plain, sentence, with_commands, wrapped
from everstate.plan.shown.cause_text import causes_paragraphs, place_of
from everstate.plan.shown.causes import causes_of
from everstate.plan.shown.preview_text import preview_paragraphs
from everstate.plan.steps import Discard
from everstate.plan.words import counted, duration, listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everstate.plan.actions import Action, Plan, Reading
    from everstate.plan.guards import Concern, Limits

__all__ = ["Line", "Span", "Style", "paragraphs", "plain", "text"]

_ENTRY: Final = 2
_INSIDE: Final = 6
_NUMBERS: Final = re.compile(r"\d+")
#: What happens to an output: its sign, what `plan` says, what `run` says, and what the last line counts.
_WORDS: Final[dict[str, tuple[str, str, str, str]]] = {
    "nothing": ("=", "unchanged", "unchanged", "unchanged"),
    "begin": ("+", "would begin", "begins", "to begin"),
    "continue": ("~", "would go on with its state", "goes on with its state", "to continue"),
    "recalculate": ("~", "would be recalculated", "is recalculated", "to recalculate"),
    "migrate": ("~", "would be migrated", "is migrated", "to migrate"),
    "restore": ("~", "would be restored", "is restored", "to restore"),
    "retire": ("-", "would be retired", "is retired", "to retire"),
    "refuse": ("!", "is refused", "is refused", "refused"),
}
_SIGNS: Final = {"+": Style.NEW, "~": Style.CHANGED, "-": Style.OLD, "!": Style.WARNING, "=": Style.SAME}


def text(
    plan: Plan,
    *,
    limits: Limits | None = None,
    root: str = "",
    doing: bool = False,
    command: str | None = None,
    width: int | None = None,
) -> tuple[Line, ...]:
    """A plan as lines.

    Args:
        plan: The plan.
        limits: How many tombstones are too many.
        root: The folder that places are shown relative to.
        doing: It is being carried out; else it only might be.
        command: What carries it out; a run of the service if nothing is said.
        width: How wide a line may be; None for any width.
    """
    return wrapped(paragraphs(plan, limits=limits, root=root, doing=doing, command=command), width)


def paragraphs(
    plan: Plan, *, limits: Limits | None = None, root: str = "", doing: bool = False, command: str | None = None
) -> Iterator[Paragraph]:
    """A plan as paragraphs; see `text`."""
    root = root.rstrip("/")
    yield sentence(_headline(plan, doing=doing))
    causes = causes_of(plan.changes)
    if causes:
        yield from (BLANK, sentence("What changed:"))
    yield from causes_paragraphs(causes, root)
    if plan.changes:
        yield from (BLANK, sentence("What follows:"))
    concerns = concerns_of(plan, limits)
    told: dict[str, str] = {}
    for action in plan.changes:
        own = [concern for concern in concerns if concern.output == action.output]
        yield from _entry(action, plan, root, told, own, doing=doing)
    yield from _unchanged([action for action in plan.actions if isinstance(action, Keep)])
    if plan.changes:
        yield BLANK
        if any(not preview.kept for preview in plan.previews):
            yield sentence("This preview was small, so none of it is kept: the run recalculates.")
        yield from _cost(plan, doing=doing)
        for hint in dict.fromkeys(concern.hint for concern in concerns):
            yield sentence(*with_commands(hint, Style.WARNING))
        apply = "" if doing or plan.refusals else command or f"everstate run {plan.options.file}"
        yield sentence(*_summary(plan, apply))


def _headline(plan: Plan, *, doing: bool) -> str:
    if plan.refusals:
        refused = tuple(action.output for action in plan.refusals)
        return f"Service {plan.service} cannot start: {listed(refused)} {'is' if len(refused) == 1 else 'are'} refused."
    if not plan.changes:
        return f"Service {plan.service}: nothing changes."
    word = ("changes" if len(plan.changes) == 1 else "change") if doing else "would change"
    return f"Service {plan.service}: {len(plan.changes)} of {counted(len(plan.actions), 'output')} {word}."


def _entry(
    action: Action, plan: Plan, root: str, told: dict[str, str], concerns: list[Concern], *, doing: bool
) -> Iterator[Paragraph]:
    sign, would, does, _ = _WORDS[action.kind]
    head = [Span(sign, _SIGNS[sign]), Span(" "), Span(action.output, Style.OUTPUT)]
    head += [Span(" "), Span(does if doing else would, Style.ACTION)]
    if isinstance(action, (Begin, Retire)) and action.differences and action.differences[0].location:
        place = place_of(action.differences[0].location, root)
        head += [Span(" ("), Span(f"{'was at ' if isinstance(action, Retire) else ''}{place}", Style.PLACE), Span(")")]
    yield Paragraph(tuple(head), _ENTRY)
    for warning in action.warnings:
        yield sentence(Span("warning: ", Style.WARNING), warning, indent=_INSIDE)
    if isinstance(action, Refuse):
        yield sentence(Span(action.problem, Style.WARNING), ".", indent=_INSIDE)
        yield sentence(*with_commands(action.hint), indent=_INSIDE)
    for reading in action.sources:
        yield from _reading(reading)
    if action.ordered and action.publishes:
        yield sentence(f"depends on the order of arrival: {', '.join(action.ordered)}", indent=_INSIDE)
    for circumstance in _circumstances(action):
        yield sentence(circumstance, indent=_INSIDE)
    yield from _follows(action, told)
    preview = plan.preview(action.output)
    if preview is not None:
        yield from preview_paragraphs(preview, _INSIDE, stream=getattr(action, "stream", False))
    for concern in concerns:
        yield sentence(Span("needs approval: ", Style.WARNING), concern.message, indent=_INSIDE)


def _follows(action: Action, told: dict[str, str]) -> Iterator[Paragraph]:
    """What happens, in a sentence that is told once."""
    key = _NUMBERS.sub("", action.follows)
    if key in told and not isinstance(action, (Retire, Refuse)):
        active = f", alongside generation {action.active}" if action.active is not None else ""
        yield sentence(f"The same as for {told[key]}{active}.", indent=_INSIDE)
    else:
        yield sentence(action.follows, indent=_INSIDE)
    told.setdefault(key, action.output)


def _reading(reading: Reading) -> Iterator[Paragraph]:
    if reading.records:
        archived = f", {reading.archived:,} of them in the archive" if reading.archived else ""
        yield sentence(f"reads {counted(reading.records, 'record')} from {reading.topic}{archived}", indent=_INSIDE)
    if reading.truncated:
        yield sentence(
            Span("incomplete: ", Style.WARNING), f"topic {reading.topic} {reading.truncated}", indent=_INSIDE
        )


def _circumstances(action: Action) -> Iterator[str]:
    if isinstance(action, Recalculate) and action.asked:
        yield "requested with --recalculate"
    if isinstance(action, Restore) and action.asked:
        yield "requested with everstate rollback"
    if isinstance(action, Recalculate) and action.instead:
        yield action.instead
    if isinstance(action, (Begin, Recalculate, Migrate)) and action.resumes is not None:
        yield f"resumes generation {action.resumes}, which was prepared or left half built"
    if len(action.steps) > 1:  # else it is all that happens, and said as such
        yield from (step.clause for step in action.steps if isinstance(step, Discard))


def _unchanged(kept: list[Keep]) -> Iterator[Paragraph]:
    """All outputs that go on as they are, in one line."""
    if not kept:
        return
    names = listed(tuple(action.output for action in kept))
    takes = [
        f"{action.output} takes in what differs in {listed(action.consumes)}" for action in kept if action.consumes
    ]
    more = f"; {'; '.join(takes)}" if takes else ""
    yield sentence(Span("= ", Style.SAME), Span(names, Style.OUTPUT), f" unchanged{more}", indent=_ENTRY)
    for action in kept:
        for warning in action.warnings:
            yield sentence(Span("warning: ", Style.WARNING), f"{action.output}: {warning}", indent=_INSIDE)
        for step in action.steps:
            if isinstance(step, Discard):
                yield sentence(f"{action.output} {step.clause}", indent=_INSIDE)


def _cost(plan: Plan, *, doing: bool) -> Iterator[Paragraph]:
    """What is read, and how long that takes with Spark's start."""
    costs = [
        action.estimate
        for action in plan.changes
        if isinstance(action, (Begin, Recalculate, Restore, Migrate)) and action.records
    ]
    records = sum(estimate.records for estimate in costs)
    if not records or plan.refusals:
        return
    if plan.startup is None:
        start = " once Spark has started"
    else:
        start = f", plus about {duration(plan.startup)} for Spark to start" if plan.startup else ""
    long = [estimate for estimate in costs if not estimate.is_short]
    times = [estimate.seconds for estimate in long if estimate.seconds is not None]
    word = "takes" if doing else "would take"
    if not long:
        how = f"{word} a few seconds{start}"
    elif len(times) == len(long):
        how = f"{word} about {duration(sum(times))} at the rates measured here before{start}"
    else:
        how = "the time is not known yet: no recalculation of this size was measured here"
    joint = "; " if long and len(times) < len(long) else ", which "
    yield sentence(f"Cost: {counted(records, 'record')} to read{joint}{how}.")


def _summary(plan: Plan, apply: str) -> Iterator[Span]:
    counts = Counter(_WORDS[action.kind][3] for action in plan.actions)
    order = dict.fromkeys(words[3] for kind, words in _WORDS.items() if kind != "nothing")
    told = [f"{counts[word]} {word}" for word in (*order, "unchanged") if counts[word]]
    yield Span(f"Plan: {', '.join(told)}.")
    if apply:
        yield from (Span(" Apply it: "), Span(apply, Style.ACTION, whole=True))
