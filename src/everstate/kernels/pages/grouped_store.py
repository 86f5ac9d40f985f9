"""The store of many rows per key: groups of any size, a large one spread over many pages.

A small group lies in one page, addressed by the hash of its `$key`. A group that has outgrown a bucket is spread over
a number of buckets, its fan-out, by the hash of `$ck` (linear hashing again, so that a fan-out grows by single
buckets), and each bucket is addressed by a mix of the group's hash and its own number. Changing one row of a very large
group thus touches the page of one bucket. Fan-outs and row counts of the large groups, and only of these, are kept in
a store of one row per key beside this one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from everstate.kernels.pages.addressing import POLICY, Directory, PagePolicy, address, enumerate_each, mix, settle
from everstate.kernels.pages.hashing import murmur2
from everstate.kernels.pages.loaded_pages import LoadedPages
from everstate.kernels.pages.page_store import KeyedStore
from everstate.kernels.rows import CONTRIBUTION, KEY

if TYPE_CHECKING:
    from everstate.kernels.pages.addressing import Hashes, Numbers
    from everstate.kernels.pages.page_store import PageStore

#: Added to a store's number: the store of its large groups. Stores are numbered below it.
WIDE: Final = 1 << 30

_COUNT = "$count"
_FAN = "$fan"


class GroupedStore:
    """Many rows a `$key`, unique by (`$key`, `$ck`). Lives for one micro-batch of one shard, as `KeyedStore` does.

    Args:
        pages: The shard's raw state.
        store: The number of this store in it; below `WIDE`. Its large groups have the number `store + WIDE`.
        directory: What is known of the store from the last micro-batch; kept up to date, persisted by the caller after
            `flush()`.
        policy: How large pages and buckets are.

    Example:
        >>> from everstate.kernels.pages.page_store import MemoryPages
        >>> pages, directory = MemoryPages(), Directory()
        >>> store = GroupedStore(pages, 0, directory)
        >>> rows = pl.DataFrame({"$key": [b"g", b"g", b"h"], "$ck": [b"1", b"2", b"1"], "n": [1, 2, 3]})
        >>> store.apply(rows, rows.head(0))
        >>> store.flush()
        >>> sorted(GroupedStore(pages, 0, directory).lookup(pl.DataFrame({"$key": [b"g"]})).rows())
        [(b'g', b'1', 1), (b'g', b'2', 2)]
    """

    def __init__(self, pages: PageStore, store: int, directory: Directory, policy: PagePolicy = POLICY) -> None:
        directory.wide = directory.wide or Directory()
        self._loaded = LoadedPages(pages, store, directory, (KEY, CONTRIBUTION), policy)
        self._large = KeyedStore(pages, store + WIDE, directory.wide, policy)
        self._policy = policy
        self._changes: list[pl.DataFrame] = []

    @property
    def rows(self) -> int:
        """How many rows are stored."""
        return self._loaded.directory.rows

    @property
    def pages(self) -> int:
        """How many pages they lie in, as of the last flush."""
        return self._loaded.directory.pages

    def lookup(self, keys: pl.DataFrame) -> pl.DataFrame:
        """All stored rows of these groups, in no particular order.

        Args:
            keys: Has a column `$key` without duplicates.
        """
        groups = keys.select(KEY)
        fans = self._fans(groups[KEY])
        hashes = mix(np.repeat(murmur2(groups[KEY]), fans), enumerate_each(fans))
        self._loaded.load(self._loaded.page_of(hashes))
        return self._loaded.rows(self._loaded.find(groups)[1])

    def lookup_rows(self, pairs: pl.DataFrame) -> pl.DataFrame:
        """The stored rows of these pairs; reads only the pages in which they lie.

        Args:
            pairs: Has columns `$key` and `$ck`, without duplicates.
        """
        ids = pairs.select(KEY, CONTRIBUTION)
        self._loaded.load(self._loaded.page_of(self._hashes(ids)))
        return self._loaded.rows(self._loaded.find(ids)[1])

    def apply(self, upserts: pl.DataFrame, deletes: pl.DataFrame) -> None:
        """Delete rows, then add or replace rows.

        Args:
            upserts: Whole rows, without duplicates by (`$key`, `$ck`).
            deletes: Columns `$key` and `$ck`; those that are not there are ignored.
        """
        if deletes.height:
            gone = self._loaded.delete(deletes, self._hashes(deletes))
            self._note(deletes[KEY], gone, -1)
        if upserts.height:
            new = self._loaded.replace(upserts, self._hashes(upserts))
            self._note(upserts[KEY], new, 1)

    def scan(self) -> pl.DataFrame:
        """All rows of the store."""
        return self._loaded.all_rows()

    def flush(self) -> None:
        """Write what changed."""
        if self._changes and (self._large.rows or self._may_be_large(self.rows)):
            self._respread(pl.concat(self._changes).group_by(KEY).agg(pl.col(_COUNT).sum()))
        self._changes.clear()
        self._loaded.flush(self._hashes)
        self._large.flush()

    def _fans(self, keys: pl.Series) -> Numbers:
        """The fan-out of each key's group; keys may repeat."""
        if not self._large.rows or keys.is_empty():
            return np.ones(len(keys), np.int64)
        wanted = keys.alias(KEY).to_frame()
        large = self._large.lookup(wanted.unique())
        if large.is_empty():
            return np.ones(len(keys), np.int64)
        joined = wanted.join(large.select(KEY, _FAN), on=KEY, how="left", maintain_order="left")
        fans: Numbers = joined[_FAN].fill_null(1).to_numpy()
        return fans

    def _hashes(self, ids: pl.DataFrame) -> Hashes:
        return _spread(ids, self._fans(ids[KEY]))

    def _note(self, keys: pl.Series, at: Numbers, sign: int) -> None:
        """Remember for `flush` that the groups of the keys at these positions gained or lost a row each."""
        if len(at):
            changed = keys[at].alias(KEY).to_frame()
            self._changes.append(changed.with_columns(pl.lit(sign, pl.Int64).alias(_COUNT)))

    def _may_be_large(self, count: int) -> bool:
        """Whether so many rows fill two buckets, so that their group is spread."""
        return count * self._loaded.row_width > 2 * self._policy.bucket

    def _respread(self, changes: pl.DataFrame) -> None:
        """Bring counts and fan-outs of the groups that gained or lost rows up to date.

        Args:
            changes: `$key`, and the rows that its group gained in `$count`.
        """
        groups = self._counts(changes)
        limit = self._policy.limit(int(changes[_COUNT].abs().sum()))
        before, count = groups[_FAN].to_numpy(), groups[_COUNT].to_numpy()
        wanted = np.ceil(count * self._loaded.row_width / self._policy.bucket).astype(np.int64)
        # A group outgrows its page only with two buckets full, so that it does not swing around one.
        small = (wanted == 0) | ((before == 1) & (wanted <= 2))
        after = np.where(small, 1, settle(before, wanted, limit))
        groups = groups.with_columns(pl.Series(_FAN, after))
        moving = (after != before) & (count > 0)
        if moving.any():
            self._move(groups.filter(moving), before[moving])
        large = groups.filter(pl.col(_FAN) > 1)
        self._large.apply(large, groups.filter(after == 1, before > 1)[KEY])

    def _counts(self, changes: pl.DataFrame) -> pl.DataFrame:
        """Rows and present fan-outs of the changed groups that are large or may have become so."""
        known = pl.DataFrame(schema={KEY: pl.Binary, _COUNT: pl.Int64, _FAN: pl.Int64})
        if self._large.rows:
            held = self._large.lookup(changes.select(KEY))
            if held.height:
                sums = held.join(changes, on=KEY, suffix="_gained")
                known = sums.select(KEY, pl.col(_COUNT) + pl.col(f"{_COUNT}_gained"), pl.col(_FAN))
        small = changes.filter(pl.col(_COUNT) > 0).select(KEY).join(known, on=KEY, how="anti")
        # All rows of a small group are resident, for its page was read.
        at, _ = self._loaded.find(small)
        counts = np.bincount(at, minlength=small.height)
        counted = small.with_columns(pl.Series(_COUNT, counts, pl.Int64), pl.lit(1, pl.Int64).alias(_FAN))
        return pl.concat([known, counted])

    def _move(self, groups: pl.DataFrame, before: Numbers) -> None:
        """Read the buckets that come, go, give or take rows, and address the rows of these groups again."""
        after = groups[_FAN].to_numpy()
        fewer, spans = np.minimum(before, after), np.abs(after - before)
        fewer, hashes = np.repeat(fewer, spans), np.repeat(murmur2(groups[KEY]), spans)
        buckets = fewer + enumerate_each(spans)
        touched = [mix(hashes, buckets), mix(hashes, address(buckets, fewer))]
        self._loaded.load(self._loaded.page_of(np.concatenate(touched)))
        at, rows = self._loaded.find(groups.select(KEY))
        ids = self._loaded.rows(rows).select(KEY, CONTRIBUTION)
        self._loaded.move(rows, _spread(ids, after[at]))


def _spread(ids: pl.DataFrame, fans: Numbers) -> Hashes:
    """The address hashes of rows whose groups have these fan-outs."""
    hashes: Hashes = murmur2(ids[KEY])
    wide = np.flatnonzero(fans > 1)
    if len(wide):
        buckets = address(murmur2(ids[CONTRIBUTION][wide]), fans[wide])
        hashes[wide] = mix(hashes[wide], buckets)
    return hashes
