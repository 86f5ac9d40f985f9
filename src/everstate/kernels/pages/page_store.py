"""A shard's state as pages: what holds them, and the store of one row per key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from everstate.kernels.pages.addressing import POLICY, Directory, PagePolicy
from everstate.kernels.pages.hashing import murmur2
from everstate.kernels.pages.loaded_pages import LoadedPages
from everstate.kernels.rows import KEY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from everstate.kernels.pages.addressing import Hashes


class PageStore(Protocol):
    """The raw state of one shard: blocks of bytes by store and page."""

    def read(self, store: int, pages: Sequence[int]) -> list[bytes | None]:
        """The blocks of pages; None where there is none."""
        ...

    def write(self, store: int, blocks: Mapping[int, bytes]) -> None:
        """Write the blocks of pages."""
        ...

    def delete(self, store: int, pages: Sequence[int]) -> None:
        """Take pages away."""
        ...


class MemoryPages:
    """Pages in a dict, with counts of what was touched."""

    def __init__(self) -> None:
        self.blocks: dict[tuple[int, int], bytes] = {}
        self.reset_counts()

    def reset_counts(self) -> None:
        """Begin counting again."""
        self.gets = self.puts = self.deletes = 0
        self.bytes_read = self.bytes_written = 0

    @property
    def size(self) -> int:
        """The bytes of all blocks."""
        return sum(map(len, self.blocks.values()))

    def read(self, store: int, pages: Sequence[int]) -> list[bytes | None]:
        """The blocks of pages; None where there is none."""
        found = [self.blocks.get((store, page)) for page in pages]
        self.gets += len(pages)
        self.bytes_read += sum(len(block or b"") for block in found)
        return found

    def write(self, store: int, blocks: Mapping[int, bytes]) -> None:
        """Write the blocks of pages."""
        self.puts += len(blocks)
        self.bytes_written += sum(map(len, blocks.values()))
        self.blocks.update({(store, page): block for page, block in blocks.items()})

    def delete(self, store: int, pages: Sequence[int]) -> None:
        """Take pages away."""
        self.deletes += len(pages)
        for page in pages:
            self.blocks.pop((store, page), None)


class KeyedStore:
    """One row a `$key`. Lives for one micro-batch of one shard.

    Each page that is touched is read once; `flush()` writes those in which a row was put or deleted, once.

    Args:
        pages: The shard's raw state.
        store: The number of this store in it; below `grouped_store.WIDE`.
        directory: What is known of the store from the last micro-batch; kept up to date, persisted by the caller after
            `flush()`.
        policy: How large pages are.

    Example:
        >>> import polars as pl
        >>> pages, directory = MemoryPages(), Directory()
        >>> store = KeyedStore(pages, 0, directory)
        >>> store.apply(pl.DataFrame({"$key": [b"a", b"b"], "n": [1, 2]}), pl.Series([b"c"]))
        >>> store.flush()
        >>> KeyedStore(pages, 0, directory).lookup(pl.DataFrame({"$key": [b"b", b"x"]})).rows()
        [(b'b', 2)]
    """

    def __init__(self, pages: PageStore, store: int, directory: Directory, policy: PagePolicy = POLICY) -> None:
        self._loaded = LoadedPages(pages, store, directory, (KEY,), policy)

    @property
    def rows(self) -> int:
        """How many rows are stored."""
        return self._loaded.directory.rows

    @property
    def pages(self) -> int:
        """How many pages they lie in, as of the last flush."""
        return self._loaded.directory.pages

    def lookup(self, keys: pl.DataFrame) -> pl.DataFrame:
        """The stored rows of these keys, in no particular order.

        Args:
            keys: Has a column `$key` without duplicates.

        Returns:
            The rows found, with the columns that their pages have; only `$key` if these pages hold nothing.
        """
        ids = keys.select(KEY)
        self._loaded.load(self._loaded.page_of(murmur2(ids[KEY])))
        return self._loaded.rows(self._loaded.find(ids)[1])

    def aligned(self, keys: pl.DataFrame) -> pl.DataFrame:
        """As `lookup`, but a row for each key, in the keys' order; its columns are null where nothing is stored."""
        ids = keys.select(KEY)
        self._loaded.load(self._loaded.page_of(murmur2(ids[KEY])))
        return self._loaded.aligned(ids).with_columns(ids[KEY])

    def apply(self, upserts: pl.DataFrame, deletes: pl.Series) -> None:
        """Delete rows, then add or replace rows.

        Args:
            upserts: Whole rows, without duplicates by `$key`.
            deletes: `$key`s; those that are not there are ignored.
        """
        if len(deletes):
            self._loaded.delete(deletes.alias(KEY).to_frame(), murmur2(deletes))
        if upserts.height:
            self._loaded.replace(upserts, murmur2(upserts[KEY]))

    def scan(self) -> pl.DataFrame:
        """All rows of the store."""
        return self._loaded.all_rows()

    def flush(self) -> None:
        """Write what changed."""
        self._loaded.flush(_hashes)


def _hashes(ids: pl.DataFrame) -> Hashes:
    hashes: Hashes = murmur2(ids[KEY])
    return hashes
