"""From two versions' notes to the edits behind a difference: what the user changed, not what follows from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from everstate.fingerprints.noted.notes import Notes
from everstate.plan.categories import Category, Difference
from everstate.plan.edits import Edit, diff_lines, first_changed
from everstate.plan.matching import Match

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
    match = Match.of(*prints)
    texts = tuple(note or Notes() for note in notes)
    known = notes[0] is not None and notes[1] is not None
    values = prints[0].settings
    settings = {(values[name].text, now.text) for name, now in prints[1].settings.items() if name in values}
    before = {now.name: was for was, now in match.kept}
    after = {node.name: node for node in prints[1].nodes}
    gone = {node.name for node in match.removed}

    def edits(found: Difference) -> Iterator[Edit]:
        was, now = before.get(found.node), after.get(found.node)
        if found.category is Category.SCHEMA and was is not None and now is not None:
            yield from columns(was, now)
        elif known and found.category in _WRITTEN:
            if was is not None:
                yield from Comparison(texts[0], texts[1], was.name, found.node, settings).edits()
            elif now is not None:
                yield from _whole(None, texts[1].steps.get(found.node))
            elif found.node in gone:
                yield from _whole(texts[0].steps.get(found.node), None)

    told = [replace(found, edits=tuple(edits(found))) for found in differences]
    set_at = {found.node for found in told if found.category is Category.CONFIGURATION}
    # A value such as 0 may stand in a step for any reason; where its text is the same, the setting is the reason.
    follows = [found for found in told if found.category is Category.LOGIC and found.node in set_at and not found.edits]
    return tuple(found for found in told if not (known and found in follows))


def columns(was: NodePrint, now: NodePrint) -> Iterator[Edit]:
    """The columns of a step that came, went or have another type: one edit each."""
    old, new = ({column.name: column for column in node.columns} for node in (was, now))
    for name in [*old, *(name for name in new if name not in old)]:
        before, after = old.get(name), new.get(name)
        if before is None or after is None or not before.is_same(after):
            place = now.location if after is not None else was.location
            yield Edit("column", name, place, _typed(before), _typed(after))


def _typed(column: Column | None) -> str | None:
    if column is None:
        return None
    default = f" = {column.default}" if column.default is not None else ""
    return f"{column.type}{'?' if column.nullable else ''}{default}"


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

    def edits(self) -> Iterator[Edit]:
        """What the user changed: what only follows from another edit is left out."""
        old, new = self.old.steps.get(self.was), self.new.steps.get(self.now)
        if old is None or new is None:
            return
        rewritten = bool(old.text and new.text) and old.digest != new.digest
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
