"""A service as an SVG picture: topics and steps in columns, by their distance from the sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape

from everstate.topology.drawing import Box, Graph, graph_of

if TYPE_CHECKING:
    from everstate.topology.unit import Unit

_WIDTH: Final = 150
_HEIGHT: Final = 40
_GAP_X: Final = 70
_GAP_Y: Final = 26
_MARGIN: Final = 24
_LETTER: Final = 7.2

_STYLE: Final = (
    "text{font:13px system-ui,sans-serif;fill:#1b2733;text-anchor:middle;dominant-baseline:central}"
    ".topic{fill:#e3f1ff;stroke:#2f6fb0}.step{fill:#ffffff;stroke:#7a8793}.store{fill:#fff3d6;stroke:#b07d1e}"
    ".arrow{fill:none;stroke:#7a8793;stroke-width:1.5}.moves{stroke:#b0432f;stroke-width:2.5}"
)
_TIP: Final = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0L8 4L0 8z" fill="#7a8793"/></marker></defs>'
)


def svg(units: list[Unit]) -> str:
    """The drawing as SVG: topics blue and round, steps white, steps that keep state yellow, red arrows move rows."""
    graph = graph_of(units)
    columns = _columns(graph)
    width = max([_WIDTH, *(int(len(box.label) * _LETTER) + 24 for box in graph.boxes.values())])
    places: dict[str, tuple[int, int]] = {}
    tallest = max((len(column) for column in columns), default=0)
    for x, column in enumerate(columns):
        offset = (tallest - len(column)) * (_HEIGHT + _GAP_Y) // 2
        for y, name in enumerate(column):
            places[name] = (_MARGIN + x * (width + _GAP_X), _MARGIN + offset + y * (_HEIGHT + _GAP_Y))
    total_x = 2 * _MARGIN + len(columns) * (width + _GAP_X) - _GAP_X
    total_y = 2 * _MARGIN + tallest * (_HEIGHT + _GAP_Y) - _GAP_Y
    box = f"0 0 {total_x} {total_y}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" width="{total_x}" height="{total_y}">',
        f"<style>{_STYLE}</style>{_TIP}",
    ]
    lines += [_arrow(places[a], places[b], width, moves=moves) for (a, b), moves in graph.arrows.items()]
    lines += [_box(graph.boxes[name], *places[name], width) for name in places]
    return "\n".join([*lines, "</svg>"])


def _columns(graph: Graph) -> list[list[str]]:
    """Box names by column: one further right than everything that feeds them."""
    depth = dict.fromkeys(graph.boxes, 0)
    for _ in graph.boxes:
        for source, target in graph.arrows:
            depth[target] = max(depth[target], depth[source] + 1)
    columns: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for name, column in depth.items():
        columns[column].append(name)
    return columns


def _box(box: Box, x: int, y: int, width: int) -> str:
    radius = _HEIGHT // 2 if box.shape == "topic" else 5
    title = f"<title>{escape(box.label)}: {box.group[0]}, stage {box.group[1]}</title>" if box.group else ""
    return (
        f'<g>{title}<rect class="{box.shape}" x="{x}" y="{y}" width="{width}" height="{_HEIGHT}" rx="{radius}"/>'
        f'<text x="{x + width // 2}" y="{y + _HEIGHT // 2}">{escape(box.label)}</text></g>'
    )


def _arrow(source: tuple[int, int], target: tuple[int, int], width: int, *, moves: bool) -> str:
    x1, y1 = source[0] + width, source[1] + _HEIGHT // 2
    x2, y2 = target[0], target[1] + _HEIGHT // 2
    middle = (x1 + x2) // 2
    css = "arrow moves" if moves else "arrow"
    return f'<path class="{css}" marker-end="url(#tip)" d="M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}"/>'
