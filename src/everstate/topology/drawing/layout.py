"""Where the parts of a drawing stand: columns from the sources on, with lanes for arrows that pass a column by.

An arrow runs between two columns only, and through a column only in a lane of its own, so none is hidden by a box. It
reaches its target at a place of its own, with its label in front of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from everstate.topology.drawing.cards import Arrow, Sheet

MARGIN: Final = 24
#: Space for the bend of an arrow between two columns, beside the label.
BEND: Final = 56
_GAP: Final = 28
_LANE: Final = 16
#: Between two arrows that reach one card.
PORT: Final = 28
#: Tries at an order in which few arrows cross.
_SWEEPS: Final = 6


@dataclass(frozen=True)
class Box:
    """The place of something."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Route:
    """The way of an arrow: points that it passes through, level at each of them; the last one is at its target."""

    arrow: Arrow
    points: tuple[tuple[float, float], ...]


@dataclass
class Layout:
    """A drawing with places.

    Attributes:
        boxes: Of topics and cards, by topic.
        routes: Of the arrows.
        width: Of all of it.
        height: Of all of it.
    """

    boxes: dict[str, Box] = field(default_factory=dict)
    routes: list[Route] = field(default_factory=list)
    width: float = 0
    height: float = 0


def layout(sheet: Sheet, sizes: Mapping[str, tuple[float, float]], labels: Mapping[Arrow, float]) -> Layout:
    """Find a place for everything.

    Args:
        sheet: What is drawn.
        sizes: Width and height of topics and cards.
        labels: The widths of the arrows' labels.
    """
    columns = _columns(sheet)
    level = {name: number for number, names in enumerate(columns) for name in names}
    lanes = {
        (arrow, column) for arrow in sheet.arrows for column in range(level[arrow.source] + 1, level[arrow.target])
    }
    ordered = _ordered(sheet, columns, lanes)
    found = Layout()
    x = float(MARGIN)
    centres: dict[object, tuple[float, float, float]] = {}  # left, right and middle of a lane
    tops = _tops(ordered, sizes)
    for number, members in enumerate(ordered):
        width = max((sizes[name][0] for name in members if isinstance(name, str)), default=0.0)
        for name, top in zip(members, tops[number], strict=True):
            if isinstance(name, str):
                own = sizes[name][0] if name in sheet.topics else width
                found.boxes[name] = Box(x + width - own, top, own, sizes[name][1])
            else:
                centres[name] = (x, x + width, top + _LANE / 2)
        reaching = [labels[arrow] for arrow in sheet.arrows if level[arrow.target] == number + 1]
        x += width + BEND + max(reaching, default=0.0) + 8
    last = max(box.x + box.width for box in found.boxes.values()) if found.boxes else float(MARGIN)
    found.width = last + MARGIN
    found.height = max((box.y + box.height for box in found.boxes.values()), default=float(MARGIN)) + MARGIN
    found.routes = _routes(sheet, found.boxes, centres, level)
    return found


def _columns(sheet: Sheet) -> list[list[str]]:
    """Names by column: a card stands further right than all that feeds it, a topic just before its first reader."""
    depth = dict.fromkeys([*sheet.topics, *sheet.cards], 0)
    for _ in depth:
        for arrow in sheet.arrows:
            depth[arrow.target] = max(depth[arrow.target], depth[arrow.source] + 1)
    for topic in sheet.topics:
        readers = [depth[arrow.target] for arrow in sheet.arrows if arrow.source == topic]
        depth[topic] = max(min(readers, default=1) - 1, 0)
    columns: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for name, number in depth.items():
        columns[number].append(name)
    return columns


def _ordered(sheet: Sheet, columns: list[list[str]], lanes: set[tuple[Arrow, int]]) -> list[list[object]]:
    """Boxes and lanes of each column from top to bottom, so that few arrows cross: near to what they belong to."""
    links: list[tuple[object, object]] = []
    level = {name: number for number, names in enumerate(columns) for name in names}
    for arrow in sheet.arrows:
        between = [(arrow, column) for column in range(level[arrow.source] + 1, level[arrow.target])]
        links += pairwise([arrow.source, *between, arrow.target])
    passing = sorted(lanes, key=lambda lane: (lane[1], lane[0].source, lane[0].target))
    ordered: list[list[object]] = [
        [*names, *(lane for lane in passing if lane[1] == number)] for number, names in enumerate(columns)
    ]
    best = ordered
    for sweep in range(_SWEEPS):
        ordered = _swept(ordered, links, backwards=bool(sweep % 2))
        best = min(best, ordered, key=lambda order: _crossings(order, links))
    return best


def _swept(ordered: list[list[object]], links: list[tuple[object, object]], *, backwards: bool) -> list[list[object]]:
    """The columns in turn, each sorted by where its members' neighbours stand in the column before it."""
    rank = _ranks(ordered)
    found = [list(column) for column in ordered]
    for column in reversed(found) if backwards else found:
        near = {
            member: [rank[b if backwards else a] for a, b in links if (a if backwards else b) == member]
            for member in column
        }
        column.sort(key=lambda member: sum(near[member]) / len(near[member]) if near[member] else rank[member])
        rank |= _ranks([column])
    return found


def _ranks(ordered: list[list[object]]) -> dict[object, float]:
    return {member: (place + 0.5) / len(column) for column in ordered for place, member in enumerate(column)}


def _crossings(ordered: list[list[object]], links: list[tuple[object, object]]) -> int:
    rank = _ranks(ordered)
    number = {member: column for column, members in enumerate(ordered) for member in members}
    return sum(
        number[a] == number[c] and (rank[a] - rank[c]) * (rank[b] - rank[d]) < 0
        for place, (a, b) in enumerate(links)
        for c, d in links[place + 1 :]
    )


def _tops(ordered: list[list[object]], sizes: Mapping[str, tuple[float, float]]) -> list[list[float]]:
    """Where the members of each column begin, every column in the middle."""
    heights = [[sizes[name][1] if isinstance(name, str) else float(_LANE) for name in column] for column in ordered]
    totals = [sum(column) + _GAP * (len(column) - 1) for column in heights]
    tallest = max(totals, default=0.0)
    tops: list[list[float]] = []
    for column, total in zip(heights, totals, strict=True):
        y, found = MARGIN + (tallest - total) / 2, []
        for height in column:
            found.append(y)
            y += height + _GAP
        tops.append(found)
    return tops


def _routes(
    sheet: Sheet,
    boxes: Mapping[str, Box],
    lanes: Mapping[object, tuple[float, float, float]],
    level: Mapping[str, int],
) -> list[Route]:
    ways: dict[Arrow, list[tuple[float, float]]] = {}
    for arrow in sheet.arrows:
        source = boxes[arrow.source]
        points = [(source.x + source.width, source.y + source.height / 2)]
        for column in range(level[arrow.source] + 1, level[arrow.target]):
            left, right, middle = lanes[arrow, column]
            points += [(left, middle), (right, middle)]
        ways[arrow] = points
    routes = []
    for name, box in boxes.items():
        arriving = sorted((arrow for arrow in sheet.arrows if arrow.target == name), key=lambda one: ways[one][-1][1])
        first = box.y + box.height / 2 - PORT * (len(arriving) - 1) / 2
        for place, arrow in enumerate(arriving):
            routes.append(Route(arrow, (*ways[arrow], (box.x, first + place * PORT))))
    return routes
