"""Which windows the rows of a group make: sessions, and windows that slide.

Rows may be taken in any order: windows follow from the set of rows that count, each with its time and its stream time.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Windows:
    """The windows of a group.

    Attributes:
        members: By window (first, last), the places of its rows.
    """

    members: dict[tuple[int, int], list[int]] = field(default_factory=dict)


def sessions(times: list[int], gap: int) -> Windows:
    """Runs of rows at a distance of at most a gap.

    Args:
        times: When the rows happened, in order.
        gap: The longest pause within a session.

    Example:
        >>> sessions([0, 4, 20, 21], gap=5).members
        {(0, 4): [0, 1], (20, 21): [2, 3]}
    """
    runs: list[list[int]] = []
    for place, time in enumerate(times):
        if runs and time - times[runs[-1][-1]] <= gap:
            runs[-1].append(place)
        else:
            runs.append([place])
    return Windows({(times[run[0]], times[run[-1]]): run for run in runs})


def sliding(times: list[int], at: list[int], size: int, grace: int) -> Windows:
    """Windows that end with a row, and windows that begin just after one; both ends belong to them.

    A row at t makes [t - size, t] ([0, size] if that would begin before 0) if it is in time for it, and [t + 1, t + 1 +
    size] if there are rows for that one. A row counts in a window if its stream time is at most the window's end plus
    grace.

    Args:
        times: When the rows happened, in order; each is in time for the last window that it could belong to.
        at: Their stream times.
        size: How long a window is.
        grace: How long after its end a window takes rows.

    Example:
        >>> sliding([10, 13], [10, 13], size=5, grace=0).members
        {(5, 10): [0], (8, 13): [0, 1], (11, 16): [1]}
    """

    def members(first: int, last: int) -> list[int]:
        inside = range(bisect_left(times, first), bisect_right(times, last))
        return [place for place in inside if at[place] <= last + grace]

    found: dict[tuple[int, int], list[int]] = {}
    for time, now in zip(times, at, strict=True):
        first, last = max(time - size, 0), max(time, size)
        if now <= last + grace and (first, last) not in found:
            found[first, last] = members(first, last)
    for time in times:
        after = (time + 1, time + 1 + size)
        inside = [] if after in found else members(*after)
        if inside:
            found[after] = inside
    return Windows(found)
