"""The rows of the pages that a micro-batch has read, as one frame, and the writing back of those that it changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa

from everstate.errors import CheckpointDamagedError
from everstate.kernels.pages.addressing import POLICY, Directory, PagePolicy, address, moved, settle
from everstate.kernels.pages.page_bytes import combine, decode, encode, expected_payload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy.typing as npt

    from everstate.kernels.pages.addressing import Hashes, Numbers
    from everstate.kernels.pages.page_store import PageStore

#: In the place of a page number: the row was replaced or deleted.
_GONE = -1
#: In the place of a hash: not known, as only pages that are split need it.
_UNKNOWN = -1

#: From so many keys on, joining by their hashes (of this process, never stored) beats joining by their bytes.
_MANY = 50_000

_HASH = "$hash"
_ROW = "$row"
_AT = "$at"


class LoadedPages:
    """The resident part of a store: each page is read once at most, and written once at most, at `flush`.

    Rows are never changed in place: one that is replaced or deleted is marked as gone, and its successor appended.

    Args:
        pages: Where the pages lie.
        store: The number of this store among them.
        directory: Of this store; kept up to date.
        ids: The columns that name a row.
        policy: How large pages are.
    """

    def __init__(
        self, pages: PageStore, store: int, directory: Directory, ids: tuple[str, ...], policy: PagePolicy = POLICY
    ) -> None:
        self.directory = directory
        self.policy = policy
        self._pages = pages
        self._store = store
        self._ids = list(ids)
        self._payloads: dict[int, int] = {}
        self._frame = pl.DataFrame(schema=dict.fromkeys(ids, pl.Binary))
        self._found: tuple[pl.DataFrame, Numbers, Numbers] | None = None
        self._page: Numbers = np.empty(0, np.int64)
        self._hash: Numbers = np.empty(0, np.int64)
        self._dirty: set[int] = set()
        self._changed = 0
        self._growth = 0.0

    @property
    def row_width(self) -> float:
        """About how many bytes a row takes in its page."""
        return max(1.0, (self.directory.size + self._growth) / max(1, self.directory.rows))

    def page_of(self, hashes: npt.NDArray[np.generic]) -> Numbers:
        """The page of every hash as long as nothing is flushed."""
        return address(hashes, max(1, self.directory.pages))

    def load(self, numbers: npt.NDArray[np.int64] | Iterable[int]) -> None:
        """Read those of these pages that are not resident yet."""
        wanted = [number for number in _distinct(numbers) if number not in self._payloads]
        self._payloads.update(dict.fromkeys(wanted, 0))
        stored = [number for number in wanted if number < self.directory.pages]
        try:
            read = zip(stored, self._pages.read(self._store, stored), strict=True)
            blocks = {number: block for number, block in read if block is not None}
            if not blocks:
                return
            decoded = decode(list(blocks.values()))
        except pa.ArrowInvalid as error:
            raise CheckpointDamagedError(
                f"pages {min(stored)} to {max(stored)} of store {self._store} cannot be read: {error}",
                hint="Delete the state, so that the next run rebuilds it: everstate clear SERVICE.py",
            ) from error
        origin = np.fromiter(blocks, np.int64, len(blocks))[decoded.order]
        self._payloads.update(zip(origin.tolist(), decoded.payloads, strict=True))
        self._append(decoded.frame, np.repeat(origin, decoded.lengths))

    def find(self, ids: pl.DataFrame) -> tuple[Numbers, Numbers]:
        """Resident rows by the columns of `ids` (all that name a row, or some): positions in `ids`, and rows."""
        if self._frame.is_empty() or ids.is_empty():
            return np.empty(0, np.int64), np.empty(0, np.int64)
        # A kernel that looks rows up mostly replaces the same ones next.
        if self._found is None or not self._found[0].equals(ids):
            self._found = (ids, *_matches(ids, self._frame.select(ids.columns)))
        _, at, row = self._found
        live = self._page[row] != _GONE
        return at[live], row[live]

    def rows(self, numbers: Numbers) -> pl.DataFrame:
        """Resident rows by their numbers."""
        if len(numbers) == self._frame.height and (np.diff(numbers) == 1).all():
            return self._frame
        return self._frame[numbers]

    def aligned(self, ids: pl.DataFrame) -> pl.DataFrame:
        """One resident row for each of these names, in their order; nulls where there is none."""
        at, row = self.find(ids)
        numbers = np.full(ids.height, -1, np.int64)
        numbers[at] = row
        place = pl.Series(numbers)
        return self._frame.select(pl.all().gather(place.set(place < 0, None)))

    def all_rows(self) -> pl.DataFrame:
        """Every row of the store; reads all pages."""
        self.load(range(self.directory.pages))
        return self._frame.filter(self._page != _GONE)

    def replace(self, upserts: pl.DataFrame, hashes: Hashes) -> Numbers:
        """Put these rows in the place of those of the same name; returns the positions of the ones that are new."""
        pages = self.page_of(hashes)
        self.load(pages)
        at, row = self.find(upserts.select(self._ids))
        self._remove(row)
        self._append(upserts, pages, hashes)
        self._growth += expected_payload(upserts)
        self._touch(pages)
        self.directory.rows += upserts.height
        self._changed += upserts.height
        new = np.ones(upserts.height, np.bool_)
        new[at] = False
        return np.flatnonzero(new)

    def delete(self, ids: pl.DataFrame, hashes: Hashes) -> Numbers:
        """Take these rows away; returns the positions of those that were there."""
        self.load(self.page_of(hashes))
        at, row = self.find(ids.select(self._ids))
        self._touch(self._page[row])
        self._changed += len(row)
        self._remove(row)
        return at

    def move(self, rows: Numbers, hashes: Hashes) -> None:
        """Give resident rows another hash; their new pages are resident already."""
        pages = self.page_of(hashes)
        other = pages != self._page[rows]
        self._touch(self._page[rows[other]])
        self._touch(pages[other])
        self._page[rows] = pages
        self._hash[rows] = hashes

    def flush(self, rehash: Callable[[pl.DataFrame], Hashes]) -> None:
        """Split or merge pages as the store grew or shrank, and write every page that changed.

        Args:
            rehash: The hashes of rows by the columns that name them.
        """
        if not self._dirty:
            return
        self._resize(rehash)
        self._write()
        self._dirty.clear()
        self._changed, self._growth = 0, 0.0

    def _append(self, frame: pl.DataFrame, page: Numbers, hashes: Hashes | None = None) -> None:
        known = np.full(frame.height, _UNKNOWN, np.int64) if hashes is None else hashes.astype(np.int64)
        self._frame = combine([self._frame, frame]) if len(self._page) else frame
        self._found = None
        self._page = np.concatenate([self._page, page])
        self._hash = np.concatenate([self._hash, known])

    def _remove(self, rows: Numbers) -> None:
        self._growth -= len(rows) * self.directory.size / max(1, self.directory.rows)
        self.directory.rows -= len(rows)
        self._page[rows] = _GONE

    def _touch(self, pages: Numbers) -> None:
        self._dirty.update(_distinct(pages))

    def _resize(self, rehash: Callable[[pl.DataFrame], Hashes]) -> None:
        directory = self.directory
        before = max(1, directory.pages)
        wanted = self.policy.pages(directory.rows, round(directory.size + self._growth))
        after = max(1, int(settle(before, wanted, self.policy.limit(self._changed))))
        if after != before:
            numbers, partners = moved(before, after)
            self.load(partners)
            self.load(numbers)
            if after > before:
                self._split(partners, after, rehash)
            else:
                rows = np.flatnonzero(self._page >= after)
                self._touch(numbers)
                self._page[rows] = address(self._page[rows], after)
                self._touch(self._page[rows])
        directory.pages = after if directory.rows or after > 1 else 0

    def _split(self, sources: Numbers, after: int, rehash: Callable[[pl.DataFrame], Hashes]) -> None:
        is_source = np.zeros(after, np.bool_)
        is_source[sources] = True
        rows = np.flatnonzero((self._page != _GONE) & is_source[self._page])
        unknown = rows[self._hash[rows] == _UNKNOWN]
        if len(unknown):
            self._hash[unknown] = rehash(self._frame.select(self._ids)[unknown])
        pages = address(self._hash[rows], after)
        other = pages != self._page[rows]
        self._touch(self._page[rows[other]])
        self._touch(pages[other])
        self._page[rows] = pages

    def _write(self) -> None:
        dirty = np.fromiter(self._dirty, np.int64, len(self._dirty))
        # One mark more than pages: the last stands for rows that are gone.
        is_dirty = np.zeros(int(dirty.max()) + 2, np.bool_)
        is_dirty[dirty] = True
        rows = np.flatnonzero(is_dirty[np.minimum(self._page, len(is_dirty) - 1)])
        rows = rows[np.argsort(self._page[rows], kind="stable")]
        numbers, counts = np.unique(self._page[rows], return_counts=True)
        bounds = np.concatenate([[0], np.cumsum(counts)])
        blocks, payloads = encode(self._frame[rows], bounds.tolist())
        written = dict(zip(numbers.tolist(), payloads, strict=True))
        self._pages.write(self._store, dict(zip(written, blocks, strict=True)))
        emptied = sorted(self._dirty - written.keys())
        self._pages.delete(self._store, [number for number in emptied if self._payloads[number]])
        written.update(dict.fromkeys(emptied, 0))
        self.directory.size += sum(written.values()) - sum(self._payloads[number] for number in written)
        self._payloads.update(written)


def _matches(ids: pl.DataFrame, rows: pl.DataFrame) -> tuple[Numbers, Numbers]:
    """Positions of equal rows in two frames of the same columns."""
    few = ids.height < _MANY
    left = ids if few else ids.hash_rows().alias(_HASH).to_frame()
    right = rows if few else rows.hash_rows().alias(_HASH).to_frame()
    pairs = right.with_row_index(_ROW).join(left.with_row_index(_AT), on=left.columns, how="inner")
    if not few:
        pairs = pairs.filter(*(rows[name].gather(pairs[_ROW]) == ids[name].gather(pairs[_AT]) for name in ids.columns))
    return pairs[_AT].cast(pl.Int64).to_numpy(), pairs[_ROW].cast(pl.Int64).to_numpy()


def _distinct(numbers: npt.NDArray[np.int64] | Iterable[int]) -> list[int]:
    array = np.asarray(numbers if isinstance(numbers, np.ndarray) else list(numbers), np.int64)
    if not len(array):
        return []
    # Page numbers are dense, so a mark for each is far cheaper than sorting.
    marks = np.zeros(int(array.max()) + 1, np.bool_)
    marks[array] = True
    distinct: list[int] = np.flatnonzero(marks).tolist()
    return distinct
