"""How many pages steps that go by time touch: with more windows, as many; at the end of a window, none; no walks."""

from __future__ import annotations

import json

import polars as pl
import pytest

import everstate as es
from everstate import col
from everstate.kernels.pages.page_store import MemoryPages
from everstate.kernels.pipeline import ShardStages, ingested, run_stages

GROUPS = 10_000
SIZE = 10_000
SCHEMA = {"g": str, "n": int}


class Played:
    """One unit on one shard, with counts of what each micro-batch touches."""

    def __init__(self, app: es.Service) -> None:
        (self.unit,) = app.units()
        self.pages = MemoryPages()
        self.books: dict[int, bytes] = {}
        self.offset = 0

    def send(self, groups: range, ts: int, topic: str = "in") -> list[pl.DataFrame]:
        """One micro-batch of a record a group, all of one time; returns what leaves the unit."""
        values = [b'{"g": "g%d", "n": 1}' % group for group in groups]
        keys = [b"g%d" % group for group in groups]
        offsets = range(self.offset, self.offset + len(values))
        self.offset += len(values)
        columns = {"key": keys, "value": values, "ts": [ts] * len(values), "offset": list(offsets)}
        frame = pl.DataFrame(columns, schema_overrides={"key": pl.Binary, "value": pl.Binary})
        stages = ShardStages(self.unit, self.pages, self.books, policy="fail")
        self.pages.reset_counts()
        every = [(name, 0, frame if name == topic else frame.clear()) for name in self.unit.topics]
        given = run_stages([stages], range(1, self.unit.depth + 1), ingested(self.unit, every, "fail"))
        self.books = stages.books
        return [parcel.frame for parcel in given]

    @property
    def touched(self) -> int:
        """Pages read, written and deleted by the last micro-batch."""
        return self.pages.gets + self.pages.puts + self.pages.deletes

    def multiply(self, windows: int) -> None:
        """Put copies of the one slice there is before it, each with pages of its own."""
        books = json.loads(self.books[1])
        ((name, plain),) = books["sliced"].items()
        ((newest, slice_),) = plain["slices"].items()
        first = min(store for store, _ in self.pages.blocks)
        for place in range(slice_["place"] + 1, slice_["place"] + windows):
            plain["slices"][str(int(newest) - place)] = {**slice_, "place": place}
            for (store, page), block in [*self.pages.blocks.items()]:
                if store < first + 1024:
                    self.pages.blocks[store + 1024 * (place - slice_["place"]), page] = block
        books["sliced"][name] = plain
        self.books[1] = json.dumps(books).encode()


def windows(kind: es.Window, **options: object) -> es.Service:
    app = es.Service("s")
    rows = app.stream("in", key="k", schema=SCHEMA)
    rows.group_by("g").window(kind, **options).agg(n=es.count(), total=col("n").sum()).to("out")
    return app


@pytest.mark.parametrize("open_windows", [2, 1000])
def test_thousand_rows_touch_as_many_pages_of_ten_million_open_windows_as_of_ten_thousand(open_windows):
    newest = 5000 * SIZE
    few, many = (Played(windows(es.tumbling(f"{SIZE}ms", grace="1d"))) for _ in range(2))
    for played in (few, many):
        played.send(range(GROUPS), newest)
    many.multiply(open_windows)
    held = sum(plain["stores"]["0"]["rows"] for plain in slices_of(many).values())
    assert held == open_windows * GROUPS
    for played in (few, many):
        played.send(range(0, GROUPS, GROUPS // 1000), newest + 1)
    assert 0 < many.touched <= 1.5 * few.touched
    # Late rows find the pages of their own window, of a million like it.
    late = newest - (open_windows // 2) * SIZE
    many.send(range(0, GROUPS, GROUPS // 1000), late)
    assert many.touched <= 1.5 * few.touched


def slices_of(played: Played) -> dict[str, dict]:
    ((_, plain),) = json.loads(played.books[1])["sliced"].items()
    return plain["slices"]


SHAPES = [es.tumbling("10s"), es.hopping("10s", "5s"), es.session("10s")]


@pytest.mark.slow
@pytest.mark.parametrize("kind", SHAPES, ids=lambda kind: kind.shape)
def test_thousand_rows_of_many_groups_read_at_most_a_page_each_and_store(kind):
    played = Played(windows(kind))
    for first in range(0, 300_000, 100_000):
        played.send(range(first, first + 100_000), 5)
    played.send(range(0, 300_000, 300), 6)
    # A hopping window's groups lie in two slices at most, a session's beside an entry of when it is due.
    assert played.pages.gets <= 2000
    assert played.pages.puts <= 2000


@pytest.mark.parametrize("kind", [es.tumbling("10s"), es.hopping("10s", "5s")], ids=lambda k: k.shape)
def test_windows_that_are_over_are_deleted_unread(kind):
    played = Played(windows(kind))
    played.send(range(GROUPS), 5)
    before = len(played.pages.blocks)
    played.send(range(3), 90_000)
    assert played.pages.gets == 0
    assert played.pages.deletes >= before > 10
    assert len(played.pages.blocks) <= 3


def test_ids_that_can_no_longer_be_met_are_deleted_unread():
    app = es.Service("s")
    app.stream("in", key="k", schema=SCHEMA).dedup("g", within="10s").to("out")
    played = Played(app)
    played.send(range(GROUPS), 5)
    before = len(played.pages.blocks)
    played.send(range(3), 90_000)
    played.send(range(3), 90_001)
    assert played.pages.gets <= 1
    assert len(played.pages.blocks) == 1 < before


def watch(row: dict, ctx: es.Context) -> None:
    ctx.timer("silent", at=ctx.time + 1000 * (row["n"] + int(row["g"][1:])))


def silent(ctx: es.Context) -> dict:
    return {"at": ctx.time}


def processor() -> es.Service:
    app = es.Service("s")
    rows = app.stream("in", key="k", schema=SCHEMA)
    rows.process(watch, on_timer=silent, schema={"at": int}).to("out")
    return app


def expiring() -> es.Service:
    app = es.Service("s")
    app.table("in", key="k", schema=SCHEMA).expire(after="1h").to("out")
    return app


def held_back() -> es.Service:
    app = es.Service("s")
    app.table("in", key="k", schema=SCHEMA).suppress(until="1h").to("out")
    return app


def joined() -> es.Service:
    app = es.Service("s")
    other = app.stream("other", key="k", schema=SCHEMA).select(m="n")
    app.stream("in", key="k", schema=SCHEMA).join(other, within="1h", how="left").to("out")
    return app


def test_timers_that_are_due_are_found_without_a_walk():
    played = Played(processor())
    played.send(range(GROUPS), 0)
    state = len(played.pages.blocks)
    assert state > 50
    played.send(range(1), 2_000)  # two timers are due, one more is set
    assert 0 < played.pages.gets <= 8
    played.send(range(1), 2_001)  # nothing is due: no entry is looked at
    assert played.pages.gets <= 3


@pytest.mark.parametrize("service", [expiring, held_back, joined], ids=["expire", "suppress", "join"])
def test_keys_that_are_due_are_found_without_a_walk(service):
    played = Played(service())
    for step in range(20):  # 20 times three minutes: keys are due one after the other
        for topic in played.unit.topics:
            played.send(range(500 * step, 500 * step + 500) if topic == "in" else range(1), 180_000 * step, topic)
    everything = len(played.pages.blocks)
    for topic in played.unit.topics:
        played.send(range(1), 3_600_000 - 1, topic)  # nothing is due yet
    quiet = played.pages.gets
    for topic in reversed(played.unit.topics):
        played.send(range(GROUPS, GROUPS + 1), 3_600_002, topic)  # the first five hundred are
    assert everything > 30
    assert quiet <= 6
    assert played.pages.gets < everything
