"""Processors: states, timers, ways out, and what is undone."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal

import polars as pl
import pytest

import everstate as es
from everstate.kernels.ledger import Ledger
from everstate.kernels.operations.process.context import Context
from everstate.kernels.operations.process.process import update
from everstate.kernels.pages.page_store import MemoryPages
from everstate.kernels.rows import SYSTEM
from everstate.kernels.shard import Shard
from everstate.topology.nodes.processor import TAKEN

OUT = {"text": str}


def service(fn, on_timer=None, **options):
    app = es.Service("s")
    rows = app.stream("in", key="id", schema={"n": int})
    routes = {name: f"out-{name}" for name in options.get("sides", {})}
    rows.process(fn, on_timer, schema=OUT, **options).to("out", sides=routes or None)
    return app


def driver(fn, on_timer=None, partitions=1, **options):
    return es.testing.Driver(service(fn, on_timer, **options), partitions)


def texts(played, topic="out"):
    return [(record.key, record.value["text"]) for record in played.records(topic)]


def reasons(played):
    return [record.value["reason"] for record in played.records("out.dlq")]


def test_names_that_states_cannot_have_are_those_of_the_context():
    assert {name for name in dir(Context) if not name.startswith("_")} == TAKEN


def test_states_of_all_kinds_are_kept_by_key():
    def keep(row, ctx):
        ctx.last.set(row["n"])
        ctx.seen.append(row["n"])
        ctx.by.set(f"w{row['n'] % 2}", {"n": row["n"], "at": datetime(2026, 5, 1, tzinfo=UTC)})
        ctx.money.set(Decimal("1.25"))
        return {
            "text": f"{ctx.last.get()} {list(ctx.seen)} {[(k, v['n']) for k, v in ctx.by.items()]} {ctx.money.get()}"
        }

    states = [
        es.value("last", int),
        es.value("money", Decimal),
        es.list_("seen", int),
        es.map_("by", {"n": int, "at": datetime}),
    ]
    played = driver(keep, states=states)
    for key, n in (("a", 1), ("a", 2), ("b", 7), ("a", 3)):
        played.send("in", key, {"n": n})
    assert texts(played) == [
        ("a", "1 [1] [('w1', 1)] 1.25"),
        ("a", "2 [1, 2] [('w0', 2), ('w1', 1)] 1.25"),
        ("b", "7 [7] [('w1', 7)] 1.25"),
        ("a", "3 [1, 2, 3] [('w0', 2), ('w1', 3)] 1.25"),
    ]


def test_what_comes_out_of_a_state_is_a_copy():
    def keep(row, ctx):
        ctx.items.set([1])
        ctx.items.get().append(2)
        ctx.by.set("a", [1])
        ctx.by.get("a").append(2)
        return {"text": f"{ctx.items.get()} {ctx.by.get('a')}"}

    played = driver(keep, states=[es.value("items", list[int]), es.map_("by", list[int])])
    played.send("in", "a", {"n": 1})
    assert texts(played) == [("a", "[1] [1]")]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda ctx: ctx.last.set("1"), "ctx.last.set(): "),
        (lambda ctx: ctx.last.set(True), "ctx.last.set(): "),
        (lambda ctx: ctx.seen.append(1.5), "ctx.seen.append(): "),
        (lambda ctx: ctx.by.set(1, 1), "a key of a map is str, not int"),
        (lambda ctx: ctx.by.set("a", None), "ctx.by.set('a'): "),
        (lambda ctx: ctx.lost.set(1), "there is no state 'lost'"),
        (lambda ctx: ctx.timer("t", at=5), "there is no on_timer function"),
        (lambda ctx: ctx.now, "the wall clock is not recorded"),
        (lambda ctx: ctx.forward({"text": 1}), "wrong result: "),
        (lambda ctx: ctx.forward({"text": "a"}, to="sid"), "there is no side 'sid'"),
        (lambda ctx: ctx.forward({"txt": "a"}, to="side"), "side 'side': "),
        (lambda ctx: ctx.forward({"id": "other", "text": "a"}), "the function changed the key"),
    ],
)
def test_what_does_not_fit_is_a_dead_letter_and_leaves_nothing_behind(change, reason):
    def keep(row, ctx):
        ctx.last.set(row["n"])
        ctx.seen.append(row["n"])
        ctx.by.set("k", row["n"])
        ctx.forward({"text": "sent"}, to="side")
        if row["n"] == 13:
            change(ctx)
        return {"text": f"{ctx.last.get()} {ctx.seen.get()} {ctx.by.items()}"}

    states = [es.value("last", int), es.list_("seen", int), es.map_("by", int)]
    played = driver(keep, states=states, sides={"side": OUT})
    with played.batch():
        for n in (1, 13, 2):
            played.send("in", "a", {"n": n})
    assert texts(played) == [("a", "1 [1] [('k', 1)]"), ("a", "2 [1, 2] [('k', 2)]")]
    assert texts(played, "out-side") == [("a", "sent"), ("a", "sent")]
    (found,) = reasons(played)
    assert reason in found


def test_a_key_whose_states_and_timers_have_gone_is_no_longer_stored():
    def keep(row, ctx):
        if row["n"]:
            ctx.last.set(row["n"])
            ctx.seen.append(1)
            ctx.by.set("a", 1)
            ctx.timer("t", at=99)
        else:
            ctx.last.delete()
            ctx.seen.clear()
            ctx.by.delete("a")
            ctx.cancel("t")

    unit = service(
        keep, lambda ctx: None, states=[es.value("last", int), es.list_("seen", int), es.map_("by", int)]
    ).units()[0]
    shard = Shard(MemoryPages(), None, Ledger.of(unit, "fail"))
    for n, stored in ((1, 1), (0, 0)):
        row = {"$key": b"a", "$op": 1, "$ts": 0, "$topic": 0, "$part": 0, "$off": 0, "$st": 0, "id": "a", "n": n}
        update(unit.nodes[1], 0, [pl.DataFrame([row], schema_overrides=SYSTEM)], shard)
        assert shard.keyed(0).rows == stored


def test_lifetimes_go_by_the_stream_time_of_the_row_that_asks():
    def keep(row, ctx):
        text = f"{ctx.last.get()} {ctx.seen.get()} {ctx.by.keys()} {ctx.last.exists()} {len(ctx.seen)} {'k' in ctx.by}"
        if row["n"]:
            ctx.last.set(row["n"])
            ctx.seen.append(row["n"])
            ctx.by.set("k", row["n"])
        return {"text": text}

    states = [es.value("last", int, ttl="10ms"), es.list_("seen", int, ttl="10ms"), es.map_("by", int, ttl="10ms")]
    played = driver(keep, states=states)
    for n, ts in ((1, 0), (2, 5), (0, 9), (0, 10), (0, 14), (0, 3), (0, 15)):
        played.send("in", "a", {"n": n}, ts=ts)
    assert [text for _, text in texts(played)] == [
        "None [] [] False 0 False",
        "1 [1] ['k'] True 1 True",
        "2 [1, 2] ['k'] True 2 True",
        "2 [2] ['k'] True 1 True",
        "2 [2] ['k'] True 1 True",
        "2 [2] ['k'] True 1 True",
        "None [] [] False 0 False",
    ]


def test_timers_fire_once_in_order_of_time_key_and_name():
    def arm(row, ctx):
        for name, at in (("y", 20), ("x", 20), ("z", 10)):
            ctx.timer(name, at=at)

    played = driver(arm, lambda ctx: {"text": f"{ctx.due} {ctx.time} {ctx.stream_time}"})
    with played.batch():
        played.send("in", "b", {"n": 1}, ts=0)
        played.send("in", "a", {"n": 1}, ts=15)
    played.send("in", "c", {"n": 1}, ts=19)
    played.send("in", "d", {"n": 1}, ts=25)
    assert texts(played) == [
        ("b", "z 10 10"),
        ("a", "z 10 15"),
        ("c", "z 10 19"),
        ("b", "x 20 20"),
        ("b", "y 20 20"),
        ("a", "x 20 20"),
        ("a", "y 20 20"),
        ("c", "x 20 20"),
        ("c", "y 20 20"),
        ("d", "z 10 25"),
        ("d", "x 20 25"),
        ("d", "y 20 25"),
    ]
    assert [record.ts for record in played.records("out")][:4] == [10, 10, 10, 20]


def test_a_timer_waits_for_every_partition_and_moves_when_it_is_set_again():
    def arm(row, ctx):
        if row["n"]:
            ctx.timer("t", at=ctx.time + row["n"])
        else:
            ctx.cancel("t")

    played = driver(arm, lambda ctx: {"text": str(ctx.time)}, partitions=2)
    played.send("in", "a", {"n": 10}, ts=0, partition=0)
    played.send("in", "b", {"n": 99}, ts=50, partition=0)
    assert texts(played) == []  # the other partition may have older rows
    played.send("in", "a", {"n": 10}, ts=5, partition=1)
    played.send("in", "b", {"n": 0}, ts=14, partition=1)
    assert texts(played) == []
    played.send("in", "c", {"n": 99}, ts=15, partition=1)
    assert texts(played) == [("a", "15")]


def test_a_timer_that_raises_is_a_dead_letter_of_its_own_and_does_not_fire_again():
    def arm(row, ctx):
        ctx.timer("good", at=10)
        ctx.timer("bad", at=10)
        ctx.timer("bad too", at=11)

    def ring(ctx):
        ctx.count.set(ctx.count.get(0) + 1)
        ctx.forward({"text": "undone"}, to="side")
        if ctx.due != "good":
            ctx.timer("good", at=ctx.time + 1)
            raise ValueError("no")
        return {"text": f"{ctx.count.get()}"}

    played = driver(arm, ring, states=[es.value("count", int)], sides={"side": OUT})
    played.send("in", "a", {"n": 1}, ts=0)
    played.send("in", "b", {"n": 1}, ts=20)
    played.send("in", "c", {"n": 1}, ts=90)
    letters = [(record.key, record.value) for record in played.records("out.dlq")]
    assert [json.loads(key) for key, _ in letters][:2] == [["in", 0, 0, "bad", 10], ["in", 0, 0, "bad too", 11]]
    letter = letters[0][1]
    assert letter["key"] == "a"
    assert json.loads(letter["value"]) == {"timer": "bad", "time": 10, "clock": "event"}
    assert letter["reason"].startswith("timer 'bad': ValueError: no (")
    assert texts(played) == [("a", "1"), ("b", "1"), ("c", "1")]
    assert texts(played, "out-side") == [("a", "undone"), ("b", "undone"), ("c", "undone")]


def test_a_timer_may_go_on_but_not_stand_still():
    def ring(ctx):
        ctx.timer("t", at=ctx.time + (10 if ctx.key == "a" else 0))
        return {"text": str(ctx.time)}

    played = driver(lambda row, ctx: ctx.timer("t", at=10), ring)
    with played.batch():
        played.send("in", "a", {"n": 1}, ts=0)
        played.send("in", "b", {"n": 1}, ts=35)
    assert texts(played) == [("a", "10"), ("a", "20"), ("a", "30")]
    assert "not later" in reasons(played)[0]


@pytest.mark.parametrize("at", [-1, 1.5, "soon", None, True, 1 << 62, datetime(2026, 1, 1)])  # noqa: DTZ001 - what a user might pass
def test_a_time_that_is_none_is_refused(at):
    played = driver(lambda row, ctx: ctx.timer("t", at=at), lambda ctx: None)
    played.send("in", "a", {"n": 1}, ts=0)
    assert "is not a time" in reasons(played)[0]


@pytest.mark.parametrize("name", ["", None, "\ud800"])
def test_a_name_that_a_timer_cannot_have_is_refused(name):
    def sets(row, ctx):
        ctx.timer(name, at=5)

    played = driver(sets, lambda ctx: None)
    played.send("in", "a", {"n": 1}, ts=0)
    assert [reason.partition(",")[0] for reason in reasons(played)] == ["StateValueError: the name of a timer is text"]


def test_a_timer_at_a_datetime_is_due_then():
    played = driver(
        lambda row, ctx: ctx.timer("t", at=datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
        lambda ctx: {"text": str(ctx.time)},
    )
    played.send("in", "a", {"n": 1}, ts=0)
    played.send("in", "a", {"n": 1}, ts=1000)
    assert texts(played) == [("a", "1000")]


def test_a_context_cannot_be_used_after_its_call():
    kept = []
    played = driver(lambda row, ctx: kept.append(ctx), states=[es.value("last", int)])
    played.send("in", "a", {"n": 1})
    for use in (lambda ctx: ctx.last.get(), lambda ctx: ctx.forward({"text": "a"}), lambda ctx: ctx.cancel("t")):
        with pytest.raises(es.EverstateError, match="a row that has been processed"):
            use(kept[0])


class Counting:
    """A processor that is an object."""

    def __init__(self, step=1):
        self.step = step

    def process(self, row, ctx):
        ctx.count.set(ctx.count.get(0) + self.step)
        ctx.timer("t", at=ctx.time + 10)
        return {"text": f"{ctx.count.get()}"}

    def on_timer(self, ctx):
        return {"text": f"{ctx.due} {ctx.count.get()}"}


class Forgetful(Counting):
    """One that counts in an attribute."""

    def process(self, row, ctx):
        self.step += 1
        self.more = 1
        return super().process(row, ctx)


def test_a_class_or_an_object_is_a_processor():
    for given, step in ((Counting, 1), (Counting(5), 5)):
        played = driver(given, states=[es.value("count", int)])
        played.send("in", "a", {"n": 1}, ts=0)
        played.send("in", "a", {"n": 1}, ts=3)
        played.send("in", "b", {"n": 1}, ts=13)
        assert texts(played) == [("a", f"{step}"), ("a", f"{2 * step}"), ("a", f"t {2 * step}"), ("b", f"{step}")]


def test_an_attribute_that_is_set_while_processing_is_refused_since_it_would_be_lost():
    given = Forgetful()
    played = driver(given, states=[es.value("count", int)])
    played.send("in", "a", {"n": 1})
    assert texts(played) == []
    assert "has set self.more, which would be lost" in reasons(played)[0]
    assert vars(given) == {"step": 1}


def test_rows_without_a_key_are_dropped_and_counted():
    played = driver(lambda row, ctx: {"text": "a"})
    played.send("in", None, {"n": 1})
    assert texts(played) == []
    assert played.counts("out") == {"dropped.null_key": 1}


def test_composite_keys_come_back_in_timers():
    app = es.Service("s")
    rows = app.stream("in", key=["ward", "bed"], schema={"ward": str, "bed": int, "n": int})
    rows.process(lambda row, ctx: ctx.timer("t", at=5), lambda ctx: {"text": f"{ctx.key}"}, schema={"text": str}).to(
        "out"
    )
    played = es.testing.Driver(app)
    played.send("in", ("icu", 7), {"n": 1}, ts=0)
    played.send("in", ("icu", 8), {"n": 1}, ts=5)
    assert [record.value["text"] for record in played.records("out")] == ["('icu', 7)", "('icu', 8)"]


def numbered(count, ts, first=0):
    keys = [f"k{first + number}" for number in range(count)]
    system = {
        "$key": [key.encode() for key in keys],
        "$op": [1] * count,
        "$ts": [ts] * count,
        "$topic": [0] * count,
        "$part": [0] * count,
        "$off": list(range(count)),
        "$st": [ts] * count,
    }
    return pl.DataFrame({**system, "id": keys, "n": [1] * count}, schema_overrides=SYSTEM)


def pages_of_a_due_timer(keys):
    """The pages that one due timer costs where so many keys have one, spread over a day."""

    def arm(row, ctx):
        ctx.timer("t", at=1000 + int(row["id"][1:]) * 86_400_000 // keys)

    unit = service(arm, lambda ctx: {"text": "rang"}).units()[0]
    pages, books = MemoryPages(), None
    shard = Shard(pages, books, Ledger.of(unit, "fail"))
    shard.frontier = 0
    update(unit.nodes[1], 0, [numbered(keys, 0)], shard)
    books = shard.close()
    counts, rang = [], 0
    for now in (500, 1000, 50_000_000):
        shard = Shard(pages, books, Ledger.of(unit, "fail"))
        shard.frontier = now
        pages.reset_counts()
        rang += update(unit.nodes[1], 0, [numbered(0, now)], shard).height
        books = shard.close()
        counts.append(pages.gets)
    assert rang == 1 + (50_000_000 - 1000) * keys // 86_400_000
    return counts


def test_due_timers_are_found_without_a_scan():
    few, many = pages_of_a_due_timer(1_000), pages_of_a_due_timer(30_000)
    assert few[0] == many[0] == 0  # nothing is due: nothing is read
    assert many[1] <= few[1] + 4  # one is due: the slice that it lies in, and its key


@pytest.mark.parametrize(
    ("name", "words"), [("last", "ctx.last.set(...)"), ("more", "Keep it in a state"), ("key", "")]
)
def test_context_that_is_assigned_to_says_what_to_write(name, words):
    played = driver(lambda row, ctx: setattr(ctx, name, 5), states=[es.value("last", int)])
    played.send("in", "a", {"n": 1})
    (reason,) = reasons(played)
    assert reason.startswith(f"StateValueError: ctx.{name} cannot be set")
    assert words in reason


def test_result_that_is_a_function_is_a_dead_letter_without_its_address():
    played = driver(lambda row, ctx: len)
    played.send("in", "a", {"n": 1})
    played.send("in", "b", {"n": 1})
    assert len(set(reasons(played))) == 1
    assert "0x" not in reasons(played)[0]


def test_lifetime_of_a_value_at_the_last_time_there_is_never_ends():
    played = driver(
        lambda row, ctx: ctx.last.set(ctx.last.get(0) + 1) or {"text": str(ctx.last.get())},
        states=[es.value("last", int, ttl="1d")],
    )
    for key in ("a", "b", "a"):
        played.send("in", key, {"n": 1}, ts=2**63 - 1)
    assert (texts(played), reasons(played)) == ([("a", "1"), ("b", "1"), ("a", "2")], [])
