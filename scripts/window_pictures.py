"""Makes the pictures of windows in docs/guides/windows.md: rows in time, and the results that a service makes of them.

    python scripts/window_pictures.py [FOLDER]

Every bar and number is output of the test driver. What a picture shows is also its description.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

import everstate as es
from everstate import col

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
MINUTE = 60_000
#: Minute and amount of each row, in the order in which they come: the last but one is late.
ROWS = ((1, 3), (2, 1), (4, 2), (6, 5), (11, 1), (12, 4), (3, 7), (14, 2))
WINDOWS = {
    "tumbling": ('es.tumbling("5m")', es.tumbling("5m")),
    "hopping": ('es.hopping("6m", "3m")', es.hopping("6m", "3m")),
    "session": ('es.session("3m")', es.session("3m")),
    "sliding": ('es.sliding("3m")', es.sliding("3m")),
}
#: Sheet, text, faint text, lines, bars, their edges, rows, late rows.
COLOURS = {
    "light": ("#ffffff", "#1f2937", "#4b5563", "#d1d5db", "#dbeafe", "#1d4ed8", "#1d4ed8", "#b91c1c"),
    "dark": ("#0d1117", "#dee4ec", "#8b949e", "#30363d", "#12325c", "#79c0ff", "#79c0ff", "#ff7b72"),
}
LEFT, STEP, AXIS, LANE, LAST = 24.0, 41.0, 96.0, 30.0, 18


@dataclass(frozen=True)
class Bar:
    """A window with its result: minutes, and what it says.

    Attributes:
        closed: The end belongs to it.
        after: It begins just after its first minute.
    """

    start: int
    end: int
    closed: bool
    after: bool
    text: str

    @property
    def left(self) -> float:
        """Where it begins in the picture."""
        return x(self.start) + (4 if self.after else -7 if self.closed else 0)

    @property
    def right(self) -> float:
        """Where it ends."""
        return x(self.end) + (7 if self.closed else 0)


def results(kind: str) -> tuple[list[Bar], set[int]]:
    """What comes out of a window of this kind, and which rows were late for all windows."""
    app = es.Service("pictures")
    clicks = app.stream("clicks", key="id", schema={"id": str, "user": str, "amount": int})
    by_user = clicks.group_by("user").window(WINDOWS[kind][1], late_to="late")
    by_user.agg(rows=es.count(), total=col("amount").sum()).to("results")
    driver = es.testing.Driver(app)
    for number, (minute, amount) in enumerate(ROWS):
        driver.send("clicks", str(number), {"user": "ada", "amount": amount}, ts=minute * MINUTE)
    bars = [
        Bar(
            int(start.timestamp()) // 60,
            int(end.timestamp()) // 60,
            kind in ("session", "sliding"),
            start.microsecond > 0,
            f"{value['rows']} {'row' if value['rows'] == 1 else 'rows'}, total {value['total']}",
        )
        for (_, start, end), value in driver.table("results").items()
    ]
    return sorted(bars, key=lambda bar: (bar.start, bar.after)), {
        int(row["key"]) for row in driver.table("late").values()
    }


def lanes(bars: list[Bar]) -> list[int]:
    """By bar, the first lane in which it covers no other."""
    ends: list[float] = []
    found = []
    for bar in bars:
        lane = next((lane for lane, end in enumerate(ends) if end <= bar.left), len(ends))
        ends[lane:] = [bar.right, *ends[lane + 1 :]]
        found.append(lane)
    return found


def x(minute: float) -> float:
    """Where a minute is."""
    return LEFT + STEP * minute


def description(kind: str) -> list[str]:
    """What a picture shows, in words."""
    bars, late = results(kind)
    rows = [f"{'late row' if n in late else 'row'} at 10:{m:02}, amount {a}" for n, (m, a) in enumerate(ROWS)]
    windows = [_told(bar) for bar in bars]
    return [WINDOWS[kind][0], *rows, *windows]


def _told(bar: Bar) -> str:
    return f"window from {'after ' if bar.after else ''}10:{bar.start:02} to 10:{bar.end:02}: {bar.text}"


def drawing(kind: str, theme: str) -> str:
    """The picture of one kind."""
    sheet, text, faint, line, fill, edge, dot, wrong = COLOURS[theme]
    bars, late = results(kind)
    places = lanes(bars)
    width, height = 2 * LEFT + STEP * LAST, AXIS + 34 + LANE * (max(places) + 1)
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
            f'height="{height:g}">'
        ),
        f"<desc>{escape('; '.join(description(kind)))}</desc>",
        (
            "<style>text{font:12px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;"
            f"fill:{text}}}.faint{{fill:{faint};font-size:11px}}.code{{font:13px ui-monospace,'SF Mono',Menlo,Consolas,"
            f"monospace}}.middle{{text-anchor:middle}}.late{{fill:{wrong}}}</style>"
        ),
        f'<rect width="{width:g}" height="{height:g}" fill="{sheet}"/>',
        f'<text x="{LEFT:g}" y="26" class="code">{escape(WINDOWS[kind][0])}</text>',
    ]
    for minute in range(LAST + 1):
        parts.append(f'<path d="M{x(minute):g} {AXIS - 5:g}V{height - 12:g}" stroke="{line}" stroke-width="0.7"/>')
        if minute % 5 == 0:
            parts.append(f'<text x="{x(minute):g}" y="{AXIS + 16:g}" class="faint middle">10:{minute:02}</text>')
    parts.append(f'<path d="M{LEFT:g} {AXIS:g}H{x(LAST):g}" stroke="{text}"/>')
    for number, (minute, amount) in enumerate(ROWS):
        missed = number in late
        parts.append(
            f'<circle cx="{x(minute):g}" cy="{AXIS:g}" r="5.5" fill="{sheet if missed else dot}" '
            f'stroke="{wrong if missed else dot}" stroke-width="1.6"/>'
            f'<text x="{x(minute):g}" y="{AXIS - 13:g}" class="middle{" late" if missed else ""}">{amount}</text>'
        )
        if missed:
            parts.append(f'<text x="{x(minute):g}" y="{AXIS - 28:g}" class="late middle">late</text>')
    for bar, lane in zip(bars, places, strict=True):
        top = AXIS + 26 + LANE * lane
        parts.append(
            f'<rect x="{bar.left:g}" y="{top:g}" width="{bar.right - bar.left:g}" height="24" '
            f'rx="{6 if bar.closed else 0}" fill="{fill}" stroke="{edge}"/>'
            f'<text x="{bar.left + 7:g}" y="{top + 16:g}">{escape(bar.text)}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def main() -> int:
    """Make all of them."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES
    target.mkdir(parents=True, exist_ok=True)
    for kind in WINDOWS:
        for theme in COLOURS:
            (target / f"{kind}-{theme}.svg").write_text(drawing(kind, theme), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
