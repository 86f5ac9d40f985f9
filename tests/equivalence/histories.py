"""Random histories of records, and the ways in which they are cut into micro-batches.

A *pack* is several histories whose keys and groups never meet, so that one run of a service plays them all: each is cut
on its own, and a micro-batch holds one slice of each.
"""

from __future__ import annotations

import math
import random
import zlib
from collections import defaultdict
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: Histories in a pack.
HISTORIES = 10
#: Records in a history, at most.
LONGEST = 12

#: Columns that hold keys of other rows or names of groups; tagged like keys, so that histories stay apart.
LINKS = ("g", "ref")

SCHEMA: dict[str, Any] = {
    "id": str,
    "g": str | None,
    "ref": str | None,
    "h": int | None,
    "x": int | None,
    "f": float | None,
    "s": str | None,
    "d": Decimal | None,
    "n": {"a": int | None, "l": list[float | None]},
}


@dataclass(frozen=True)
class Event:
    """A record of a history.

    Attributes:
        topic: Where it goes.
        key: Its key; None only on streams.
        value: A dict, None for a tombstone, or bytes that cannot be decoded.
        ts: Milliseconds.
        lane: Chooses the partition of a stream's record; a table's record goes where its key belongs.
    """

    topic: str
    key: str | None
    value: Any
    ts: int
    lane: int | None = None


@dataclass(frozen=True)
class Placed:
    """An event as it lies on its topic."""

    topic: str
    key: str | None
    value: Any
    ts: int
    partition: int
    offset: int


@dataclass(frozen=True)
class Layout:
    """One way to play a pack: partitions, shards, and the seed of the cuts.

    Attributes:
        partitions: Partitions of every topic.
        shards: Shards of every output.
        batches: Micro-batches at most.
        seed: Where each history is cut.
    """

    partitions: int
    shards: int
    batches: int
    seed: int


SPECIAL_FLOATS = (0.0, -0.0, 0.1, 0.2, 0.3, -0.1, 1e16, -1e16, 5e-324, -5e-324, 2.5e-308, 1e300, -1e300, 1.7e308)
UNUSUAL_FLOATS = (math.nan, math.inf, -math.inf)
INTEGERS = st.integers(-3, 3) | st.sampled_from([2**57, -(2**57), 2**40 + 1, -(2**31), 10**12])
FLOATS = st.sampled_from(SPECIAL_FLOATS) | st.floats(-1e6, 1e6) | st.sampled_from(UNUSUAL_FLOATS)
#: Without the numbers that make all others of a group vanish, so that last digits are seen.
FINITE = st.sampled_from(SPECIAL_FLOATS[:11]) | st.floats(-1e6, 1e6)
TEXTS = st.sampled_from(["", "a", "b", "Ä\n\"'", "z\\", "\U0001f600"])
DECIMALS = st.sampled_from([Decimal(0), Decimal("0.1"), Decimal("-2.55"), Decimal(10**12)])
NESTED = st.builds(
    lambda a, floats: {"a": a, "l": floats}, st.none() | INTEGERS, st.lists(st.none() | FLOATS, max_size=2)
)

#: What no schema here takes; the last ones because the columns are of other types.
BAD = (b"{", b"[]", b"null", b"", b"\xff", b'{"id": 1}', b'{"x": "1"}', b'{"x": 1.5}', b'{"g": 5}')


def schema(*columns: str) -> dict[str, Any]:
    """The key and these columns of `SCHEMA`."""
    return {name: SCHEMA[name] for name in ("id", *columns)}


def values(columns: Iterable[str], floats: st.SearchStrategy[float] = FLOATS) -> st.SearchStrategy[dict[str, Any]]:
    """Values with these columns of `SCHEMA`; the others are null."""
    parts: dict[str, st.SearchStrategy[Any]] = {
        "g": st.sampled_from(["A", "A", "B", "C", None]),
        "ref": st.sampled_from(["p", "p", "q", "r", None]),
        "h": st.sampled_from([1, 1, 2, -3, None]),
        "x": st.none() | INTEGERS,
        "f": st.none() | floats,
        "s": st.none() | TEXTS,
        "d": st.none() | DECIMALS,
        "n": NESTED,
    }
    return st.fixed_dictionaries({name: parts[name] for name in columns})


def events(
    topic: str,
    value: st.SearchStrategy[Any],
    *,
    keys: str = "abcd",
    bad: Sequence[bytes] = (),
    lanes: bool = False,
    nameless: bool = False,
) -> st.SearchStrategy[Event]:
    """Records of one topic: upserts, tombstones, some that cannot be decoded.

    Args:
        topic: The topic.
        value: Its values.
        keys: The keys, single letters.
        bad: What takes the place of values at times.
        lanes: Records of one key may lie in several partitions (streams only).
        nameless: Some records have no key.
    """
    names: list[str | None] = [*keys, *([None] if nameless else [])]
    lane = st.integers(0, 3) if lanes else st.none()

    @st.composite
    def event(draw: st.DrawFn) -> Event:
        kind = draw(st.integers(0, 9))
        if kind == 9 and bad:
            content: Any = draw(st.sampled_from(bad))
        else:
            content = None if kind == 8 else draw(value)
        return Event(topic, draw(st.sampled_from(names)), content, draw(st.integers(0, 6)), draw(lane))

    return event()


Pack = tuple[tuple[Event, ...], ...]


def packs(
    *topics: st.SearchStrategy[Event], shortest: int = 1, longest: int = LONGEST, count: int = HISTORIES
) -> st.SearchStrategy[Pack]:
    """Packs of histories over these topics."""
    history = st.lists(st.one_of(topics), min_size=shortest, max_size=longest).map(tuple)
    return st.lists(history, min_size=count, max_size=count).map(tuple)


def layouts(ways: int = 2, *, partitions: int = 4) -> st.SearchStrategy[list[Layout]]:
    """Ways to play a pack, all on the same number of partitions; the first is a single micro-batch."""

    def build(count: int, shards: list[int], batches: list[int], seed: int) -> list[Layout]:
        cuts = [1, *batches]
        return [Layout(count, shards[way], cuts[way], seed + way) for way in range(ways)]

    return st.builds(
        build,
        st.integers(1, partitions),
        st.lists(st.sampled_from([1, 1, 2, 3]), min_size=ways, max_size=ways),
        st.lists(st.sampled_from([2, 3, 3, 4, 6]), min_size=ways - 1, max_size=ways - 1),
        st.integers(0, 10_000),
    )


def batches(pack: Pack, layout: Layout) -> list[list[Placed]]:
    """The micro-batches of a pack: each holds the next slice of every history, or nothing of it."""
    chance = random.Random(layout.seed)
    slices: list[list[Event]] = [[] for _ in range(layout.batches)]
    for number, history in enumerate(pack):
        cuts = sorted(chance.randint(0, len(history)) for _ in range(layout.batches - 1))
        for place, (start, end) in enumerate(zip([0, *cuts], [*cuts, len(history)], strict=True)):
            slices[place] += [_tagged(event, number) for event in history[start:end]]
    return _placed([part for part in slices if part], layout.partitions)


def _placed(slices: list[list[Event]], partitions: int) -> list[list[Placed]]:
    offsets: dict[tuple[str, int], int] = defaultdict(int)
    found = []
    for part in slices:
        batch = []
        for event in part:
            name = zlib.crc32((event.key or "").encode()) if event.lane is None else event.lane
            partition = name % partitions
            offset = offsets[event.topic, partition]
            offsets[event.topic, partition] += 1
            batch.append(Placed(event.topic, event.key, event.value, event.ts, partition, offset))
        found.append(batch)
    return found


def _tagged(event: Event, number: int) -> Event:
    value = event.value
    if isinstance(value, dict):
        value = {name: _tag(part, number) if name in LINKS else part for name, part in value.items()}
    return replace(event, key=_tag(event.key, number), value=value)


def _tag(name: str | None, number: int) -> str | None:
    return None if name is None else f"{number}{name}"
