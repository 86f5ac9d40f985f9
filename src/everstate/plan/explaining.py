"""From two versions' notes to the edits behind a difference: what the user changed, not what follows from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from everstate.errors import secrets
from everstate.fingerprints.noted.notes import Notes
from everstate.plan.categories import Category, Difference
from everstate.plan.edits import Edit, diff_lines, first_changed
from everstate.plan.matching import Match
from everstate.plan.parts import changed_parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everstate.fingerprints.noted.notes import Definition, StepNote
    from everstate.fingerprints.prints import Column, NodePrint, UnitPrint

#: Differences that lie in what the user wrote at a step.
_WRITTEN: Final = frozenset({Category.LOGIC, Category.GROUPING, Category.MORE_STATE, Category.LESS_STATE})
_VALUES: Final = frozenset({"constant", "closure", "default", "text"})
#: A value that is longer is shown as lines.
_LONGEST: Final = 60


def explained(
    differences: tuple[Difference, ...],
    prints: tuple[UnitPrint, UnitPrint],
    notes: tuple[Notes | None, Notes | None],
) -> tuple[Difference, ...]:
    """The same differences with the edits that led to them, as far as they can be told, without what only follows.

    Args:
        differences: Between two versions of an output.
        prints: The two versions, the active one first.
        notes: What their texts say; None where that was not kept.
    """
    told = _Telling(prints, notes)
    found = [replace(one, edits=tuple(told.edits(one))) for one in differences]
    if not told.known:
        return tuple(found)
    set_at = {one.node for one in found if one.category is Category.CONFIGURATION}
    explained_at = {told.call(one.node) for one in found if one.edits}
    kept = []
    for one in found:
        if one.edits or not told.is_follow_on(one):
            kept.append(one)
            continue
        # A value such as 0 may stand in a step for any reason; where its text is the same, the setting is the reason.
        if one.node in set_at:
            continue
        above = {told.call(name): name for name in told.above(one.node)}
        others = [name for call, name in above.items() if call not in explained_at]
        edits = tuple(edit for name in others for edit in told.call_edits(name))
        if edits or not explained_at & above.keys():
            kept.append(replace(one, edits=edits))
    return tuple(kept)


class _Telling:
    """Two versions of an output, step by step.

    Args:
        prints: The two versions, the active one first.
        notes: What their texts say; None where that was not kept.
    """

    def __init__(self, prints: tuple[UnitPrint, UnitPrint], notes: tuple[Notes | None, Notes | None]) -> None:
        self.known = notes[0] is not None and notes[1] is not None
        self._prints = prints
        self._notes = (notes[0] or Notes(), notes[1] or Notes())
        match = Match.of(*prints)
        values = prints[0].settings
        self._settings = {(values[name].text, now.text) for name, now in prints[1].settings.items() if name in values}
        self._before = {now.name: was for was, now in match.kept}
        self._after = {node.name: node for node in prints[1].nodes}
        self._gone = {node.name for node in match.removed}
        self._rewired = {now.name for _, now in match.rewired}

    def edits(self, found: Difference) -> Iterator[Edit]:
        """What the user wrote differently at the step of a difference."""
        was, now = self._before.get(found.node), self._after.get(found.node)
        step = self._step(found.node)
        if found.category is Category.SCHEMA and was is not None and now is not None:
            if now.inputs and step is not None and step.rewritten:
                yield from step.edits()
            else:
                yield from columns(was, now, step)
        elif self.known and found.category in _WRITTEN:
            if step is not None:
                edits = tuple(step.edits())
                yield from edits or (self._reordered() if found.node in self._rewired else ())
            elif now is not None:
                yield from _whole(None, self._notes[1].steps.get(found.node))
            elif found.node in self._gone:
                yield from _whole(self._notes[0].steps.get(found.node), None)

    def is_follow_on(self, found: Difference) -> bool:
        """Whether nothing was written differently at the step, so that another one must be the reason."""
        was, now, step = self._before.get(found.node), self._after.get(found.node), self._step(found.node)
        if found.category is not Category.LOGIC or was is None or now is None or step is None:
            return False
        ours = any("semantics" in {part.kind for part in both if part is not None} for both in changed_parts(was, now))
        return not ours and step.is_told and not step.rewritten

    def call(self, name: str) -> object:
        """Equal for the steps that one call made."""
        note = self._notes[1].steps.get(name)
        return name if note is None else (note.place, note.text)

    def above(self, name: str) -> list[str]:
        """The steps that feed a step, and what feeds them."""
        waiting = list(self._after[name].inputs)
        for one in waiting:  # grows as it is walked
            waiting.extend(new for new in self._after[one].inputs if new not in waiting)
        return waiting

    def call_edits(self, name: str) -> Iterator[Edit]:
        """The call of a step, if it was written differently."""
        step = self._step(name)
        if step is not None and step.rewritten:
            yield from islice(step.edits(), 1)

    def _step(self, name: str) -> Comparison | None:
        was = self._before.get(name)
        if was is None or not self.known:
            return None
        return Comparison(*self._notes, was.name, name, self._settings)

    def _reordered(self) -> Iterator[Edit]:
        """The calls of all steps in their order."""
        old, new = (
            "\n".join(dict.fromkeys(note.text for node in unit.nodes if (note := notes.steps.get(node.name))))
            for unit, notes in zip(self._prints, self._notes, strict=True)
        )
        if old != new:
            place = self._prints[1].nodes[-1].location
            yield Edit("call", "The order of the steps", place, diff=diff_lines(old, new))


def columns(was: NodePrint, now: NodePrint, step: Comparison | None = None) -> Iterator[Edit]:
    """The columns of a step that came, went or have another type: one edit each.

    Args:
        was: The step as it was.
        now: The step as it is.
        step: What the user's text says of it; None if that is not known.
    """
    old, new = ({column.name: column for column in node.columns} for node in (was, now))
    origin = None if step is None else step.origin()
    for name in [*old, *(name for name in new if name not in old)]:
        before, after = old.get(name), new.get(name)
        if before is None or after is None or not before.is_same(after):
            place = now.location if after is not None else was.location
            if origin is None:
                yield Edit("column", name, place, _typed(before), _typed(after))
            else:
                yield replace(origin, kind="column", name=name, old=_typed(before), new=_typed(after), diff=())


def _typed(column: Column | None) -> str | None:
    if column is None:
        return None
    default = f" = {column.default}" if column.default is not None else ""
    return f"{column.type}{' or null' if column.nullable else ''}{default}"


def _whole(old: StepNote | None, new: StepNote | None) -> Iterator[Edit]:
    note = new or old
    if note is not None and note.text:
        lines = diff_lines(old.text if old else "", new.text if new else "")
        yield Edit("call", note.label, note.place, diff=lines, step=note.label, step_location=note.place)


@dataclass
class Comparison:
    """One step of two versions.

    Attributes:
        old: The notes of the active version.
        new: Those of the new one.
        was: The step's name in the old version.
        now: Its name in the new one.
        settings: Old and new text of settings: a constant that is one of them is told as the setting.
    """

    old: Notes
    new: Notes
    was: str
    now: str
    settings: set[tuple[str, str]]

    @property
    def is_told(self) -> bool:
        """Whether the calls that made the step are known in both versions."""
        old, new = self.old.steps.get(self.was), self.new.steps.get(self.now)
        return old is not None and new is not None and bool(old.text and new.text)

    @property
    def rewritten(self) -> bool:
        """Whether the call itself was written differently."""
        return self.is_told and self.old.steps[self.was].digest != self.new.steps[self.now].digest

    def origin(self) -> Edit | None:
        """The one class or constant whose edit reached the step, or else the step's call; None if it cannot be told."""
        note = self.new.steps.get(self.now)
        if self.rewritten or note is None:
            return next(self.edits(), None)
        changed = self._changed()
        roots = [pair for pair in changed if pair[1].kind in ("class", "constant") and self._is_root(pair, changed)]
        if len(roots) != 1:
            return None
        was, now = roots[0]
        found = self._edit(was, now, note)
        return replace(found, chain=(now.label, *found.chain))

    def edits(self) -> Iterator[Edit]:
        """What the user changed: what only follows from another edit is left out."""
        old, new = self.old.steps.get(self.was), self.new.steps.get(self.now)
        if old is None or new is None:
            return
        rewritten = self.rewritten
        if rewritten:
            yield Edit(
                "call",
                new.label,
                _moved(new.place, old.text, new.text),
                diff=diff_lines(old.text, new.text),
                step=new.label,
                step_location=new.place,
            )
        changed = self._changed()
        roots = [pair for pair in changed if self._is_root(pair, changed)]
        if rewritten:
            roots = [(was, now) for was, now in roots if not _is_within(now, new.file, new.line, new.last_line)]
        plain = [(was, now) for was, now in roots if now.kind != "closure"]
        # A value that a function closes over was passed somewhere: who passes it says more.
        yield from (self._edit(was, now, new) for was, now in (plain if plain or rewritten else roots))
        if not rewritten and not roots:
            yield from self._came_or_went(new)

    def _pairs(self) -> Iterator[tuple[Definition | None, Definition | None]]:
        """Definitions of both versions: by name, then, of those that moved, by what people call them."""
        old = {name: self.old.definitions[name] for name in self.old.reached(self.was)}
        new = {name: self.new.definitions[name] for name in self.new.reached(self.now)}
        moved = {(found.kind, found.label): name for name, found in old.items() if name not in new}
        for name, now in new.items():
            before = name if name in old else moved.get((now.kind, now.label), "")
            yield old.pop(before, None), now
        yield from ((was, None) for was in old.values())

    def _changed(self) -> list[tuple[Definition, Definition]]:
        return [
            (was, now) for was, now in self._pairs() if was is not None and now is not None and was.digest != now.digest
        ]

    def _is_root(self, pair: tuple[Definition, Definition], changed: list[tuple[Definition, Definition]]) -> bool:
        was, now = pair
        if now.kind in _VALUES:
            if (was.text, now.text) in self.settings:
                return False
            if (was.text, was.written) == (now.text, now.written) and secrets.MASK not in now.text:
                return False  # there is nothing to show
            derived = any(other.name in self._below(now) for _, other in changed if other is not now)
            return not derived or (bool(now.written) and was.written != now.written)
        # A function inside another one that was changed is a part of that one's text.
        return not any(
            _is_within(now, other.file, other.line, other.line + other.text.count("\n"))
            for _, other in changed
            if other is not now and other.kind not in _VALUES and (other.line, other.kind) != (now.line, now.kind)
        )

    def _below(self, found: Definition) -> set[str]:
        """Names of all that a definition uses, and what that uses."""
        below: set[str] = set()
        waiting = list(found.uses)
        while waiting:
            name = waiting.pop()
            if name not in below and name in self.new.definitions:
                below.add(name)
                waiting.extend(self.new.definitions[name].uses)
        return below

    def _edit(self, was: Definition, now: Definition, step: StepNote) -> Edit:
        chain = self._chain(self.new, self.now, now.name)
        if now.kind in _VALUES and max(len(was.text), len(now.text)) <= _LONGEST and "\n" not in was.text + now.text:
            shown = _named(now)
            return Edit(now.kind, shown, now.place, was.text, now.text, (), chain, step.label, step.place)
        place = now.place if now.kind in _VALUES else _moved(now.place, was.text, now.text)
        lines = diff_lines(was.text, now.text)
        return Edit(now.kind, _named(now), place, None, None, lines, chain, step.label, step.place)

    def _came_or_went(self, step: StepNote) -> Iterator[Edit]:
        """Where nothing was changed in its place: something else goes by the same name now."""
        for was, now in self._pairs():
            if was is None and now is not None:
                chain = self._chain(self.new, self.now, now.name)
                lines = diff_lines("", now.text)
                yield Edit(now.kind, _named(now), now.place, None, None, lines, chain, step.label, step.place)
            elif now is None and was is not None:
                chain = self._chain(self.old, self.was, was.name)
                lines = diff_lines(was.text, "")
                yield Edit(was.kind, _named(was), was.place, None, None, lines, chain, step.label, step.place)

    @staticmethod
    def _chain(notes: Notes, step: str, name: str) -> tuple[str, ...]:
        way = notes.reached(step).get(name, ())
        return tuple(notes.definitions[part].label for part in way[1:])


def _named(found: Definition) -> str:
    return f"{found.label}=" if found.kind == "default" else found.label


def _is_within(found: Definition, file: str, first: int, last: int) -> bool:
    return found.file == file and first <= found.line <= last


def _moved(place: str, old: str, new: str) -> str:
    """The place of the first line that differs."""
    file, _, line = place.rpartition(":")
    return f"{file}:{int(line) + first_changed(old, new)}"
