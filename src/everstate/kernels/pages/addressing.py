"""Where rows lie: linear hashing over any number of pages, and how many pages a store should have.

With P pages and 2^L <= P < 2^(L+1), a hash h has the address h mod 2^(L+1) where that is below P, else h mod 2^L. One
page more therefore takes rows from one other page only, and one page less gives its rows to one other page only; every
other page stays as it is. The same arithmetic spreads a large group over buckets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint32]


@dataclass
class Directory:
    """What must be known of a store before any of its pages is read; it outlives the micro-batch.

    Attributes:
        pages: How many pages the store has; 0 if nothing is stored.
        rows: How many rows.
        size: The bytes of all pages, without what every page repeats (schema and framing).
        wide: The directory of the large groups' fan-outs; only in a store of many rows per key.
    """

    pages: int = 0
    rows: int = 0
    size: int = 0
    wide: Directory | None = None

    def to_json(self) -> dict[str, Any]:
        """The directory as a value for `json.dumps`."""
        plain: dict[str, Any] = {"pages": self.pages, "rows": self.rows, "size": self.size}
        return plain | ({"wide": self.wide.to_json()} if self.wide else {})

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> Directory:
        """The directory that `to_json` described."""
        wide = cls.from_json(plain["wide"]) if "wide" in plain else None
        return cls(plain["pages"], plain["rows"], plain["size"], wide)


@dataclass(frozen=True)
class PagePolicy:
    """How large pages are.

    To read and write a page costs two requests to Spark (0.2 ms of processor time, whatever its size) and the encoding
    and copying of its bytes (as much again for every 15 kB). While a batch touches most pages of a store, large pages
    are better (fewer requests for the same bytes); once each row of a batch touches a page of its own, small pages are
    better (fewer bytes for the same requests), but cost more when a store is loaded. So the size of a page falls with
    the cube root of the store's size.

    Attributes:
        largest: Bytes of a page of a small store.
        smallest: Bytes of a page of a very large store.
        knee: The size of a store from which pages become smaller.
        least_rows: A page has so many rows at least, however wide they are.
        bucket: Bytes of a large group that lie together.
        slack: A batch splits or merges so many pages more than it could have filled with the rows it changed.
    """

    largest: int = 32 * 1024
    smallest: int = 12 * 1024
    knee: int = 4 * 1024 * 1024
    least_rows: int = 4
    bucket: int = 8 * 1024
    slack: int = 8

    def pages(self, rows: int, size: int) -> int:
        """How many pages suit a store of so many rows and bytes."""
        if rows <= 0:
            return 0
        shrunk = self.largest * math.cbrt(self.knee / max(size, 1))
        page = min(max(shrunk, self.smallest), self.largest)
        return max(1, min(round(size / page), rows // self.least_rows))

    def limit(self, changed: int) -> int:
        """How many pages a batch of so many changed rows may split or merge."""
        return self.slack + changed // self.least_rows


#: The one policy for stores of all sizes.
POLICY: Final = PagePolicy()


def address(hashes: npt.NDArray[Any], pages: int | npt.NDArray[Any]) -> Numbers:
    """The page of every hash among so many pages (one number for all, or one for each).

    Example:
        >>> address(np.array([0, 1, 2, 3, 4, 5, 6, 7]), 5).tolist()
        [0, 1, 2, 3, 4, 1, 2, 3]
    """
    wide = hashes.astype(np.int64)
    # frexp gives the power of two above P exactly: P = m * 2^e with 0.5 <= m < 1.
    above = np.left_shift(np.int64(1), np.frexp(pages)[1].astype(np.int64))
    low = wide & (above - 1)
    return np.where(low < pages, low, wide & ((above >> 1) - 1))


def settle(current: int | Numbers, wanted: int | Numbers, limit: int) -> Numbers:
    """The next number of pages (or numbers of buckets) on the way from the current to the wanted one.

    It grows once a tenth more are wanted but shrinks only below half, so that it does not swing with a few rows; never
    by more than `limit`, so that a small batch on a large store stays a small batch.
    """
    grown = np.minimum(wanted, current + limit)
    shrunk = np.maximum(wanted, current - limit)
    return np.where(10 * wanted > 11 * current, grown, np.where(current > 2 * wanted, shrunk, current))


def moved(before: int, after: int) -> tuple[Numbers, Numbers]:
    """The pages that come or go between two page counts, and for each the page that gives or takes its rows."""
    low, high = sorted((before, after))
    numbers = np.arange(low, high, dtype=np.int64)
    return numbers, address(numbers, low)


def enumerate_each(counts: Numbers) -> Numbers:
    """0 to n - 1 for every count n, one after the other.

    Example:
        >>> enumerate_each(np.array([2, 1, 3])).tolist()
        [0, 1, 0, 0, 1, 2]
    """
    ends = np.cumsum(counts)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)


def mix(hashes: Hashes, buckets: npt.NDArray[Any]) -> Hashes:
    """The hash by which a bucket of a large group is addressed; that of bucket 0 is the group's own."""
    x = buckets.astype(np.uint32)
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    x = (x ^ (x >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    mixed: Hashes = hashes.astype(np.uint32) ^ x ^ (x >> np.uint32(16))
    return mixed
