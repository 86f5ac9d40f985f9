"""Edits of what goes by time: sizes, graces, gaps, how long results are kept, joins, dedup, expiry.

After an edit every table is what a first run of the new version gives over the whole past, windows that are final
among it: those that state has long forgotten are neither removed nor brought back. The cutover has written each key
that differs once, and no other.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

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
