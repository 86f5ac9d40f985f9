"""Upgrades of whole services: streams, chains, sources that come and go, dead letters, and what must be asked first."""

from __future__ import annotations

import pytest
from polars import col

import everstate as es
from everstate.errors import RecordError, TopicNotFoundError
from tests.unit.testing.versions import categories, kinds, written

NUMBER = {"id": str, "g": str, "x": int}


def numbers(app, topic="in"):
    return app.table(topic, key="id", schema=NUMBER)


def send(driver, *rows, topic="in"):
    with driver.batch():
        for key, group, x in rows:
            driver.send(topic, key, {"g": group, "x": x})


def counted(row, state) -> dict:
    state.set("n", state.get("n", 0) + 1)
    return {"n": state.get("n"), "x": row["x"]}


def counted_by_two(row, state) -> dict:
    state.set("n", state.get("n", 0) + 2)
    return {"n": state.get("n"), "x": row["x"]}


# -- streams ----------------------------------------------------------------------------------------------------------


def events(fn, *, topics=("in",), least=0):
    app = es.Service("s")
    rows, *others = (app.stream(topic, key="id", schema={"x": int}) for topic in topics)
    if others:
        rows = rows.merge(*others)
    rows.filter(col("x") >= least).apply(fn, stateful=True, schema={"n": int, "x": int}).to("out")
    return app


def rows(driver):
    return [(record.key, record.value["n"], record.value["x"]) for record in driver.records("out")]


def test_upgrade_of_a_stream_leaves_what_it_has_published_and_goes_on_with_rebuilt_state():
    driver = es.testing.Driver(events(counted))
    for x in (1, 2):
        driver.send("in", "a", {"x": x})
    upgrade = driver.upgrade(events(counted_by_two))
    assert kinds(upgrade) == {"out": "recalculate"}
    assert upgrade.plan.action("out").stream
    assert upgrade.records == []
    driver.send("in", "a", {"x": 3})
    assert rows(driver) == [("a", 1, 1), ("a", 2, 2), ("a", 6, 3)]


def test_upgrade_of_a_stream_without_state_leaves_what_it_has_published():
    def version(factor):
        app = es.Service("s")
        app.stream("in", key="id", schema={"x": int}).select(x=col("x") * factor).to("out")
        return app

    driver = es.testing.Driver(version(1), partitions=2)
    for x in (1, 2, 3):
        driver.send("in", f"k{x}", {"x": x})
    assert driver.upgrade(version(10)).records == []
    assert driver.upgrade(version(10), recalculate=["out"]).records == []
    driver.send("in", "k4", {"x": 4})
    assert [record.value["x"] for record in driver.records("out")] == [1, 2, 3, 40]


def _interrupted(driver):
    driver.send("in", "a", {"x": 2}, partition=0)
    driver.send("in", "b", {"x": 3}, partition=1)
    raise RuntimeError


def test_upgrade_of_a_stream_with_records_that_were_not_processed_loses_and_doubles_none():
    driver = es.testing.Driver(events(counted), partitions=2)
    driver.send("in", "a", {"x": 1}, partition=0)
    with pytest.raises(RuntimeError), driver.batch():
        _interrupted(driver)
    upgrade = driver.upgrade(events(counted_by_two))
    assert upgrade.records == []
    assert rows(driver) == [("a", 1, 1), ("a", 4, 2), ("b", 2, 3)]


def test_upgrade_of_a_stream_to_another_source_begins_there_after_the_cutover():
    driver = es.testing.Driver(events(counted), topics={"more": [("a", {"x": 10})]})
    driver.send("in", "a", {"x": 1})
    upgrade = driver.upgrade(events(counted, topics=("in", "more")))
    assert upgrade.records == []
    driver.send("more", "a", {"x": 20})
    assert rows(driver) == [("a", 1, 1), ("a", 3, 20)]


def test_upgrade_of_a_stream_that_becomes_a_table_corrects_its_topic():
    def table():
        app = es.Service("s")
        app.stream("in", key="id", schema={"x": int}).group_by("id").agg(n=es.count(), x=col("x").max()).to("out")
        return app

    driver = es.testing.Driver(events(counted))
    for x in (1, 2):
        driver.send("in", "a", {"x": x})
    driver.send("in", "b", {"x": 1})
    assert written(driver.upgrade(table())) == []
    driver.send("in", "a", {"x": 0})
    assert driver.table("out") == {"a": {"n": 3, "x": 2}, "b": {"n": 1, "x": 1}}


def test_upgrade_of_an_order_sensitive_aggregate_keeps_the_recorded_order():
    def version(factor):
        def joined(text, row) -> str:
            return text + row * factor

        app = es.Service("s")
        app.stream("in", key="id", schema=str).group_by(g=col("value").str.len_chars()).aggregate(
            str, joined, schema=str
        ).to("out")
        return app

    driver = es.testing.Driver(version(1), partitions=2)
    for text, ts, partition in (("b", 9, 1), ("a", 1, 0), ("c", 5, 1)):
        driver.send("in", "k", text, ts=ts, partition=partition)
    assert driver.table("out") == {1: "bac"}
    assert written(driver.upgrade(version(1), recalculate=["out"])) == []
    assert written(driver.upgrade(version(2))) == [(1, "bbaacc")]


def test_upgrade_away_from_the_order_of_arrival_and_back_knows_that_order():
    def ordered():
        def joined(text, row) -> str:
            return text + row

        app = es.Service("s")
        app.stream("in", key="id", schema=str).group_by("id").aggregate(str, joined, schema=str).to("out")
        return app

    def unordered():
        app = es.Service("s")
        app.stream("in", key="id", schema=str).group_by("id").agg(value=col("value").max()).to("out")
        return app

    driver = es.testing.Driver(ordered(), partitions=2)
    for text, ts, partition in (("b", 9, 1), ("a", 1, 0)):
        driver.send("in", "k", text, ts=ts, partition=partition)
    driver.upgrade(unordered())
    driver.send("in", "k", "c", ts=0, partition=1)
    driver.send("in", "k", "d", ts=0, partition=0)
    driver.upgrade(ordered())
    assert driver.table("out") == {"k": "bacd"}


def test_upgrade_to_another_source_reads_its_records_where_they_were_sent():
    def version(*topics):
        def joined(text, row) -> str:
            return text + row

        app = es.Service("s")
        rows, *others = (app.stream(topic, key="id", schema=str) for topic in topics)
        rows = rows.merge(*others) if others else rows
        rows.group_by("id").aggregate(str, joined, schema=str).to("out")
        return app

    driver = es.testing.Driver(version("in"), topics={"more": ()})
    for topic, text in (("in", "b"), ("more", "x"), ("in", "a"), ("more", "y")):
        driver.send(topic, "k", text, ts=9 if text == "b" else 1)
    assert written(driver.upgrade(version("in", "more"))) == [("k", "bxay")]


# -- chains -----------------------------------------------------------------------------------------------------------


def chain(least=0, factor=1, suffix=""):
    """Three outputs, each reading the one before."""
    app = es.Service("s")
    first = numbers(app).filter(col("x") >= least).to("first")
    second = first.group_by("g").agg(total=col("x").sum() * factor).to("second")
    second.select(text=col("total").cast(str) + suffix).to("third")
    return app


def chained(**options):
    driver = es.testing.Driver(chain(**options))
    send(driver, ("a", "p", 1), ("b", "p", 2), ("c", "q", 3))
    return driver


CHAINS = {
    "first": (
        {"least": 2},
        {"first": "recalculate", "second": "nothing", "third": "nothing"},
        [("first", "a", None)],
    ),
    "second": (
        {"factor": 2},
        {"first": "nothing", "second": "recalculate", "third": "nothing"},
        [("second", "p", {"total": 6}), ("second", "q", {"total": 6})],
    ),
    "first and second": (
        {"least": 3, "factor": 2},
        {"first": "recalculate", "second": "recalculate", "third": "nothing"},
        [("first", "a", None), ("first", "b", None), ("second", "p", None), ("second", "q", {"total": 6})],
    ),
    "first and third": (
        {"least": 3, "suffix": "!"},
        {"first": "recalculate", "second": "nothing", "third": "recalculate"},
        [("first", "a", None), ("first", "b", None), ("third", "p", None), ("third", "q", {"text": "3!"})],
    ),
    "all": (
        {"least": 2, "factor": 2, "suffix": "!"},
        {"first": "recalculate", "second": "recalculate", "third": "recalculate"},
        [
            ("first", "a", None),
            ("second", "p", {"total": 4}),
            ("second", "q", {"total": 6}),
            ("third", "p", {"text": "4!"}),
            ("third", "q", {"text": "6!"}),
        ],
    ),
}


@pytest.mark.parametrize("name", sorted(CHAINS))
def test_upgrade_of_a_chain_touches_what_changed_and_the_rest_follows(name):
    options, expected, records = CHAINS[name]
    driver = chained()
    upgrade = driver.upgrade(chain(**options))
    assert kinds(upgrade) == expected
    assert [(record.topic, record.key, record.value) for record in upgrade.records] == records
    fresh = chained(**options)
    for topic in ("first", "second", "third"):
        assert driver.table(topic) == fresh.table(topic)
    send(driver, ("b", "q", 9))
    send(fresh, ("b", "q", 9))
    assert driver.table("third") == fresh.table("third")


def test_upgrade_of_a_chain_writes_the_rest_as_any_other_change():
    driver = chained()
    before = [len(driver.records(topic)) for topic in ("second", "third")]
    driver.upgrade(chain(least=3))
    added = [driver.records(topic)[mark:] for topic, mark in zip(("second", "third"), before, strict=True)]
    assert [[(record.key, record.value) for record in records] for records in added] == [[("p", None)], [("p", None)]]


def test_upgrade_of_an_output_declared_before_the_one_that_it_reads():
    def version(least):
        app = es.Service("s")
        app.table("first", key="id", schema=NUMBER).group_by("g").agg(n=es.count()).to("second")
        numbers(app).filter(col("x") >= least).to("first")
        return app

    driver = es.testing.Driver(version(0))
    send(driver, ("a", "p", 1), ("b", "p", 2))
    assert driver.table("second") == {"p": {"n": 2}}
    assert written(driver.upgrade(version(2))) == [("a", None)]
    assert driver.table("second") == {"p": {"n": 1}}


# -- outputs that come and go ---------------------------------------------------------------------------------------


def outputs(*names, reads=()):
    app = es.Service("s")
    for name in names:
        numbers(app).select("x").to(name)
    for name in reads:
        app.table(name, key="id", schema={"id": str, "x": int}).to(f"{name}-again")
    return app


def test_upgrade_with_a_new_output_publishes_it_from_the_beginning():
    driver = es.testing.Driver(outputs("one"))
    send(driver, ("a", "p", 1), ("b", "p", 2))
    upgrade = driver.upgrade(outputs("one", "two"))
    assert kinds(upgrade) == {"one": "nothing", "two": "begin"}
    assert [(record.topic, record.key, record.value) for record in upgrade.records] == [
        ("two", "a", {"x": 1}),
        ("two", "b", {"x": 2}),
    ]


def test_upgrade_without_an_output_removes_its_keys_also_for_those_who_read_them():
    driver = es.testing.Driver(outputs("one", "two", reads=["two"]))
    send(driver, ("a", "p", 1), ("b", "p", 2))
    upgrade = driver.upgrade(outputs("one", reads=["two"]))
    assert kinds(upgrade) == {"one": "nothing", "two-again": "nothing", "two": "retire"}
    assert written(upgrade) == [("a", None), ("b", None)]
    assert driver.table("two") == {}
    assert driver.table("two-again") == {}
    assert driver.table("one") == {"a": {"x": 1}, "b": {"x": 2}}


def test_upgrade_without_an_output_whose_topic_is_kept_leaves_it():
    driver = es.testing.Driver(outputs("one", "two"))
    send(driver, ("a", "p", 1))
    upgrade = driver.upgrade(outputs("one"), keep_topic=True)
    assert kinds(upgrade) == {"one": "nothing", "two": "retire"}
    assert upgrade.records == []
    assert driver.table("two") == {"a": {"x": 1}}


@pytest.mark.parametrize("keep_topic", [False, True])
def test_upgrade_that_brings_an_output_back_writes_what_differs(keep_topic):
    driver = es.testing.Driver(outputs("one", "two"))
    send(driver, ("a", "p", 1), ("b", "p", 2))
    driver.upgrade(outputs("one"), keep_topic=keep_topic)
    send(driver, ("b", "p", 3))
    upgrade = driver.upgrade(outputs("one", "two"))
    assert kinds(upgrade) == {"one": "nothing", "two": "begin"}
    assert written(upgrade) == ([] if keep_topic else [("a", {"x": 1})]) + [("b", {"x": 3})]
    assert {record.headers["es-generation"] for record in upgrade.records} == {b"2"}
    send(driver, ("a", "p", 5))
    assert driver.table("two") == {"a": {"x": 5}, "b": {"x": 3}}


def test_upgrade_that_brings_a_stream_back_goes_on_where_it_was_removed():
    driver = es.testing.Driver(events(counted))
    driver.send("in", "a", {"x": 1})
    assert kinds(driver.upgrade(es.Service("s"))) == {"out": "retire"}
    driver.send("in", "a", {"x": 2})
    driver.upgrade(events(counted))
    driver.send("in", "a", {"x": 3})
    assert rows(driver) == [("a", 1, 1), ("a", 2, 2), ("a", 3, 3)]


def test_upgrade_from_nothing_onto_a_topic_with_keys_treats_them_as_an_earlier_version():
    held = {"a": {"x": 1}, "b": {"x": 7}, "old": {"x": 0}}
    driver = es.testing.Driver(es.Service("s"), topics={"in": (), "one": held})
    send(driver, ("a", "p", 1), ("b", "p", 2), ("c", "p", 3))
    upgrade = driver.upgrade(outputs("one"))
    assert kinds(upgrade) == {"one": "begin"}
    assert upgrade.plan.action("one").keys == 3
    assert written(upgrade) == [("b", {"x": 2}), ("c", {"x": 3}), ("old", None)]


def test_driver_onto_a_topic_with_keys_corrects_it_at_once():
    topics = {"in": {"a": {"g": "p", "x": 1}}, "one": {"a": {"x": 1}, "old": {"x": 0}}}
    driver = es.testing.Driver(outputs("one"), partitions=3, topics=topics)
    assert driver.table("one") == {"a": {"x": 1}}
    assert [(record.key, record.value) for record in driver.records("one")[2:]] == [("old", None)]


def test_driver_topics_of_streams_are_pairs_and_their_keys_need_no_schema():
    topics = {"in": [("a", {"x": 1}), ("a", {"x": 2})], "other": {("p", 1): 5, 7: None, b"raw": b"raw"}}
    driver = es.testing.Driver(events(counted), topics=topics)
    assert rows(driver) == [("a", 1, 1), ("a", 2, 2)]
    assert [record.key for record in driver.records("other")] == ['["p",1]', "7", "raw"]
    assert driver.table("other") == {'["p",1]': 5, "raw": b"raw"}
    driver.send("other", "x", {"y": 1})
    assert driver.table("other")["x"] == {"y": 1}
    with pytest.raises(TopicNotFoundError):
        driver.send("unknown", "x", {})


# -- sources ----------------------------------------------------------------------------------------------------------


def merged(*topics):
    app = es.Service("s")
    rows, *others = (app.stream(topic, key="id", schema=NUMBER) for topic in topics)
    rows = rows.merge(*others) if others else rows
    rows.group_by("g").agg(total=col("x").sum()).to("out")
    return app


def test_upgrade_with_a_new_source_brings_its_keys_and_without_it_takes_them_away():
    driver = es.testing.Driver(merged("in"), topics={"more": ()})
    send(driver, ("a", "p", 1), ("b", "q", 2))
    send(driver, ("c", "q", 3), ("d", "r", 4), topic="more")
    upgrade = driver.upgrade(merged("in", "more"))
    assert categories(upgrade)[0] == "new source topic"
    assert written(upgrade) == [("q", {"total": 5}), ("r", {"total": 4})]
    upgrade = driver.upgrade(merged("in"))
    assert categories(upgrade)[0] == "removed source topic"
    assert written(upgrade) == [("q", {"total": 2}), ("r", None)]
    send(driver, ("e", "r", 1), topic="more")
    assert driver.table("out") == {"p": {"total": 1}, "q": {"total": 2}}


# -- dead letters ---------------------------------------------------------------------------------------------------


def parsed(limit, on_error="dead-letter"):
    def checked(row) -> dict:
        if row["x"] > limit:
            raise ValueError(f"more than {limit}")
        return {"x": row["x"]}

    app = es.Service("s", on_error=on_error)
    numbers(app).map(checked, schema={"x": int}).to("out")
    return app


def test_upgrade_that_fails_on_other_records_brings_and_takes_dead_letters():
    driver = es.testing.Driver(parsed(5))
    send(driver, ("a", "p", 3), ("b", "p", 7), ("c", "p", 9))
    assert sorted(driver.table("out.dlq")) == ['["in",0,1]', '["in",0,2]']
    upgrade = driver.upgrade(parsed(8))
    assert written(upgrade) == [("b", {"x": 7})]
    letters = [(letter.topic, letter.key, letter.value and letter.value["reason"]) for letter in upgrade.dead_letters]
    assert letters[0] == ("out.dlq", '["in",0,1]', None)
    assert letters[1][:2] == ("out.dlq", '["in",0,2]')
    assert "more than 8" in letters[1][2]
    upgrade = driver.upgrade(parsed(1))
    assert written(upgrade) == [("a", None), ("b", None)]
    assert len(driver.table("out.dlq")) == 3


def test_upgrade_to_another_policy_keeps_the_table_and_removes_the_letters():
    driver = es.testing.Driver(parsed(5))
    send(driver, ("a", "p", 3), ("b", "p", 7))
    upgrade = driver.upgrade(parsed(5, on_error="skip"))
    assert categories(upgrade) == ["changed policy"]
    assert upgrade.records == []
    assert [letter.value for letter in upgrade.dead_letters] == [None]


def test_upgrade_that_moves_a_step_to_another_line_repeats_no_letter():
    def version(moved):
        app = es.Service("s")
        if moved:
            numbers(app).map(lambda row: 1 // row["x"], schema=int).to("out")
        else:
            numbers(app).map(lambda row: 1 // row["x"], schema=int).to("out")
        return app

    driver = es.testing.Driver(version(moved=False))
    send(driver, ("a", "p", 0), ("b", "p", 1))
    assert kinds(driver.upgrade(version(moved=True))) == {"out": "nothing"}
    upgrade = driver.upgrade(version(moved=True), recalculate=["out"])
    assert kinds(upgrade) == {"out": "recalculate"}
    assert (upgrade.records, upgrade.dead_letters) == ([], [])


def test_upgrade_of_a_chain_to_another_schema_brings_no_letters_about_what_it_replaces():
    def version(kind):
        app = es.Service("s")
        first = numbers(app).select(x=col("x").cast(kind)).to("first")
        first.filter(col("x") > 0).to("second")
        return app

    driver = es.testing.Driver(version(float))
    send(driver, ("a", "p", 1), ("b", "p", 2))
    upgrade = driver.upgrade(version(int), approval="wait")
    assert written(upgrade) == [("a", {"x": 1}), ("b", {"x": 2})] * 2
    assert upgrade.dead_letters == []
    assert driver.table("second") == {"a": {"x": 1}, "b": {"x": 2}}
    assert driver.upgrade(version(int), recalculate=["second"]).dead_letters == []


def test_upgrade_whose_function_fails_for_good_changes_nothing():
    driver = es.testing.Driver(parsed(5, on_error="fail"))
    send(driver, ("a", "p", 3))
    with pytest.raises(RecordError, match="more than 1"):
        driver.upgrade(parsed(1, on_error="fail"))
    send(driver, ("b", "p", 4))
    assert driver.table("out") == {"a": {"x": 3}, "b": {"x": 4}}


def test_upgrade_without_an_output_that_was_a_stream_once_removes_its_keys():
    def table():
        app = es.Service("s")
        app.stream("in", key="id", schema={"x": int}).group_by("id").agg(n=es.count()).to("out")
        numbers(app, "others").select("x").to("one")
        return app

    driver = es.testing.Driver(events(counted))
    driver.send("in", "a", {"x": 1})
    driver.upgrade(table())
    upgrade = driver.upgrade(outputs("one"))
    assert upgrade.plan.action("out").keys == 1
    assert written(upgrade) == [("a", None)]
    assert driver.table("out") == {}


def test_upgrade_that_keeps_an_output_goes_on_counting():
    driver = es.testing.Driver(parsed(5))
    send(driver, ("a", "p", 7))
    assert kinds(driver.upgrade(parsed(5))) == {"out": "nothing"}
    send(driver, ("b", "p", 9))
    assert driver.counts("out") == {"dead": 2}
    driver.upgrade(parsed(6))
    assert driver.counts("out") == {}


def test_send_to_a_source_of_a_version_that_was_refused_waits_for_one_that_reads_it():
    driver = es.testing.Driver(parsed(5, on_error="fail"))
    send(driver, ("a", "p", 3))

    def version(limit):
        app = parsed(limit, on_error="fail")
        numbers(app, "more").to("copied")
        return app

    with pytest.raises(RecordError):
        driver.upgrade(version(1))
    send(driver, ("m", "p", 1), topic="more")
    driver.upgrade(version(5))
    assert driver.table("copied") == {"m": {"g": "p", "x": 1}}
