from itertools import groupby, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import everstate as es
from tests.effort import examples

HOWS = ("inner", "left", "outer")


def service(how, joiner=None):
    app = es.Service("test")
    left = app.table("left", key="id", schema={"id": str, "n": float | None, "tags": list[str]})
    right = app.table("right", key="rid", schema={"rid": str, "n": float, "name": str | None})
    left.join(right, how=how, joiner=joiner).to("out")
    return app


def text_service(how, joiner):
    app = es.Service("test")
    left, right = app.table("left", schema=str), app.table("right", schema=str)
    left.join(right, how=how, joiner=joiner, schema=str).to("out")
    return app


def dashed(left, right):
    return f"{left}-{right}"


# One key's life, and what each kind of join publishes for each step: a value, DELETE, or nothing.
DELETE = object()
LIFE = [
    # step                inner         left          outer
    (("left", None), [], [], []),
    (("right", None), [], [], []),
    (("left", "A"), [], ["A-None"], ["A-None"]),
    (("right", "a"), ["A-a"], ["A-a"], ["A-a"]),
    (("left", "B"), ["B-a"], ["B-a"], ["B-a"]),
    (("left", "B"), [], [], []),
    (("right", "b"), ["B-b"], ["B-b"], ["B-b"]),
    (("right", None), [DELETE], ["B-None"], ["B-None"]),
    (("right", "c"), ["B-c"], ["B-c"], ["B-c"]),
    (("left", None), [DELETE], [DELETE], ["None-c"]),
    (("right", "d"), [], [], ["None-d"]),
    (("right", None), [], [], [DELETE]),
    (("right", "e"), [], [], ["None-e"]),
    (("left", "E"), ["E-e"], ["E-e"], ["E-e"]),
    (("right", None), [DELETE], ["E-None"], ["E-None"]),
    (("left", None), [], [DELETE], [DELETE]),
    (("left", None), [], [], []),
]


@pytest.mark.parametrize("how", HOWS)
def test_join_every_change_of_one_key_publishes_what_kafka_streams_does(how):
    driver = es.testing.Driver(text_service(how, dashed))
    for ts, ((topic, value), *expected) in enumerate(LIFE):
        seen = len(driver.records("out"))
        driver.send(topic, "k", value, ts)
        published = [DELETE if r.value is None else r.value for r in driver.records("out")[seen:]]
        assert published == expected[HOWS.index(how)], (topic, value)


@pytest.mark.parametrize("how", HOWS)
def test_join_both_sides_in_one_batch_publish_the_final_value_once(how, play):
    steps = [step for step, *_ in LIFE][:9]
    driver = play(text_service(how, dashed), [(topic, "k", value, 0) for topic, value in steps])
    assert [record.value for record in driver.records("out")] == ["B-c"]


def test_join_result_is_as_late_as_its_later_side():
    driver = es.testing.Driver(text_service("inner", dashed))
    changes = [("left", "A", 5), ("right", "a", 3), ("right", "b", 9), ("left", "B", 2), ("left", None, 4)]
    for topic, value, ts in changes:
        driver.send(topic, "k", value, ts)
    assert [(record.value, record.ts) for record in driver.records("out")] == [
        ("A-a", 5),
        ("A-b", 9),
        ("B-b", 9),
        (None, 9),
    ]


def test_join_row_that_lost_its_partner_is_as_late_as_the_loss():
    driver = es.testing.Driver(text_service("outer", dashed))
    for topic, value, ts in [("left", "A", 1), ("right", "a", 2), ("right", None, 7), ("left", None, 9)]:
        driver.send(topic, "k", value, ts)
    assert [(record.value, record.ts) for record in driver.records("out")][2:] == [("A-None", 7), (None, 9)]


def test_join_without_joiner_puts_columns_side_by_side_and_renames_clashes(play):
    left, right = {"n": 1.5, "tags": ["x"]}, {"n": 2.5, "name": None}
    driver = play(service("outer"), [("left", "a", left, 0), ("right", "a", right, 0), ("right", "b", right, 0)])
    assert driver.table("out") == {
        "a": {"n": 1.5, "tags": ["x"], "n_right": 2.5, "name": None},
        "b": {"n": None, "tags": None, "n_right": 2.5, "name": None},
    }


def test_join_key_column_of_a_right_only_row_is_filled():
    app = es.Service("test")
    left = app.table("left", key="id", schema={"id": int, "n": int})
    right = app.table("right", key="rid", schema={"rid": int, "m": int})
    left.join(right, how="outer").select("id", "m").to("out")
    driver = es.testing.Driver(app)
    driver.send("right", 7, {"m": 1})
    assert driver.table("out") == {7: {"id": 7, "m": 1}}


def test_join_joiner_sees_dicts_with_the_key_and_none_for_a_missing_side():
    seen = []

    def joiner(left, right) -> str:
        seen.append((left, right))
        return "x"

    app = es.Service("test")
    left = app.table("left", key="id", schema={"id": str, "n": int})
    right = app.table("right", key="rid", schema={"rid": str, "m": int})
    left.join(right, how="left", joiner=joiner).to("out")
    driver = es.testing.Driver(app)
    driver.send("left", "a", {"n": 1})
    driver.send("right", "a", {"m": 2})
    assert seen[0] == ({"id": "a", "n": 1}, None)
    assert seen[-1] == ({"id": "a", "n": 1}, {"rid": "a", "m": 2})


def test_join_joiner_that_gives_none_deletes_the_row():
    driver = es.testing.Driver(text_service("inner", lambda left, right: None if right == "none" else left + right))
    for topic, value in [("left", "A"), ("right", "a"), ("right", "none"), ("right", "b")]:
        driver.send(topic, "k", value)
    assert [record.value for record in driver.records("out")] == ["Aa", None, "Ab"]


def test_join_joiner_that_raises_is_dead_lettered_once_and_the_row_is_absent():
    def joiner(left, right) -> str:
        if right == "bad":
            raise ValueError("no such thing")
        return left + right

    driver = es.testing.Driver(text_service("inner", joiner))
    for topic, value in [("left", "A"), ("right", "a"), ("right", "bad"), ("left", "B"), ("right", "c")]:
        driver.send(topic, "k", value)
    assert [record.value for record in driver.records("out")] == ["Aa", None, "Bc"]
    letters = driver.records("out.dlq")
    assert [tuple(letter.value[part] for part in ("topic", "partition", "offset")) for letter in letters] == [
        ("right", 0, 1),
        ("right", 0, 1),
    ]
    assert letters[0].value["reason"].startswith("ValueError: no such thing (")
    assert driver.counts("out")["dead"] == 2


def test_join_joiner_with_a_result_of_another_type_is_dead_lettered():
    driver = es.testing.Driver(text_service("left", lambda left, right: 5))
    driver.send("left", "k", "A")
    assert driver.table("out") == {}
    assert "wrong result" in driver.records("out.dlq")[0].value["reason"]


def test_join_of_a_table_with_itself_follows_its_changes(play):
    app = es.Service("test")
    table = app.table("t", schema=int)
    table.join(table, joiner=lambda left, right: left * right, schema=int).to("out")
    assert play(app, [("t", "a", 3, 0), ("t", "b", 2, 0), ("t", "a", 4, 1)], [1, 1]).table("out") == {"a": 16, "b": 4}


def test_join_chain_with_the_right_table_twice_gives_the_final_table(play):
    app = es.Service("test")
    left, right = app.table("left", schema=str), app.table("right", schema=str)
    first = left.join(right, how="left", joiner=dashed, schema=str)
    first.join(right, how="inner", joiner=dashed, schema=str).to("out")
    driver = play(app, [("left", "k", "A", 0), ("right", "k", "a", 1), ("right", "k", "b", 2)], [1, 1])
    assert driver.table("out") == {"k": "A-b-b"}


def test_join_state_of_a_key_deleted_on_both_sides_is_empty(play):
    history = [("left", "k", "A", 0), ("right", "k", "a", 0), ("left", "k", None, 0), ("right", "k", None, 0)]
    driver = play(text_service("outer", dashed), history, [1, 1, 1])
    assert driver.table("out") == {}
    (execution,) = driver._deployment.executions.values()
    assert execution.state_bytes() == 0


KEYS = st.sampled_from(["a", "b", "c", "d", "e"])
NUMBERS = st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf")])
TAGS = st.lists(st.sampled_from("xy"), max_size=2)
LEFT = st.none() | st.fixed_dictionaries({"n": st.none() | NUMBERS, "tags": TAGS})
RIGHT = st.none() | st.fixed_dictionaries({"n": NUMBERS, "name": st.none() | st.sampled_from(["", "é"])})
TIMES = st.integers(0, 9)
LEFTS, RIGHTS = (st.tuples(st.just(t), KEYS, values, TIMES) for t, values in (("left", LEFT), ("right", RIGHT)))
HISTORIES = st.lists(LEFTS | RIGHTS, max_size=24)
CUTS = st.lists(st.integers(1, 8), max_size=4)
SERVICES = {how: service(how) for how in HOWS}


def oracle(history, how):
    """The join of what is left of both tables at the end."""
    tables = {"left": {}, "right": {}}
    for topic, key, value, _ in history:
        tables[topic].pop(key, None)
        if value is not None:
            tables[topic][key] = value
    left, right = tables["left"], tables["right"]
    keys = {"inner": left.keys() & right.keys(), "left": left.keys(), "outer": left.keys() | right.keys()}[how]
    joined = {}
    for key in sorted(keys):
        one, other = left.get(key, {}), right.get(key, {})
        columns = {"n": one.get("n"), "tags": one.get("tags"), "n_right": other.get("n"), "name": other.get("name")}
        joined[key] = columns
    return joined


@settings(max_examples=examples(30), deadline=None)
@given(HISTORIES, CUTS, st.sampled_from(HOWS), st.integers(1, 3), st.integers(1, 3))
def test_join_any_history_however_cut_gives_the_join_of_the_final_tables(play, history, cuts, how, shards, partitions):
    driver = play(SERVICES[how], history, cuts, shards, partitions)
    # repr tells the two zeros apart and NaN equal
    assert repr(driver.table("out")) == repr(oracle(history, how))
    by_key = sorted(((r.key, repr(r.value)) for r in driver.records("out")), key=lambda pair: pair[0])
    for _, values in groupby(by_key, key=lambda pair: pair[0]):
        published = ["None", *(value for _, value in values)]
        assert all(one != other for one, other in pairwise(published))


def last_service(on):
    """Groups that show the joined row which was heard of last, on either side."""
    app = es.Service("test")
    left = app.table("left", key="id", schema={"id": str, "n": int, "fk": str})
    right = app.table("right", key="id", schema={"id": str, "m": int})
    joined = left.join(right, how="left", on=on)
    joined.group_by(es.lit("all").alias("group")).agg(es.col("n").last(), es.col("m").first()).to("out")
    return app


LAST = {on: last_service(on) for on in (None, "fk")}
SMALL = st.integers(0, 1)
ROWS = {
    "left": st.none() | st.fixed_dictionaries({"n": SMALL, "fk": st.sampled_from("ab")}),
    "right": st.none() | st.fixed_dictionaries({"m": SMALL}),
}
REPEATS = st.lists(
    st.sampled_from(["left", "right"]).flatmap(lambda t: st.tuples(st.just(t), st.sampled_from("abc"), ROWS[t], TIMES)),
    max_size=16,
)


@settings(max_examples=examples(30), deadline=None)
@given(REPEATS, CUTS, st.sampled_from([None, "fk"]), st.integers(1, 3))
def test_join_order_by_time_is_that_of_the_compacted_topics(play, history, cuts, on, shards):
    names = [(topic, key) for topic, key, _, _ in history]
    compacted = [record for place, record in enumerate(history) if record[:2] not in names[place + 1 :]]
    expected = play(LAST[on], compacted).table("out")
    assert play(LAST[on], history, cuts, shards).table("out") == expected
