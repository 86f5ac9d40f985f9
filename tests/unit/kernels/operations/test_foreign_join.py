import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import everstate as es
from tests.effort import examples

HOWS = ("inner", "left")


def service(how, joiner=None):
    app = es.Service("test")
    orders = app.table("orders", key="id", schema={"id": str, "customer": str | None, "amount": int})
    people = app.table("people", key="customer", schema={"customer": str, "name": str, "amount": int | None})
    orders.join(people, how=how, on="customer", joiner=joiner).to("out")
    return app


def text_service(how, on):
    app = es.Service("test")
    left, right = app.table("left", schema=str), app.table("right", schema=str)
    left.join(right, how=how, on=on, joiner=lambda a, b: f"({a},{b})", schema=str).to("out")
    return app


def after_pipe(value):
    found = value.split("|")[1]
    return None if found == "null" else found


def published(driver, since):
    return {record.key: record.value for record in driver.records("out")[since:]}


# What each change publishes, for the inner and the left join.
LIFE = [
    (("left", "l1", "x|r1"), {}, {"l1": "(x|r1,None)"}),
    (("left", "l2", "y|r2"), {}, {"l2": "(y|r2,None)"}),
    (("right", "r1", "R1"), {"l1": "(x|r1,R1)"}, {"l1": "(x|r1,R1)"}),
    (("right", "r2", "R2"), {"l2": "(y|r2,R2)"}, {"l2": "(y|r2,R2)"}),
    (("right", "r3", "R3"), {}, {}),
    (("right", "r1", "R1"), {}, {}),
    # the foreign key changes: the old one is unsubscribed
    (("left", "l1", "x|r2"), {"l1": "(x|r2,R2)"}, {"l1": "(x|r2,R2)"}),
    (("right", "r1", "S1"), {}, {}),
    (("right", "r2", "S2"), {"l1": "(x|r2,S2)", "l2": "(y|r2,S2)"}, {"l1": "(x|r2,S2)", "l2": "(y|r2,S2)"}),
    # to one without a match, and to none at all
    (("left", "l1", "x|r9"), {"l1": None}, {"l1": "(x|r9,None)"}),
    (("left", "l1", "x|null"), {}, {"l1": "(x|null,None)"}),
    (("left", "l1", "z|null"), {}, {"l1": "(z|null,None)"}),
    (("left", "l1", "x|r1"), {"l1": "(x|r1,S1)"}, {"l1": "(x|r1,S1)"}),
    (("left", "l1", "x|null"), {"l1": None}, {"l1": "(x|null,None)"}),
    (("left", "l1", None), {}, {"l1": None}),
    (("left", "l1", None), {}, {}),
    (("right", "r2", None), {"l2": None}, {"l2": "(y|r2,None)"}),
    (("left", "l2", None), {}, {"l2": None}),
    (("right", "r2", "R2"), {}, {}),
]


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("how", HOWS)
def test_foreign_join_every_change_publishes_what_kafka_streams_does(how, shards):
    driver = es.testing.Driver(text_service(how, after_pipe), shards=shards)
    for change, *expected in LIFE:
        since = len(driver.records("out"))
        driver.send(*change)
        assert published(driver, since) == expected[HOWS.index(how)], change


def test_foreign_join_rows_without_a_foreign_key_are_counted_by_the_inner_join():
    driver = es.testing.Driver(text_service("inner", lambda value: None))
    driver.send("left", "l1", "x")
    assert driver.table("out") == {}
    assert driver.counts("out") == {"dropped.null_key": 1}


def test_foreign_join_function_that_raises_is_dead_lettered_and_the_row_is_absent():
    driver = es.testing.Driver(text_service("left", after_pipe))
    driver.send("left", "l1", "x|r1")
    driver.send("left", "l1", "no pipe")
    assert driver.table("out") == {}
    assert "IndexError" in driver.records("out.dlq")[0].value["reason"]


def test_foreign_join_joiner_that_raises_is_dead_lettered_for_each_left_row():
    def joiner(order, person) -> dict[str, str]:
        return {"name": person["name"].upper()}

    app = es.Service("test")
    orders = app.table("orders", key="id", schema={"id": str, "customer": str})
    people = app.table("people", key="customer", schema={"customer": str, "name": str})
    orders.join(people, how="left", on="customer", joiner=joiner, schema={"name": str}).to("out")
    driver = es.testing.Driver(app)
    driver.send("orders", "o1", {"customer": "c1"})
    driver.send("orders", "o2", {"customer": "c1"})
    driver.send("people", "c1", {"name": "ada"})
    assert driver.table("out") == {"o1": {"name": "ADA"}, "o2": {"name": "ADA"}}
    assert [letter.value["offset"] for letter in driver.records("out.dlq")] == [0, 1]


@pytest.mark.parametrize("how", HOWS)
def test_foreign_join_joiner_sees_the_keys_of_both_rows(play, how):
    app = es.Service("test")
    left = app.table("left", key=["a", "b"], schema={"a": str, "b": int, "ref": str})
    right = app.table("right", key="c", schema={"c": str, "name": str})
    seen = {"mine": str, "theirs": str | None}
    joiner = lambda one, other: {"mine": f"{one['a']}{one['b']}", "theirs": other and other["c"]}
    left.join(right, how=how, on="ref", joiner=joiner, schema=seen).to("out")
    history = [("right", "r", {"name": "x"}, 0), ("left", ("l", 1), {"ref": "r"}, 0)]
    assert play(app, history).table("out") == {("l", 1): {"mine": "l1", "theirs": "r"}}


def test_foreign_join_without_joiner_puts_columns_side_by_side(play):
    history = [("orders", "o1", {"customer": "c1", "amount": 5}, 0), ("people", "c1", {"name": "Ada", "amount": 1}, 0)]
    expected = {"customer": "c1", "amount": 5, "name": "Ada", "amount_right": 1}
    assert play(service("inner"), history).table("out") == {"o1": expected}


def test_foreign_join_of_a_composite_key_finds_its_partner(play):
    app = es.Service("test")
    left = app.table("left", key="id", schema={"id": int, "region": str, "number": int})
    right = app.table("right", key=["r", "n"], schema={"r": str, "n": int, "name": str})
    left.join(right, on=["region", "number"]).to("out")
    history = [("left", 1, {"region": "eu", "number": 4}, 0), ("right", ("eu", 4), {"name": "x"}, 0)]
    assert play(app, history, [1], 3).table("out") == {1: {"region": "eu", "number": 4, "name": "x"}}


def test_foreign_join_of_a_table_with_itself_follows_both_roles(play):
    app = es.Service("test")
    staff = app.table("staff", key="id", schema={"id": str, "boss": str | None})
    staff.join(staff, how="left", on="boss").select("boss", "boss_right").to("out")
    history = [("staff", key, {"boss": boss}, 0) for key, boss in [("a", None), ("b", "a"), ("c", "b"), ("b", "c")]]
    assert play(app, history, [1, 1, 1], 2).table("out") == {
        "a": {"boss": None, "boss_right": None},
        "b": {"boss": "c", "boss_right": "b"},
        "c": {"boss": "b", "boss_right": "c"},
    }


def test_foreign_join_change_of_a_much_referenced_right_row_reaches_every_left_row(play):
    orders = [("orders", f"o{n}", {"customer": "c1", "amount": n}, 0) for n in range(3000)]
    people = [("people", "c1", {"name": name, "amount": None}, 0) for name in ("Ada", "Bob")]
    driver = play(service("inner"), [*orders, *people], [3000, 1], 2, 2)
    table = driver.table("out")
    assert len(table) == 3000
    assert {row["name"] for row in table.values()} == {"Bob"}


def test_foreign_join_then_join_takes_rows_that_moved_between_shards(play):
    app = es.Service("test")
    left, right, third = (app.table(name, schema=str) for name in ("left", "right", "third"))
    linked = left.join(right, how="left", on=after_pipe, joiner=lambda a, b: f"{a}:{b}", schema=str)
    linked.join(third, joiner=lambda a, b: f"{a}:{b}", schema=str).to("out")
    history = [("third", "l1", "T", 0), *(("right", f"r{n}", f"R{n}", 0) for n in range(9))]
    history += [("left", "l1", f"x|r{n}", 0) for n in range(9)]
    driver = play(app, history, [10, *[1] * 9], 3)
    assert [record.value for record in driver.records("out")] == [f"x|r{n}:R{n}:T" for n in range(9)]


IDS, CUSTOMERS = st.sampled_from(["o1", "o2", "o3", "o4"]), st.sampled_from(["c1", "c2", "c3"])
ORDERS = st.none() | st.fixed_dictionaries({"customer": st.none() | CUSTOMERS, "amount": st.integers(0, 2)})
PEOPLE = st.none() | st.fixed_dictionaries({"name": st.sampled_from("xy"), "amount": st.none() | st.just(1)})
TIMES = st.integers(0, 9)
HISTORIES = st.lists(
    st.tuples(st.just("orders"), IDS, ORDERS, TIMES) | st.tuples(st.just("people"), CUSTOMERS, PEOPLE, TIMES),
    max_size=24,
)
CUTS = st.lists(st.integers(1, 8), max_size=4)
SERVICES = {how: service(how) for how in HOWS}


def oracle(history, how):
    """The join of what is left of both tables at the end."""
    tables = {"orders": {}, "people": {}}
    for topic, key, value, _ in history:
        tables[topic].pop(key, None)
        if value is not None:
            tables[topic][key] = value
    joined = {}
    for key, order in tables["orders"].items():
        person = tables["people"].get(order["customer"])
        if person is not None or how == "left":
            right = person or {"name": None, "amount": None}
            joined[key] = order | {"name": right["name"], "amount_right": right["amount"]}
    return joined


@settings(max_examples=examples(30), deadline=None)
@given(HISTORIES, CUTS, st.sampled_from(HOWS), st.integers(1, 3), st.integers(1, 3))
def test_foreign_join_any_history_however_cut_gives_the_join_of_the_final_tables(
    play, history, cuts, how, shards, partitions
):
    driver = play(SERVICES[how], history, cuts, shards, partitions)
    assert driver.table("out") == oracle(history, how)
    last = {}
    for record in driver.records("out"):
        assert record.value != last.get(record.key), "nothing is published where nothing changed"
        last[record.key] = record.value
