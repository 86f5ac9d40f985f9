"""Records as a table for people: one line each, as wide as the terminal, a column for each field."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from everstate.cli.record_lines import parse_json
from everstate.errors.texts import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from everstate.log import Record

TIME: Final = "time"
PLACE: Final = "at"
KEY: Final = "key"
VALUE: Final = "value"
_GAP: Final = "  "
#: A column is not made wider than this for one long value, and not narrower than that for its neighbours.
_WIDEST: Final = 40
_NARROWEST: Final = 8
_OURS: Final = 3


@dataclass(frozen=True)
class Column:
    """A column of the layout.

    Attributes:
        name: The field's name.
        width: In cells of a terminal.
        number: Its values are numbers, which are aligned to the right.
    """

    name: str
    width: int
    number: bool = False

    def cell(self, text: str) -> str:
        """A value in the column's width; one that is too long ends in an ellipsis."""
        if cell_len(text) > self.width:
            return set_cell_size(text, self.width - 1) + "…"
        padding = " " * (self.width - cell_len(text))
        return padding + text if self.number else text + padding


@dataclass
class RecordTable:
    """Lays records out in columns; those of the first records decide how wide they are.

    Args:
        width: Of the terminal.
        fields: The fields to show, in this order; None for all.
    """

    width: int
    fields: Sequence[str] | None = None
    _columns: list[Column] = field(default_factory=list)
    _names: list[str] = field(default_factory=list)

    def lines(self, records: Iterable[Record]) -> Iterator[Text]:
        """The lines for some records, with a header where the columns are new."""
        rows = [_Row.of(record, self.fields) for record in records]
        names = list(dict.fromkeys([*self._names, *(name for row in rows for name in row.values)]))
        if rows and (names != self._names or not self._columns):
            self._names = names
            self._columns = _layout([*_shown(rows, names)], self.width)
            yield Text(_GAP.join(column.cell(column.name) for column in self._columns).rstrip(), style="bold")
            if left_out := names[max(0, len(self._columns) - _OURS) :]:
                note = f"(--fields chooses; no room for: {', '.join(left_out)})"
                yield Text(Column("", self.width).cell(note).rstrip(), style="dim")
        for row in rows:
            yield self._line(row)

    def _line(self, row: _Row) -> Text:
        ours, fields = self._columns[:_OURS], self._columns[_OURS:]
        line = Text(_GAP.join(column.cell(text) for column, text in zip(ours, row.ours, strict=True)))
        if row.deleted:
            return line.append(f"{_GAP}(deleted)", style="dim")
        line.append(_GAP + _GAP.join(column.cell(row.values.get(column.name, "")) for column in fields))
        line.rstrip()
        return line


@dataclass(frozen=True)
class _Row:
    ours: tuple[str, str, str]
    values: dict[str, str]
    numbers: frozenset[str]
    deleted: bool

    @staticmethod
    def of(record: Record, fields: Sequence[str] | None) -> _Row:
        ours = (moment(record.ts)[:19], f"{record.partition}:{record.offset}", _text(record.key))
        parsed = _parsed(record.value)
        if not isinstance(parsed, dict):
            parsed = {} if record.value is None else {VALUE: parsed}
        if fields is not None:
            parsed = {name: parsed.get(name) for name in fields if parsed or record.value is not None}
        numbers = frozenset(name for name, value in parsed.items() if isinstance(value, (int, float)))
        values = {one_line(name): _shown_value(value) for name, value in parsed.items()}
        return _Row(ours, values, numbers, record.value is None)


def _shown(rows: Sequence[_Row], names: Sequence[str]) -> Iterator[tuple[str, list[str], bool]]:
    """Each column's name, values, and whether they are numbers."""
    for place, name in enumerate((TIME, PLACE, KEY)):
        yield name, [row.ours[place] for row in rows], False
    for name in names:
        present = [row for row in rows if row.values.get(name)]
        yield name, [row.values[name] for row in present], all(name in row.numbers for row in present)


def _layout(shown: list[tuple[str, list[str], bool]], width: int) -> list[Column]:
    """As many columns as fit when each is narrow; they share the room that is left."""
    wanted = [max(cell_len(name), min(_WIDEST, max(map(cell_len, values), default=0))) for name, values, _ in shown]
    # Time and place lose their meaning when they are cut.
    widths = [size if place < _OURS - 1 else min(size, _NARROWEST) for place, size in enumerate(wanted)]
    while len(widths) > _OURS + 1 and sum(widths) + len(_GAP) * (len(widths) - 1) > width:
        widths.pop()
    room = width - sum(widths) - len(_GAP) * (len(widths) - 1)
    while room > 0 and (short := [place for place, size in enumerate(widths) if size < wanted[place]]):
        for place in short[:room]:
            widths[place] += 1
        room -= len(short[:room])
    return [Column(name, size, number) for (name, _, number), size in zip(shown, widths, strict=False)]


def moment(ts: int) -> str:
    """A record's time, in UTC."""
    try:
        return datetime.fromtimestamp(ts / 1000, tz=UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    except (ValueError, OverflowError, OSError):
        return str(ts)


def _parsed(data: bytes | None) -> Any:
    if data is None:
        return None
    text = data.decode(errors="backslashreplace")
    try:
        return parse_json(text)
    except ValueError:
        return text


def _text(data: bytes | None) -> str:
    return "-" if data is None else one_line(data.decode(errors="backslashreplace"))


def _shown_value(value: Any) -> str:
    if value is None:
        return ""
    return one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
