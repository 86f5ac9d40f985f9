"""When keys are due: an entry per key and slice of time, so that a moment is found without walking through all keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.kernels.rows import KEY, TS

if TYPE_CHECKING:
    from everstate.kernels.pages.slices import Slices

#: When a key is due.
DUE: Final = "$due"
_NONE: Final = pl.Series([], dtype=pl.Binary)
_LAST: Final = 2**63 - 1


def after(length_ms: int) -> pl.Expr:
    """When a key is due of which nothing has come for so long: never, where that is beyond all numbers."""
    return (pl.min_horizontal(pl.col(TS), pl.lit(_LAST - length_ms, pl.Int64)) + length_ms).alias(DUE)


class DueIndex:
    """Keys by the time at which they are due.

    An entry is never moved: whoever postpones a key adds a second one, and finds when the first is due that there is
    nothing to do.

    Args:
        slices: Where the entries lie.
        width: How long a slice is.

    Example:
        >>> from everstate.kernels.pages.addressing import POLICY
        >>> from everstate.kernels.pages.page_store import MemoryPages
        >>> from everstate.kernels.pages.slices import Slices
        >>> index = DueIndex(Slices(MemoryPages(), 0, POLICY), width=10)
        >>> index.add(pl.DataFrame({"$key": [b"a", b"b", b"c"], "$due": [5, 7, 31]}))
        >>> index.pop(5).to_list(), index.pop(30).to_list(), index.pop(30).to_list()
        ([b'a'], [b'b'], [])
    """

    def __init__(self, slices: Slices, width: int) -> None:
        self._slices = slices
        self._width = width

    def add(self, entries: pl.DataFrame) -> None:
        """Note when keys are due: `$key`, each once, and `$due`."""
        parted = entries.with_columns((pl.col(DUE) // self._width).alias("$slice")).partition_by("$slice", as_dict=True)
        for (number,), part in sorted(parted.items()):
            place = self._slices[int(number)]
            store, noted = place.keyed(0), part.select(KEY, DUE)
            held = store.lookup(noted)
            if held.height:  # the earlier time counts
                noted = pl.concat([noted, held.select(KEY, DUE)]).group_by(KEY).agg(pl.col(DUE).min())
            store.apply(noted, _NONE)
            least = int(noted[DUE].min())  # type: ignore[arg-type]  # times
            place.least = least if place.least is None else min(place.least, least)

    def pop(self, now: int) -> pl.Series:
        """The keys that are due, each once; their entries go."""
        found = [_NONE]
        for number in self._slices.numbers:
            place = self._slices[number]
            if place.least is None or place.least > now:
                continue
            entries = place.keyed(0).scan()
            due = entries[DUE] <= now
            found.append(entries[KEY].filter(due))
            if due.all():
                self._slices.drop(number)
            else:
                place.keyed(0).apply(entries.clear(), entries[KEY].filter(due))
                place.least = int(entries[DUE].filter(~due).min())  # type: ignore[arg-type]  # times
        return pl.concat(found).unique(maintain_order=True)
