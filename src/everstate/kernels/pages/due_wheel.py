"""When keys are due, where nobody knows how far ahead: slices of time that are the longer, the further away they are.

With slices of one length a timer for next year and one for the next second would share pages that are read every
second, or the year would be cut into millions of slices. What is far away therefore lies in long slices, and is spread
over shorter ones when the first key of a slice is due: an entry is written again a handful of times at the most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.kernels.pages.due_index import DUE
from everstate.kernels.rows import KEY

if TYPE_CHECKING:
    from everstate.kernels.pages.slices import Slices

#: How long slices are, by level, and how many of a level there are about; what is further away than all is in the last.
_WIDTHS: Final = (1_000, 64_000, 4_096_000, 262_144_000, 16_777_216_000)
_MANY: Final = 64
_NONE: Final = pl.Series([], dtype=pl.Binary)


class DueWheel:
    """Keys by the time at which they are due.

    An entry is never moved when a key is postponed: when it is due there is nothing to do, and whoever keeps the key
    adds another.

    Args:
        slices: Where the entries lie.

    Example:
        >>> from everstate.kernels.pages.addressing import POLICY
        >>> from everstate.kernels.pages.page_store import MemoryPages
        >>> from everstate.kernels.pages.slices import Slices
        >>> wheel = DueWheel(Slices(MemoryPages(), 0, POLICY))
        >>> wheel.add(pl.DataFrame({"$key": [b"a", b"b", b"c"], "$due": [500, 90_000, 95_000]}), now=0)
        >>> wheel.pop(500).to_list(), wheel.pop(90_000).to_list(), wheel.pop(94_000).to_list()
        ([b'a'], [b'b'], [])
    """

    def __init__(self, slices: Slices) -> None:
        self._slices = slices

    def add(self, entries: pl.DataFrame, now: int) -> None:
        """Note when keys are due.

        Args:
            entries: `$key`, each once, and `$due`.
            now: The time that has been reached: what is near it lies in short slices.
        """
        ahead = pl.col(DUE) - now
        level = pl.sum_horizontal((ahead >= width * _MANY).cast(pl.Int64) for width in _WIDTHS[:-1])
        leveled = entries.with_columns(level.alias("$level"))
        for (depth,), part in leveled.partition_by("$level", as_dict=True).items():
            numbers = pl.col(DUE) // _WIDTHS[int(depth)] * len(_WIDTHS) + int(depth)
            for (number,), some in (
                part.with_columns(numbers.alias("$slice")).partition_by("$slice", as_dict=True).items()
            ):
                self._put(int(number), some.select(KEY, DUE))

    def _put(self, number: int, noted: pl.DataFrame) -> None:
        place = self._slices[number]
        store = place.keyed(0)
        held = store.lookup(noted)
        if held.height:  # the earlier time counts
            noted = pl.concat([noted, held.select(KEY, DUE)]).group_by(KEY).agg(pl.col(DUE).min())
        store.apply(noted, _NONE)
        least = int(noted[DUE].min())  # type: ignore[arg-type]  # times
        place.least = least if place.least is None else min(place.least, least)

    def pop(self, now: int) -> pl.Series:
        """The keys that are due, each once; their entries go."""
        found, later = [_NONE], []
        for number in self._slices.numbers:
            place = self._slices[number]
            if place.least is None or place.least > now:
                continue
            entries = place.keyed(0).scan()
            due = entries[DUE] <= now
            found.append(entries[KEY].filter(due))
            rest = entries.filter(~due).select(KEY, DUE)
            if number % len(_WIDTHS) or rest.is_empty():
                self._slices.drop(number)
                later.append(rest)
            else:
                place.keyed(0).apply(entries.clear(), entries[KEY].filter(due))
                place.least = int(rest[DUE].min())  # type: ignore[arg-type]  # times
        if any(rest.height for rest in later):
            # One entry of a key in each of them: the earliest counts, whichever slice it was in.
            self.add(pl.concat(later).group_by(KEY).agg(pl.col(DUE).min()).sort(KEY), now)
        return pl.concat(found).unique(maintain_order=True)
