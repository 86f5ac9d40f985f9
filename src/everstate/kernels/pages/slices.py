"""Stores apart by time: what belongs to one slice of time lies in pages of its own, and leaves as a whole.

State by window has an end. If the windows of a key shared pages with later ones, the end of each would rewrite most
pages of the store; a slice is dropped without reading any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from everstate.kernels.pages.addressing import Directory
from everstate.kernels.pages.grouped_store import WIDE, GroupedStore
from everstate.kernels.pages.page_store import KeyedStore

if TYPE_CHECKING:
    from everstate.kernels.pages.addressing import PagePolicy
    from everstate.kernels.pages.page_store import PageStore

#: The stores of a slice have numbers that begin here times its place; those without slices are numbered below it.
_PLACE: Final = 1 << 10


class Slices:
    """The stores of one operation. Lives for one micro-batch of one shard, as they do.

    Args:
        pages: The shard's raw state.
        base: The number of the operation's first store in it.
        policy: How large pages are.
        known: What `close()` gave after the last micro-batch; None on the first.

    Attributes:
        reached: The stream time up to which the operation has done what is due; -1 before the first.

    Example:
        >>> import polars as pl
        >>> from everstate.kernels.pages.addressing import POLICY
        >>> from everstate.kernels.pages.page_store import MemoryPages
        >>> pages = MemoryPages()
        >>> slices, nothing = Slices(pages, 0, POLICY), pl.Series([], dtype=pl.Binary)
        >>> for number in (7, 8):
        ...     slices[number].keyed(0).apply(pl.DataFrame({"$key": [b"a"], "n": [number]}), nothing)
        >>> slices = Slices(pages, 0, POLICY, slices.close())
        >>> slices.drop(7)
        >>> slices.numbers, slices[8].keyed(0).scan().rows(), len(pages.blocks)
        ([8], [(b'a', 8)], 1)
    """

    def __init__(self, pages: PageStore, base: int, policy: PagePolicy, known: dict[str, Any] | None = None) -> None:
        known = known or {"reached": -1, "slices": {}}
        self.reached: int = known["reached"]
        self._pages = pages
        self._base = base
        self._policy = policy
        self._slices = {
            int(number): Slice(pages, base, plain["place"], policy, plain["stores"], plain.get("least"))
            for number, plain in known["slices"].items()
        }

    @property
    def numbers(self) -> list[int]:
        """The slices that there are, in order of time."""
        return sorted(self._slices)

    def __contains__(self, number: int) -> bool:
        return number in self._slices

    def __getitem__(self, number: int) -> Slice:
        if number not in self._slices:
            taken = {known.place for known in self._slices.values()}
            place = next(free for free in range(1, len(taken) + 2) if free not in taken)
            self._slices[number] = Slice(self._pages, self._base, place, self._policy, {})
        return self._slices[number]

    def drop(self, number: int) -> None:
        """Take a slice away with all its pages."""
        self._slices.pop(number).delete()

    def close(self) -> dict[str, Any]:
        """Write the pages that changed; returns what must be known in the next micro-batch."""
        slices = {str(number): known.close() for number, known in self._slices.items()}
        return {"reached": self.reached, "slices": slices}


class Slice:
    """The stores of one slice of time.

    Args:
        pages: The shard's raw state.
        base: The number of the operation's first store.
        place: Tells the pages of slices apart; that of a slice which is gone is used again.
        policy: How large pages are.
        known: The directories of its stores.
        least: When the first of its rows is due, where rows are.
    """

    def __init__(
        self,
        pages: PageStore,
        base: int,
        place: int,
        policy: PagePolicy,
        known: dict[str, dict[str, Any]],
        least: int | None = None,
    ) -> None:
        self.place = place
        self.least = least
        self._pages = pages
        self._first = base + place * _PLACE
        self._policy = policy
        self._directories = {int(slot): Directory.from_json(plain) for slot, plain in known.items()}
        self._stores: dict[int, KeyedStore | GroupedStore] = {}

    def keyed(self, slot: int) -> KeyedStore:
        """A store of one row a key."""
        store = self._stores.get(slot)
        if not isinstance(store, KeyedStore):
            store = KeyedStore(self._pages, self._first + slot, self._directory(slot), self._policy)
            self._stores[slot] = store
        return store

    def multi(self, slot: int) -> GroupedStore:
        """A store of many rows a key."""
        store = self._stores.get(slot)
        if not isinstance(store, GroupedStore):
            store = GroupedStore(self._pages, self._first + slot, self._directory(slot), self._policy)
            self._stores[slot] = store
        return store

    def delete(self) -> None:
        """Take all its pages away; changes that were not written yet go with them."""
        for slot, directory in self._directories.items():
            self._pages.delete(self._first + slot, list(range(directory.pages)))
            if directory.wide is not None:
                self._pages.delete(self._first + slot + WIDE, list(range(directory.wide.pages)))

    def close(self) -> dict[str, Any]:
        """Write the pages that changed; returns what must be known of it."""
        for store in self._stores.values():
            store.flush()
        stores = {str(slot): directory.to_json() for slot, directory in self._directories.items()}
        due = {} if self.least is None else {"least": self.least}
        return {"place": self.place, "stores": stores, **due}

    def _directory(self, slot: int) -> Directory:
        return self._directories.setdefault(slot, Directory())
