"""Edits of what goes by time: sizes, graces, gaps, how long results are kept, joins, dedup, expiry.

After an edit every table is what a first run of the new version gives over the whole past, windows that are final
among it: those that state has long forgotten are neither removed nor brought back. The cutover has written each key
that differs once, and no other.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from polars import col

import everstate as es
from tests.equivalence.playing import examples
from tests.figures import PLAYED

EDITED = ("windowed", "pairs", "once", "active")
#: What reads the others' changes, as they are written.
TOPICS = (*EDITED, "again")
SCHEMA = {"g": str, "n": int}


class Version(NamedTuple):
    """What an edit may change."""

    shape: str
    size: int
    advance: int
    grace: int
    keep: int | None
    final: bool
    within: tuple[int, int]
    how: str
    dedup: int
    expire: int


versions = st.builds(
    Version,
    st.sampled_from(["tumbling", "hopping", "session", "sliding"]),
    st.sampled_from([4, 6, 10]),
    st.sampled_from([2, 3]),
    st.sampled_from([0, 2, 7]),
    st.sampled_from([None, None, 8, 30]),
    st.booleans(),
    st.sampled_from([(0, 5), (5, 5), (9, 0)]),
    st.sampled_from(["inner", "left", "outer"]),
    st.sampled_from([3, 8, 20]),
    st.sampled_from([5, 15, 60]),
)


class Sent(NamedTuple):
    """A record of one of both streams."""

    side: int
    partition: int
    key: str
    group: str
    number: int
    ts: int


@st.composite
def histories(draw: st.DrawFn) -> list[Sent]:
    step = st.tuples(
        st.integers(-8, 12), st.integers(0, 1), st.integers(0, 1), st.sampled_from("abc"), st.sampled_from("xy")
    )
    now, sent = 0, []
    for number, (by, side, partition, key, group) in enumerate(draw(st.lists(step, max_size=25))):
        sent.append(Sent(side, partition, key, group, number, max(0, now + by)))
        now = max(now, now + by // 2)
    return sent


def window(version: Version) -> es.Window:
    size, grace = f"{version.size}ms", f"{version.grace}ms"
    if version.shape == "hopping":
        return es.hopping(size, f"{version.advance}ms", grace=grace)
    return {"tumbling": es.tumbling, "session": es.session, "sliding": es.sliding}[version.shape](size, grace=grace)


def service(version: Version) -> es.Service:
    app = es.Service("s")
    one, other = (app.stream(f"in{side}", key="k", schema=SCHEMA) for side in (0, 1))
    keep = None if version.keep is None else f"{version.keep + version.grace}ms"
    emit: Any = "final" if version.final else "update"
    windowed = one.group_by("g").window(window(version), emit=emit, keep=keep).agg(n=es.count(), all=es.collect("n"))
    windowed.to("windowed").filter(col("n") > 1).group_by("window_start").agg(n=col("n").sum()).to("again")
    before, after = (f"{part}ms" for part in version.within)
    how: Any = version.how
    pairs = one.join(other.select(m="n"), within=(before, after), grace=f"{version.grace}ms", how=how)
    pairs.group_by("k").agg(pairs=es.count(), n=col("n").sum(), m=col("m").sum()).to("pairs")
    one.dedup("g", within=f"{version.dedup}ms").group_by("k").agg(all=es.collect("n")).to("once")
    one.group_by("k").agg(n=es.count()).expire(after=f"{version.expire}ms").to("active")
    return app


def play(driver: es.testing.Driver, sent: list[Sent]) -> None:
    for record in sent:
        value = {"g": record.group, "n": record.number}
        driver.send(f"in{record.side}", record.key, value, ts=record.ts, partition=record.partition)


def tables(driver: es.testing.Driver) -> dict[str, dict[Any, Any]]:
    return {topic: driver.table(topic) for topic in TOPICS}


@examples(250, 40)
@given(histories(), st.lists(versions, min_size=2, max_size=3), st.integers(0, 10**6))
def test_edits_of_what_goes_by_time_give_what_a_first_run_gives(sent, edits, seed):
    chance = random.Random(seed)
    cuts = sorted(chance.randint(0, len(sent)) for _ in edits)
    driver = es.testing.Driver(service(edits[0]), partitions=2, shards=chance.choice([1, 3]))
    play(driver, sent[: cuts[0]])
    for cut, end, version in zip(cuts, [*cuts[1:], len(sent)], edits[1:], strict=False):
        before = tables(driver)
        upgrade = driver.upgrade(service(version))
        after = tables(driver)
        first = es.testing.Driver(service(version), partitions=2)
        play(first, sent[:cut])
        assert after == tables(first)
        written = [(record.topic, record.key, record.value) for record in upgrade.records if record.topic in EDITED]
        assert len({(topic, key) for topic, key, _ in written}) == len(written)
        differing = {
            (topic, key)
            for topic in EDITED
            for key in {**before[topic], **after[topic]}
            if before[topic].get(key) != after[topic].get(key)
        }
        assert {(topic, key) for topic, key, _ in written} == differing
        play(driver, sent[cut:end])
        play(first, sent[cut:end])
        assert tables(driver) == tables(first)
        PLAYED["edits of time"] += 1


def numbered(row: dict[str, Any], state: es.State) -> dict[str, Any]:
    state.set("rows", state.get("rows", 0) + 1)
    return {"n": row["n"], "place": state.get("rows")}


def told(row: dict[str, Any], ctx: es.Context) -> dict[str, Any]:
    ctx.rows.set(ctx.rows.get(0) + 1)
    return {"n": row["n"], "place": ctx.rows.get()}


def waiting(row: dict[str, Any], ctx: es.Context) -> dict[str, Any] | None:
    ctx.timer(str(row["n"] % 3), at=ctx.time + 4)
    return row if row["n"] % 2 else None


def rung(ctx: es.Context) -> dict[str, Any]:
    return {"n": 100 + int(ctx.due or 0)}


def appended(text: str, row: dict[str, Any]) -> str:
    return f"{text} {row['n']}"


#: What gives rows later than it got them.
LATER: dict[str, Any] = {
    "join": lambda one, other, _: one.join(other, within=("4ms", "6ms"), how="outer").select(
        n=pl.coalesce("n", 1000 + col("m"))
    ),
    "timers": lambda one, *_: one.select("n").process(waiting, on_timer=rung, schema={"n": int}),
    "history": lambda one, _, names: one.select("n").join(names, how="left", grace="7ms").select("n"),
}
SHOWN = {"n": int, "place": int}
#: What depends on the order of arrival.
ORDERED: dict[str, Any] = {
    "apply": lambda rows: rows.apply(numbered, stateful=True, schema=SHOWN).select(n=col("n") * 100 + col("place")),
    "process": lambda rows: rows.process(told, schema=SHOWN, states=[es.value("rows", int)]).select(
        n=col("n") * 100 + col("place")
    ),
    "dedup": lambda rows: rows.dedup("k", within="9ms"),
    "fold": lambda rows: rows.group_by("k").aggregate(str, appended, schema=str),
    "window": lambda rows: rows.group_by("k").window(es.tumbling("20ms")).aggregate(str, appended, schema=str),
}


def arriving(late: str, ordered: str) -> es.Service:
    app = es.Service("s")
    one, other = (
        app.stream(f"in{side}", key="k", schema={"g": str, name: int}) for side, name in enumerate(("n", "m"))
    )
    names = app.table("names", key="k", schema={"name": str}, history="1h")
    flow = ORDERED[ordered](LATER[late](one, other, names))
    if ordered in {"apply", "process", "dedup"}:
        flow = flow.group_by("k").agg(n=col("n").sum(), squares=(col("n") * col("n")).sum())
    flow.to("out")
    return app


@examples(300, 30)
@given(histories(), st.sampled_from(sorted(LATER)), st.sampled_from(sorted(ORDERED)), st.integers(0, 10**6))
def test_rows_that_came_out_late_come_in_the_same_order_again(sent, late, ordered, seed):
    chance, app = random.Random(seed), arriving(late, ordered)
    driver = es.testing.Driver(app, partitions=2, shards=chance.choice([1, 3]))
    for start in range(0, len(sent), step := chance.choice([1, 2, 5])):
        with driver.batch():
            for record in sent[start : start + step]:
                value = {"g": record.group, "nm"[record.side]: record.number}
                if late == "join" or not record.side:
                    driver.send(f"in{record.side}", record.key, value, ts=record.ts, partition=record.partition)
                elif late == "history":
                    driver.send("names", record.key, {"name": record.group}, ts=record.ts)
        if chance.random() < 0.1:
            driver.advance()
    before = driver.table("out")
    again = driver.upgrade(app, recalculate=["out"])
    assert again.records == []
    assert driver.table("out") == before
    PLAYED["edits of time"] += 1
