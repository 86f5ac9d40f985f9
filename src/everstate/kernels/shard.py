"""One shard's state during one micro-batch: stores by node, stream times, dead letters and counts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from everstate.kernels.pages.addressing import POLICY, Directory, PagePolicy
from everstate.kernels.pages.grouped_store import GroupedStore
from everstate.kernels.pages.hashing import murmur2, shard_of
from everstate.kernels.pages.page_store import KeyedStore, MemoryPages
from everstate.kernels.pages.slices import Slices
from everstate.kernels.rows import KEY
from everstate.kernels.stream_time import frontier

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import polars as pl

    from everstate.kernels.ledger import Ledger
    from everstate.kernels.order import Order
    from everstate.kernels.pages.page_store import PageStore

#: A node may have this many stores.
SLOTS = 4


class Shard:
    """Opens the stores of a shard's nodes and remembers what must outlive the micro-batch.

    Args:
        pages: Where the pages lie: Spark's state, or a dict.
        bookkeeping: What `close()` gave after the last micro-batch; None on the first.
        ledger: Takes dead letters and counts.
        policy: How large pages are; measurements compare others with the usual one.
        order: Where earlier micro-batches ended, if this one repeats several of them.
        share: Which shard of how many it is, for who has to know which keys it holds.
    """

    def __init__(
        self,
        pages: PageStore,
        bookkeeping: bytes | None,
        ledger: Ledger,
        policy: PagePolicy | None = None,
        order: Order | None = None,
        share: tuple[int, int] = (0, 1),
    ) -> None:
        known: dict[str, Any] = json.loads(bookkeeping) if bookkeeping else {}
        self.pages = pages
        self.ledger = ledger
        self.order = order
        self._share = share
        self._policy = policy or POLICY
        self.stream_times: dict[str, int | None] = known.get("stream_times", {})
        #: The generation is being built: nothing is held back.
        self.building = False
        #: The stream time that everything which feeds the step at work has reached; None if that is not known yet.
        self.frontier: int | None = None
        #: The topics by which the step at work goes, by their place among the unit's.
        self.feeds: frozenset[int] = frozenset()
        #: The recorded wall clock of the micro-batch, in milliseconds; None if the unit does not use it.
        self.clock: int | None = None
        #: What the stream times were before the micro-batch, and the marks of the recorded ones that it repeats.
        self.times_before: dict[str, int | None] = dict(self.stream_times)
        self.marks: pl.DataFrame | None = None
        #: Which of the recorded micro-batches it repeats, as a range; None for none.
        self.repeats: tuple[int, int] | None = None
        self._sliced = {
            name: Slices(pages, _first_store(name), self._policy, plain)
            for name, plain in known.get("sliced", {}).items()
        }
        self._directories = {int(store): Directory.from_json(text) for store, text in known.get("stores", {}).items()}
        self._stores: dict[int, KeyedStore | GroupedStore] = {}

    def keyed(self, node: int, slot: int = 0) -> KeyedStore:
        """A store of one row per key."""
        store = self._open(node, slot, KeyedStore)
        assert isinstance(store, KeyedStore)
        return store

    def multi(self, node: int, slot: int = 0) -> GroupedStore:
        """A store of many rows per key."""
        store = self._open(node, slot, GroupedStore)
        assert isinstance(store, GroupedStore)
        return store

    def _open(self, node: int, slot: int, kind: type[KeyedStore | GroupedStore]) -> KeyedStore | GroupedStore:
        number = node * SLOTS + slot
        if number not in self._stores:
            directory = self._directories.setdefault(number, Directory())
            self._stores[number] = kind(self.pages, number, directory, self._policy)
        return self._stores[number]

    def sliced(self, node: int, slot: int = 0) -> Slices:
        """The stores of a node, apart by time."""
        name = f"{node}/{slot}" if slot else str(node)
        if name not in self._sliced:
            self._sliced[name] = Slices(self.pages, _first_store(name), self._policy)
        return self._sliced[name]

    def passing(self, ledger: Ledger | None = None) -> Shard:
        """A shard for what is over before the micro-batch is: it begins empty, and nobody keeps it.

        Args:
            ledger: Takes what happens in it; by default this shard's.
        """
        return Shard(MemoryPages(), None, ledger or self.ledger, self._policy, self.order, self._share)

    def replace(self, node: int, slot: int, rows: pl.DataFrame) -> None:
        """Put these rows in the place of all that a store of one row per key has, whatever columns those have."""
        number = node * SLOTS + slot
        before = self._directories.get(number, Directory())
        self.pages.delete(number, list(range(before.pages)))
        self._directories[number] = Directory()
        self._stores.pop(number, None)
        self.keyed(node, slot).apply(rows, rows[KEY].clear())

    @property
    def shards(self) -> int:
        """How many shards there are."""
        return self._share[1]

    def reached(self) -> tuple[int | None, int | None]:
        """The stream time that all which feeds the step at work had reached before the micro-batch, and has now."""
        return frontier(self.times_before, self.feeds), frontier(self.stream_times, self.feeds)

    def holds(self, keys: pl.Series) -> npt.NDArray[np.bool_]:
        """Which keys belong to this shard."""
        number, shards = self._share
        mine: npt.NDArray[np.bool_] = shard_of(murmur2(keys), shards) == number
        return mine

    def close(self) -> bytes:
        """Write the pages that changed; returns the bookkeeping for the next micro-batch."""
        for store in self._stores.values():
            store.flush()
        stores = {str(number): directory.to_json() for number, directory in self._directories.items()}
        books: dict[str, Any] = {"stream_times": self.stream_times, "stores": stores}
        if self._sliced:
            books["sliced"] = {name: slices.close() for name, slices in self._sliced.items()}
        return json.dumps(books, sort_keys=True).encode()


def _first_store(name: str) -> int:
    """The number of the first store of a node's slices, from how the bookkeeping calls them."""
    node, _, slot = name.partition("/")
    return int(node) * SLOTS + int(slot or 0)
