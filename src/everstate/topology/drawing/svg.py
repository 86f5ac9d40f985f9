"""A service as an SVG picture."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape, quoteattr

from everstate.topology.drawing.cards import Sheet
from everstate.topology.drawing.layout import MARGIN, PORT, layout
from everstate.topology.drawing.theme import style

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from everstate.topology.drawing.cards import Card, Step, Wording
    from everstate.topology.drawing.layout import Box, Route
    from everstate.topology.unit import Unit

#: Widths of a letter: of names, of small words, of code.
_LETTER: Final = 7.4
_SMALL: Final = 6.3
_CODE: Final = 7.3
_TOPIC: Final = 46
_HEAD: Final = 52
_LINE: Final = 18
_PAD: Final = 12
_BETWEEN: Final = 6
_MOVES: Final = 20
#: Letters of a line of the user's text, and lines of one step.
_LONGEST: Final = 48
_MOST: Final = 6
#: The height of a row of the legend, and what is wide enough for it.
_LEGEND: Final = 26
_NARROWEST: Final = 560.0


def svg(units: Sequence[Unit], wording: Wording | None = None, partitions: Mapping[str, int] | None = None) -> str:
    """A service as SVG: one card per output with its steps, topics around them, a legend below.

    Args:
        units: The outputs.
        wording: What the user wrote; what is missing is told from the steps themselves.
        partitions: Of topics that exist, shown at the arrows.
    """
    sheet = Sheet.of(units, wording, partitions)
    labels = {arrow: len(arrow.label) * _SMALL + 16 if arrow.label else 0.0 for arrow in sheet.arrows}
    sizes = {topic: _topic_size(topic, about) for topic, about in sheet.topics.items()}
    sizes |= {card.topic: _card_size(card, _arriving(sheet, card)) for card in sheet.cards.values()}
    places = layout(sheet, sizes, labels)
    parts = [line for route in places.routes for line in _route(route, labels[route.arrow])]
    parts += [line for topic, about in sheet.topics.items() for line in _topic(topic, about, places.boxes[topic])]
    parts += [line for card in sheet.cards.values() for line in _card(card, places.boxes[card.topic])]
    width = max(places.width, _NARROWEST)
    legend, height = _legend(places.height, width)
    size = f'width="{width:.0f}" height="{height:.0f}"'
    begin = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" {size}>'
    return "\n".join([begin, f"{style()}{_TIP}", f'<rect class="sheet" {size}/>', *parts, *legend, "</svg>"])


_TIP: Final = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path class="tip" d="M0 0L8 4L0 8z"/></marker></defs>'
)


def _arriving(sheet: Sheet, card: Card) -> int:
    return sum(arrow.target == card.topic for arrow in sheet.arrows)


def _topic_size(topic: str, about: str) -> tuple[float, float]:
    return max(len(topic) * _LETTER, len(about) * _SMALL) + 44, float(_TOPIC)


def _card_size(card: Card, arriving: int) -> tuple[float, float]:
    widths = [len(card.topic) * _LETTER, len(card.about) * _SMALL]
    for step in card.steps:
        widths += [_verb(step) + len(line) * _CODE for line in _lines(step)]
        widths.append(_verb(step) + len(step.store) * _SMALL + 16)
    height = _HEAD + sum(_step_height(step) + _BETWEEN for step in card.steps) + _PAD - _BETWEEN
    return max(widths) + 2 * _PAD + 20, max(height, arriving * PORT + 12.0)


def _verb(step: Step) -> float:
    """The width that the word of a step takes."""
    return max(62.0, len(step.phrase.verb) * _LETTER + 14)


def _step_height(step: Step) -> float:
    lines = max(len(_lines(step)), 1) + bool(step.store)
    return lines * _LINE + 12.0 + (_MOVES if step.moved else 0)


def _lines(step: Step) -> list[str]:
    """What a step was given: in one line if it fits there, else one argument a line."""
    arguments = [" ".join(argument.split()) for argument in step.phrase.arguments]
    whole = ", ".join(arguments)
    lines = [whole] if len(whole) <= _LONGEST and arguments else arguments
    shown = [part for line in lines for part in wrap(line, _LONGEST, subsequent_indent="  ")]
    return shown if len(shown) <= _MOST else [*shown[: _MOST - 1], f"… {len(shown) - _MOST + 1} more"]


def _text(x: float, y: float, words: str, css: str = "") -> str:
    kind = f" class={quoteattr(css)}" if css else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{kind} xml:space="preserve">{escape(words)}</text>'


def _rect(box: tuple[float, float, float, float], css: str, radius: float) -> str:
    x, y, width, height = box
    return f'<rect class="{css}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius:.1f}"/>'


def _topic(topic: str, about: str, box: Box) -> Iterator[str]:
    middle, top = box.x + box.width / 2, box.y
    yield _rect((box.x, box.y, box.width, box.height), "topic", box.height / 2)
    yield _text(middle, top + 17, topic, "name middle")
    yield _text(middle, top + 33, about, "soft middle")


def _card(card: Card, box: Box) -> Iterator[str]:
    yield _rect((box.x, box.y, box.width, box.height), "card", 8)
    yield _text(box.x + _PAD + 2, box.y + 19, card.topic, "name")
    yield _text(box.x + _PAD + 2, box.y + 37, card.about, "soft")
    y = box.y + _HEAD
    for step in card.steps:
        yield from _step(step, box, y)
        y += _step_height(step) + _BETWEEN


def _step(step: Step, box: Box, y: float) -> Iterator[str]:
    left, right = box.x + _PAD, box.x + box.width - _PAD
    height = _step_height(step)
    yield f"<g><title>{escape(' '.join((step.phrase.verb, ', '.join(step.phrase.arguments))))}</title>"
    if step.moved:
        words = f"rows move to {step.moved}"
        yield _text(left + 8, y + 7, words, "moved")
        yield f'<path class="moves" d="M{left + 22 + len(words) * _SMALL:.1f} {y + 7:.1f}H{right:.1f}"/>'
        y, height = y + _MOVES, height - _MOVES
    yield _rect((left, y, right - left, height), "step", 5)
    line = y + 6 + _LINE / 2
    yield _text(left + 8, line, step.phrase.verb)
    for number, words in enumerate(_lines(step)):
        yield _text(left + 8 + _verb(step), line + number * _LINE, words, "code")
    if step.store:
        below = y + height - 6 - _LINE / 2
        yield _cylinder(left + 8 + _verb(step), below)
        yield _text(left + 25 + _verb(step), below, step.store, "stored")
    yield "</g>"


def _cylinder(x: float, y: float) -> str:
    return f'<path class="store" d="M{x:.1f} {y - 4.5:.1f}v9c0 3 11 3 11 0v-9c0 -3 -11 -3 -11 0c0 3 11 3 11 0"/>'


def _route(route: Route, label: float) -> Iterator[str]:
    (x, y), *rest = route.points
    way = f"M{x:.1f} {y:.1f}"
    end_x, end_y = rest[-1]
    for number, (to_x, to_y) in enumerate(rest):
        # The label stands before the target, so the last bend ends before it.
        bend_end = to_x - label - 8 if number == len(rest) - 1 and label else to_x
        middle = (x + bend_end) / 2
        way += f"C{middle:.1f} {y:.1f} {middle:.1f} {to_y:.1f} {bend_end:.1f} {to_y:.1f}"
        way += f"H{to_x:.1f}" if bend_end != to_x else ""
        x, y = to_x, to_y
    yield f'<path class="arrow" marker-end="url(#tip)" d="{way}"/>'
    if label:
        yield _rect((end_x - label - 12, end_y - 10, label, 20), "label", 10)
        yield _text(end_x - 12 - label / 2, end_y, route.arrow.label, "soft middle")


def _legend(y: float, width: float) -> tuple[list[str], float]:
    """What the signs mean, in as many rows as it takes, and where it ends."""
    x, line, parts = float(MARGIN), y + _LEGEND / 2, []
    for sign, words in _SIGNS:
        wide = 36 + len(words) * _SMALL
        if x > MARGIN and x + wide > width - MARGIN / 2:
            x, line = float(MARGIN), line + _LEGEND
        parts += [f'<g transform="translate({x:.1f} {line:.1f})">{sign}</g>', _text(x + 36, line, words, "soft")]
        x += wide + 26
    return parts, line + _LEGEND / 2 + MARGIN / 2


#: What stands in the legend, drawn around the height 0.
_SIGNS: Final = (
    (_rect((0, -8, 28, 16), "topic", 8), "a topic"),
    (_rect((0, -8, 28, 16), "card", 4), "an output, its steps in order"),
    (_cylinder(8, 0), "keeps state, in this store"),
    ('<path class="moves" d="M0 0h28"/>', "rows move to the shard of another key"),
    ('<path class="arrow" marker-end="url(#tip)" d="M0 0h28"/>', "records, by their key"),
)
