"""Random services of all kinds of steps, and random histories for them: sources of each kind, times out of order.

Every step takes and gives rows with the key `k` and the columns g, x and f; a number and a choice decide what it means.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import polars as pl
from polars import col

import everstate as es

SCHEMA = {"k": str, "g": str | None, "x": int | None, "f": float | None}
COLUMNS = {name: SCHEMA[name] for name in ("g", "x", "f")}
GROUP = pl.coalesce("g", pl.lit("none"))
OTHER = {"g2": "g", "x2": "x"}
HOW: tuple[Any, ...] = ("inner", "left", "outer")


class Step(NamedTuple):
    """One step: what it does, with which number, and which of its ways."""

    name: str
    number: int
    way: int


class Made(NamedTuple):
    """What an output is made of; a stream that is not gathered stays one."""

    source: str
    rows: tuple[Step, ...]
    gathering: Step | None
    table: tuple[Step, ...]


class Sources:
    """The sources of a service, as steps need them."""

    def __init__(self, app: es.Service) -> None:
        self.stream, self.other = (app.stream(name, key="k", schema=SCHEMA) for name in ("s1", "s2"))
        self.table, self.right = (app.table(name, key="k", schema=SCHEMA) for name in ("t1", "t2"))
        self.past = app.table("h", key="k", schema=SCHEMA, history="30ms")
        self.everywhere = app.global_table("everywhere", key="k", schema=SCHEMA)


def turned(number: int) -> Any:
    return lambda row: {"g": row["g"], "x": None if row["x"] is None else number - row["x"], "f": row["f"]}


def repeated(number: int) -> Any:
    return lambda row: [{"g": row["g"], "x": place, "f": row["f"]} for place in range(number + 1)]


def remembered(number: int) -> Any:
    def remember(row: dict[str, Any], state: es.State) -> dict[str, Any]:
        last = state.get("g")
        state.set("g", row["g"])
        state.set("n", state.get("n", number) + 1)
        return {"g": last, "x": state.get("n"), "f": row["f"]}

    return remember


def added(number: int) -> Any:
    def add(total: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
        highest = row["f"] if total["f"] is None else max(total["f"], row["f"] or 0.0)
        return {"g": max(total["g"] or "", row["k"]), "x": (total["x"] or 0) + number + (row["x"] or 0), "f": highest}

    return add


def processed(rows: Any, number: int, way: int, clock: Any) -> Any:
    def seen(row: dict[str, Any], ctx: es.Context) -> dict[str, Any]:
        before = ctx.last.get()
        ctx.last.set(row["x"] or 0)
        ctx.groups.append(row["g"] or "-")
        ctx.timer("quiet", at=(ctx.time if clock == "event" else ctx.now) + 5 + number, clock=clock)
        return {"g": row["g"], "x": (before or 0) + number, "f": float(len(ctx.groups))}

    def quiet(ctx: es.Context) -> dict[str, Any]:
        row = {"g": "quiet", "x": ctx.last.get() or -1, "f": float(len(ctx.groups))}
        ctx.groups.clear()
        return row

    states = [es.value("last", int, ttl=(None, "20ms")[way % 2]), es.list_("groups", str)]
    wall = clock == "wall"
    return rows.process(seen, on_timer=quiet, schema=COLUMNS, states=states, wall_clock=wall)


def looked_up(rows: Any, table: Any, **given: Any) -> Any:
    joined = rows.join(table, **given)
    return joined.select(g=pl.coalesce("g_right", "g"), x=col("x_right"), f=col("f"))


def paired(rows: Any, sources: Sources, number: int, way: int) -> Any:
    pairs = rows.join(
        sources.other.select(**OTHER), within=("4ms", f"{3 * number}ms"), grace=f"{way % 3}ms", how=HOW[way % 3]
    )
    return pairs.select(g=pl.coalesce("g", "g2"), x=col("x").fill_null(0) + col("x2").fill_null(0), f=col("f"))


ROWS: dict[str, Callable[[Any, Sources, int, int], Any]] = {
    "filter": lambda rows, _, n, w: rows.filter((col("x") >= n) | col("x").is_null()),
    "with_columns": lambda rows, _, n, w: rows.with_columns(x=col("x") + n, f=col("f") * 3),
    "map": lambda rows, _, n, w: rows.map(turned(n), schema=COLUMNS),
    "flat_map": lambda rows, _, n, w: rows.flat_map(repeated(n), schema=COLUMNS),
    "rekey": lambda rows, _, n, w: rows.rekey(k=pl.concat_str(GROUP, pl.lit("!" * n))),
    "merge": lambda rows, of, n, w: rows.select("g", "x", "f").merge(of.other.select("g", "x", "f")),
    "dedup": lambda rows, _, n, w: rows.dedup(("g", None)[w % 2], within=f"{4 + 5 * n}ms"),
    "remember": lambda rows, _, n, w: rows.apply(remembered(n), stateful=True, schema=COLUMNS),
    "process": lambda rows, _, n, w: processed(rows, n, w, "event"),
    "process by the clock": lambda rows, _, n, w: processed(rows, n, w, "wall"),
    "join of streams": paired,
    "table": lambda rows, of, n, w: looked_up(rows, of.table, how=HOW[w % 2]),
    "referred table": lambda rows, of, n, w: looked_up(rows, of.right, on="g", how=HOW[w % 2]),
    "global": lambda rows, of, n, w: looked_up(rows, of.everywhere, on="g", how=HOW[w % 2]),
    "past": lambda rows, of, n, w: looked_up(rows, of.past, on="g", how=HOW[w % 2], grace=f"{w % 4}ms"),
}


def summed(flow: Any, number: int) -> Any:
    return flow.group_by(k=GROUP).agg(g=col("g").max(), x=col("x").sum() + number, f=(col("f") / 3).sum())


def folded(flow: Any, number: int) -> Any:
    return flow.group_by(k=GROUP).aggregate(lambda: {"g": None, "x": None, "f": None}, added(number), schema=COLUMNS)


def last(flow: Any, number: int) -> Any:
    return flow.group_by(k=GROUP).agg(g=col("g").last(), x=es.count() + number, f=col("f").last())


def window(number: int, way: int, grace: str) -> es.Window:
    shapes = [
        es.tumbling("7ms", grace=grace),
        es.hopping("8ms", "3ms", grace=grace),
        es.sliding("5ms", grace=grace),
        es.session("4ms", grace=grace),
    ]
    return shapes[(number + way) % 4]


def together(windows: Any) -> Any:
    """Windows as one row per group: what expires has to be taken out of a maximum."""
    return windows.group_by("k").agg(g=col("g").max(), x=col("x").max(), f=col("f").sum())


def windowed(rows: Any, number: int, way: int) -> Any:
    emit: Any = ("update", "final")[way % 2]
    keep = (None, f"{10 + 3 * number}ms")[way // 2 % 2]
    shape = window(number, way // 4, f"{3 * number}ms")
    found = rows.group_by("k").window(shape, emit=emit, keep=keep)
    if way % 3:
        return together(found.agg(g=col("g").max(), x=es.count() + number, f=col("f").mean(), all=es.collect("x")))
    return together(found.agg(g=col("g").count().cast(str), x=es.count() + number, f=col("f").sum()))


def windowed_table(table: Any, number: int, way: int) -> Any:
    at = pl.from_epoch(col("x").abs() * 3, time_unit="ms").dt.replace_time_zone("UTC")
    dated = table.filter(col("x").is_not_null()).with_columns(at=at).group_by(k=GROUP)
    found = dated.window(window(number, way, "0s"), time=col("at"))
    return together(found.agg(g=col("g").max(), x=es.count() + number, f=col("f").sum()))


GATHERINGS: dict[str, Callable[[Any, int, int], Any]] = {
    "sum": lambda rows, n, w: summed(rows, n),
    "last": lambda rows, n, w: last(rows, n),
    "fold": lambda rows, n, w: folded(rows, n),
    "window": windowed,
    "other window": windowed,
}
TABLE: dict[str, Callable[[Any, Sources, int, int], Any]] = {
    "filter": ROWS["filter"],
    "with_columns": ROWS["with_columns"],
    "map": ROWS["map"],
    "rekey": lambda table, _, n, w: (
        table.filter(col("g").is_not_null()).rekey(new=col("g")).select("x", "f", g=col("k")).rename({"new": "k"})
    ),
    "join": lambda table, of, n, w: table.join(of.right.select(**OTHER), how=HOW[w % 3]).select(
        g="g", x=pl.coalesce("x", "x2"), f="f"
    ),
    "foreign join": lambda table, of, n, w: looked_up(table, of.right, on="g", how=HOW[w % 2]),
    "global": ROWS["global"],
    "sum": lambda table, _, n, w: summed(table, n),
    "least and most": lambda table, _, n, w: table.group_by(k=GROUP).agg(
        g=col("k").min(), x=col("x").max() + n, f=col("f").median()
    ),
    "fold": lambda table, _, n, w: folded(table, n),
    "last": lambda table, _, n, w: last(table, n),
    "expire": lambda table, _, n, w: table.expire(after=f"{6 + 7 * n}ms", clock=("event", "wall")[w % 2]),
    "window": lambda table, _, n, w: windowed_table(table, n, w),
}


def drawn(chance: random.Random, names: Any, most: int) -> tuple[Step, ...]:
    return tuple(
        Step(chance.choice(sorted(names)), chance.randrange(3), chance.randrange(16))
        for _ in range(chance.randint(0, most))
    )


def made(chance: random.Random) -> Made:
    """An output of a few steps."""
    if chance.random() < 0.4:
        return Made("table", (), None, drawn(chance, TABLE, 3))
    gathering = Step(chance.choice(sorted(GATHERINGS)), chance.randrange(3), chance.randrange(16))
    return Made("stream", drawn(chance, ROWS, 2), gathering, drawn(chance, TABLE, 2))


def service(outputs: tuple[Made, ...], *, edited: bool = False) -> es.Service:
    """The service of these outputs; an edited one is written differently and means the same."""
    app = es.Service("mixed")
    sources = Sources(app)
    for number, output in enumerate(outputs):
        flow: Any = sources.stream if output.source == "stream" else sources.table
        for step in output.rows:
            flow = ROWS[step.name](flow, sources, step.number, step.way)
        if output.gathering is not None:
            flow = GATHERINGS[output.gathering.name](flow, output.gathering.number, output.gathering.way)
        for step in output.table:
            flow = TABLE[step.name](flow, sources, step.number, step.way)
        flow = flow.filter(pl.lit(value=True) | col("x").is_null()) if edited else flow
        flow.to(f"out{number}")
    return app


class Sent(NamedTuple):
    """A record, or a move of one of the clocks."""

    topic: str
    key: str
    value: dict[str, Any] | None
    ts: int
    partition: int
    ends_batch: bool


def history(chance: random.Random, topics: set[str]) -> list[Sent]:
    """Records of these topics with times out of order; a table's key stays in one partition."""
    sent: list[Sent] = []
    now, clock = 0, 0
    for _ in range(chance.randint(5, 40)):
        now = max(now, now + chance.randint(-2, 4))
        kind = chance.random()
        if kind < 0.05:
            now += chance.randint(0, 10)
            sent.append(Sent("$time", "", None, now, 0, ends_batch=True))
            continue
        if kind < 0.12:
            clock += chance.randint(1, 15)
            sent.append(Sent("$clock", "", None, clock, 0, ends_batch=True))
            continue
        topic, key = chance.choice(["s1", "s1", "s1", "s2", "t1", "t1", "t2", "everywhere", "h"]), chance.choice("abcd")
        stream = topic in ("s1", "s2")
        value = {"g": chance.choice([None, "a", "b", "c"]), "x": chance.choice([None, 0, 1, 2, 5, -3])}
        value["f"] = chance.choice([None, 0.1, 0.2, 0.3, 1e16, -1e16])
        partition = chance.randrange(2) if stream else ord(key) % 2
        there = stream or chance.random() < 0.8
        ts = max(0, now + chance.randint(-9, 2))
        sent.append(Sent(topic, key, value if there else None, ts, partition, ends_batch=chance.random() < 0.5))
    return [record for record in sent if record.topic[0] == "$" or record.topic in topics]


def play(driver: es.testing.Driver, sent: list[Sent]) -> None:
    """Send it all, in these micro-batches."""
    waiting: list[Sent] = []
    for place, record in enumerate(sent):
        if record.topic == "$time":
            driver.advance(record.ts)
        elif record.topic == "$clock":
            driver.advance(clock=record.ts)
        else:
            waiting.append(record)
        if record.ends_batch or place + 1 == len(sent) or sent[place + 1].topic[0] == "$":
            with driver.batch():
                for each in waiting:
                    driver.send(each.topic, each.key, each.value, ts=each.ts, partition=each.partition)
            waiting = []
