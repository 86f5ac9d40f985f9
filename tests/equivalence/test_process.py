"""Processors against a plain model: calls one by one, epoch after epoch, with whole copies to go back to.

The rows say what the function is to do, so one service plays every processor: it sets values, appends to lists, fills
maps with a lifetime, sets, moves and cancels timers, sends rows to two topics, and fails after any of it.
"""

from __future__ import annotations

import copy
import json
import random
from collections import defaultdict
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st
from polars import col

import everstate as es
from everstate.topology.nodes import Process
from tests import effort
from tests.equivalence.playing import examples
from tests.figures import PLAYED

#: The operations whose results are proven here.
PROVES = (Process,)

SHOWN = {"id": str, "text": str}
STATES = [
    es.value("count", int),
    es.value("last", int, ttl="8ms"),
    es.list_("seen", int, ttl="12ms"),
    es.map_("by", int, ttl="5ms"),
    es.list_("all", str),
]


class Row(NamedTuple):
    """A record: its partition, key, time, number, and what the function does for it."""

    partition: int
    key: str | None
    ts: int
    number: int
    does: tuple[str, ...]


class Case(NamedTuple):
    """A history, cut into micro-batches."""

    batches: list[list[Row]]
    partitions: int


NAMES = ("a", "b", "again", "bad")
ACTIONS = st.one_of(
    st.sampled_from(["show", "show", "aside", "forget", "fail", "result"]),
    st.integers(0, 3).map("set {}".format),
    st.integers(0, 3).map("append {}".format),
    st.tuples(st.sampled_from("xyz"), st.integers(0, 3)).map(lambda part: f"put {part[0]} {part[1]}"),
    st.sampled_from("xyz").map("remove {}".format),
    st.tuples(st.sampled_from(NAMES), st.integers(-4, 25)).map(lambda part: f"timer {part[0]} {part[1]}"),
    st.sampled_from(NAMES).map("cancel {}".format),
)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    partitions = draw(st.integers(1, 4))
    step = st.tuples(
        st.integers(-12, 14),
        st.integers(0, 3),
        st.sampled_from(["k", "l", "m", None]),
        st.lists(ACTIONS, max_size=4).map(tuple),
    )
    now, rows = 0, []
    for number, (by, lane, key, does) in enumerate(draw(st.lists(step, min_size=1, max_size=24))):
        rows.append(Row(lane % partitions, key, max(0, now + by), number, does))
        now = max(now, now + by // 2)
    return Case([rows], partitions)


def cut(case: Case, seed: int) -> Case:
    """The same rows in other micro-batches."""
    chance, batches = random.Random(seed), [[]]
    for row in case.batches[0]:
        if chance.random() < chance.choice([0.1, 0.4, 1.0]):
            batches.append([])
        batches[-1].append(row)
    return Case([batch for batch in batches if batch], case.partitions)


# What the service does.


def show(ctx: es.Context, where: str) -> dict[str, str]:
    number = ctx.count.get(0) + 1
    ctx.count.set(number)
    seen = "" if not ctx.seen.exists() else ",".join(map(str, ctx.seen))
    text = f"{where} {ctx.last.get(-1)} [{seen}] {ctx.by.items()} {len(ctx.all)} {ctx.time} {ctx.stream_time}"
    return {"id": f"{ctx.key}#{number}", "text": text}


def act(row: dict[str, Any], ctx: es.Context) -> dict[str, str] | None:
    result = None
    for action in row["does"]:
        word, *rest = action.split()
        if word == "result":
            result = show(ctx, f"result {row['n']}")
        elif word == "fail":
            raise ValueError(row["n"])
        elif word in ("show", "aside"):
            ctx.forward(show(ctx, f"{word} {row['n']}"), to="side" if word == "aside" else None)
        elif word in ("timer", "cancel"):
            clocked(word, rest, ctx)
        else:
            kept(word, rest, ctx)
    return result


def clocked(word: str, rest: list[str], ctx: es.Context) -> None:
    if word == "timer":
        ctx.timer(rest[0], at=max(0, ctx.time + int(rest[1])))
    else:
        ctx.cancel(rest[0])


def kept(word: str, rest: list[str], ctx: es.Context) -> None:
    if word == "set":
        ctx.last.set(int(rest[0]))
    elif word == "append":
        ctx.seen.append(int(rest[0]))
        ctx.all.append(rest[0])
    elif word == "put":
        ctx.by.set(rest[0], int(rest[1]))
    elif word == "remove":
        ctx.by.delete(rest[0])
    elif word == "forget":
        ctx.last.delete()
        ctx.seen.clear()


def ring(ctx: es.Context) -> dict[str, str] | None:
    ctx.all.append(ctx.due)
    if ctx.due == "again" and ctx.last.get(0) < 3:
        ctx.last.set(ctx.last.get(0) + 1)
        ctx.timer("again", at=ctx.time + 3)
    if ctx.due == "b":
        ctx.forward(show(ctx, "b rings"), to="side")
        ctx.cancel("a")
    if ctx.due == "bad":
        ctx.timer("a", at=ctx.time + 1)
        raise ValueError("it rings")
    return show(ctx, f"{ctx.due} rang")


def service(factor: str = "") -> es.Service:
    app = es.Service("s")
    rows = app.stream("in", key="k", schema={"does": list[str], "n": int, "at": int}, time="at")
    made = rows.process(act, on_timer=ring, schema=SHOWN, sides={"side": SHOWN}, states=STATES)
    made.to("out", sides={"side": "beside"})
    made.with_columns(text=col("text") + factor).to("table", key="id", sides={"side": None})
    return app


# What must come out.


class Model:
    """Every call on plain dicts; before each all of them are copied."""

    def __init__(self, case: Case) -> None:
        self.out: dict[Any, list[str]] = defaultdict(list)
        self.beside: dict[Any, list[str]] = defaultdict(list)
        self.dead: set[tuple[Any, ...]] = set()
        self.keys: dict[str, dict[str, Any]] = {}
        times: dict[int, int] = {}
        offsets = dict.fromkeys(range(case.partitions), 0)
        for batch in case.batches:
            arrived = []
            for row in batch:
                times[row.partition] = max(times.get(row.partition, 0), row.ts)
                arrived.append((times[row.partition], row.partition, offsets[row.partition], row))
                offsets[row.partition] += 1
            self.sent: list[Any] = []
            for now, partition, offset, row in sorted(arrived, key=lambda part: part[:3]):
                if row.key is not None:
                    self.row(row, now, (partition, offset))
            if len(times) == case.partitions:
                self.timers(min(times.values()))
            for _, target, key, text in sorted(self.sent, key=lambda part: part[0]):
                target[key].append(text)

    def row(self, row: Row, now: int, place: tuple[int, int]) -> None:
        before = copy.deepcopy(self.keys), list(self.sent)
        mine = self.keys.setdefault(row.key, {"count": 0, "last": None, "seen": [], "by": {}, "all": [], "timers": {}})
        result = None
        for action in row.does:
            word, *rest = action.split()
            if word == "fail":
                self.keys, self.sent = before
                self.dead.add(("in", *place))
                return
            if word == "result":
                result = self.shown(row.key, f"result {row.number}", row.ts, now)
            elif word in ("show", "aside"):
                target = self.out if word == "show" else self.beside
                self.sent.append(
                    ((now, *place), target, row.key, self.shown(row.key, f"{word} {row.number}", row.ts, now))
                )
            elif word == "timer":
                mine["timers"][rest[0]] = (max(0, row.ts + int(rest[1])), now, place)
            elif word == "cancel":
                mine["timers"].pop(rest[0], None)
            else:
                self.kept(mine, word, rest, now)
        if result is not None:
            self.sent.append(((now, *place), self.out, row.key, result))

    def kept(self, mine: dict[str, Any], word: str, rest: list[str], now: int) -> None:
        if word == "set":
            mine["last"] = (int(rest[0]), now)
        elif word == "append":
            mine["seen"].append((int(rest[0]), now))
            mine["all"].append(rest[0])
        elif word == "put":
            mine["by"][rest[0]] = (int(rest[1]), now)
        elif word == "remove":
            mine["by"].pop(rest[0], None)
        elif word == "forget":
            mine["last"], mine["seen"] = None, []

    def timers(self, reached: int) -> None:
        while due := [
            (at, key, name, now, place)
            for key, mine in self.keys.items()
            for name, (at, now, place) in mine["timers"].items()
            if at <= reached
        ]:
            at, key, name, now, place = min(due)
            mine, st_ = self.keys[key], max(at, now)
            del mine["timers"][name]
            if name == "bad":
                self.dead.add(("in", *place, name, at))
                continue
            mine["all"].append(name)
            last = mine["last"][0] if mine["last"] and st_ < mine["last"][1] + 8 else 0
            if name == "again" and last < 3:
                mine["last"] = (last + 1, st_)
                mine["timers"]["again"] = (at + 3, st_, place)
            if name == "b":
                self.sent.append(((st_, *place), self.beside, key, self.shown(key, "b rings", at, st_)))
                mine["timers"].pop("a", None)
            self.sent.append(((st_, *place), self.out, key, self.shown(key, f"{name} rang", at, st_)))

    def shown(self, key: str, where: str, ts: int, now: int) -> str:
        mine = self.keys[key]
        mine["count"] += 1
        last = mine["last"][0] if mine["last"] and now < mine["last"][1] + 8 else -1
        seen = ",".join(str(item) for item, at in mine["seen"] if now < at + 12)
        by = [(name, item) for name, (item, at) in sorted(mine["by"].items()) if now < at + 5]
        return f"{where} {last} [{seen}] {by} {len(mine['all'])} {ts} {now}"


def compare(driver: es.testing.Driver, case: Case, factor: str, where: str) -> None:
    model = Model(case)
    for topic, wanted in (("out", model.out), ("beside", model.beside)):
        found: dict[Any, list[str]] = defaultdict(list)
        for record in driver.records(topic):
            found[record.key].append(record.value["text"])
        assert found == wanted, (topic, where)
    table = sorted(value["text"] for value in driver.table("table").values())
    assert table == sorted(text + factor for texts in model.out.values() for text in texts), where
    letters = {tuple(json.loads(record.key)) for record in driver.records("out.dlq") if record.value is not None}
    assert letters == model.dead, where


def cuts() -> int:
    return 5 if effort.LEVEL == "full" else 1


def send(driver: es.testing.Driver, batches: list[list[Row]]) -> None:
    for batch in batches:
        with driver.batch():
            for row in batch:
                value = {"does": list(row.does), "n": row.number, "at": row.ts}
                driver.send("in", row.key, value, ts=9000 - row.ts, partition=row.partition)


@examples(400, 200)
@given(cases(), st.integers(0, 10**6))
def test_process_equals_the_model_live(rows, seed):
    chance = random.Random(seed)
    for number in range(cuts()):
        case = cut(rows, seed + number)
        driver = es.testing.Driver(service(), partitions=case.partitions, shards=chance.choice([1, 3]))
        send(driver, case.batches)
        compare(driver, case, "", f"cut {number}")
        PLAYED["process"] += 1


#: Histories that are played side by side: each is a key of its own, and all go by the time of the same partitions.
SIDE_BY_SIDE = 20
WORDS = (
    "show",
    "aside",
    "forget",
    "fail",
    "result",
    "set {n}",
    "append {n}",
    "put {x} {n}",
    "remove {x}",
    "cancel {t}",
)


def side_by_side(seed: int) -> Case:
    """Many histories as one."""
    chance = random.Random(seed)
    partitions, now, rows = chance.randint(1, 4), 0, []
    for _ in range(chance.randint(4, 12)):
        for key in range(SIDE_BY_SIDE):
            words = chance.choices([*WORDS, *("timer {t} {at}",) * 3], k=chance.randint(0, 4))
            does = tuple(
                word.format(
                    n=chance.randrange(4), x=chance.choice("xyz"), t=chance.choice(NAMES), at=chance.randint(-4, 25)
                )
                for word in words
            )
            ts = max(0, now + chance.randint(-12, 6))
            rows.append(Row(chance.randrange(partitions), chr(ord("A") + key), ts, len(rows), does))
        now += chance.randint(0, 7)
    return Case([rows], partitions)


@examples(100, 25)
@given(st.integers(0, 10**6))
def test_process_of_many_histories_side_by_side_equals_the_model(seed):
    case = cut(side_by_side(seed), seed)
    size = -(-len(case.batches) // 4)  # few micro-batches: each costs the same, whatever is in it
    batches = [
        [row for batch in case.batches[first : first + size] for row in batch]
        for first in range(0, len(case.batches), size)
    ]
    case = case._replace(batches=batches)
    driver = es.testing.Driver(service(), partitions=case.partitions, shards=random.Random(seed).choice([1, 3]))
    send(driver, case.batches)
    compare(driver, case, "", "side by side")
    PLAYED["process"] += SIDE_BY_SIDE
