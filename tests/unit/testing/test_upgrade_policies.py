"""Upgrades that publish nothing, carry state on, are forced, or have to be approved; side effects."""

from __future__ import annotations

import random

import pytest
from polars import col

import everstate as es
from everstate.errors import ApprovalNeededError, ConfigurationError, FingerprintError
from tests.unit.testing.versions import categories, kinds, written

NUMBER = {"id": str, "g": str, "x": float}


def numbers(app, topic="in"):
    return app.table(topic, key="id", schema=NUMBER)


def filled(app, count=40, **options):
    driver = es.testing.Driver(app, **options)
    chance = random.Random(5)
    for _ in range(4):
        with driver.batch():
            for _ in range(count // 4):
                value = {"g": f"g{chance.randint(0, 4)}", "x": chance.uniform(-1e6, 1e6)}
                driver.send("in", f"k{chance.randint(0, count)}", value, ts=chance.randint(0, 9))
    return driver


# -- nothing changes --------------------------------------------------------------------------------------------------


def floats(app):
    third = numbers(app).with_columns(x=col("x") / 3)
    third.group_by("g").agg(total=col("x").sum(), mean=col("x").mean(), spread=col("x").std()).to("out")


def test_upgrade_to_the_same_version_does_nothing_and_keeps_the_generation():
    def version():
        app = es.Service("s")
        floats(app)
        return app

    driver = filled(version(), partitions=3)
    upgrade = driver.upgrade(version())
    assert (kinds(upgrade), categories(upgrade), upgrade.records) == ({"out": "nothing"}, [], [])
    driver.send("in", "new", {"g": "g9", "x": 1.0})
    assert driver.records("out")[-1].headers["es-generation"] == b"1"


def test_upgrade_forced_without_a_change_writes_no_record_of_float_results():
    def version():
        app = es.Service("s")
        floats(app)
        return app

    driver = filled(version(), partitions=3, shards=2)
    for _ in range(2):
        upgrade = driver.upgrade(version(), recalculate=["out"])
        assert kinds(upgrade) == {"out": "recalculate"}
        assert (upgrade.records, upgrade.dead_letters) == ([], [])
    driver.send("in", "new", {"g": "g9", "x": 1.0})
    assert driver.records("out")[-1].headers["es-generation"] == b"3"


def test_upgrade_to_another_value_of_a_setting_is_a_change_of_configuration(monkeypatch):
    def version():
        app = es.Service("s")
        numbers(app).filter(col("x") > app.config("least", 0)).select("x").to("out")
        return app

    driver = es.testing.Driver(version())
    for key, x in (("a", 1.0), ("b", 9.0)):
        driver.send("in", key, {"g": "p", "x": x})
    monkeypatch.setenv("EVERSTATE_CONFIG_LEAST", "5")
    upgrade = driver.upgrade(version())
    assert categories(upgrade) == ["changed configuration"]
    assert written(upgrade) == [("a", None)]


def test_upgrade_that_recalculates_what_there_is_not_is_refused():
    app = es.Service("s")
    floats(app)
    with pytest.raises(ConfigurationError, match="other"):
        es.testing.Driver(app).upgrade(app, recalculate=["other"])


def test_upgrade_to_a_function_that_cannot_be_seen_is_refused_and_the_old_version_goes_on():
    def version(fn):
        app = es.Service("s")
        numbers(app).map(fn, schema=float).to("out")
        return app

    driver = es.testing.Driver(version(lambda row: row["x"]))
    with pytest.raises(FingerprintError):
        driver.upgrade(version(lambda row: row["x"] + random.random()))
    driver.send("in", "a", {"g": "p", "x": 1.0})
    assert driver.table("out") == {"a": 1.0}


# -- side effects -----------------------------------------------------------------------------------------------------


SEEN: list[str] = []


def watched(least, *, peeks=True):
    app = es.Service("s")
    table = numbers(app).filter(col("x") >= least)
    if peeks:
        table = table.peek(lambda row: SEEN.append(row["id"]))
    table.group_by("g").agg(n=es.count()).to("out")
    return app


@pytest.fixture
def seen():
    SEEN.clear()
    return SEEN


def test_upgrade_does_not_repeat_side_effects_and_later_records_have_them(seen):
    driver = es.testing.Driver(watched(0))
    driver.send("in", "a", {"g": "p", "x": 1.0})
    driver.send("in", "b", {"g": "p", "x": 9.0})
    assert seen == ["a", "b"]
    assert written(driver.upgrade(watched(5))) == [("p", {"n": 1})]
    assert seen == ["a", "b"]
    driver.send("in", "c", {"g": "p", "x": 9.0})
    assert seen == ["a", "b", "c"]


def test_upgrade_that_only_adds_or_removes_a_side_effect_keeps_the_state(seen):
    driver = es.testing.Driver(watched(0, peeks=False))
    driver.send("in", "a", {"g": "p", "x": 1.0})
    for peeks in (True, False):
        assert kinds(driver.upgrade(watched(0, peeks=peeks))) == {"out": "nothing"}
        driver.send("in", f"b{peeks}", {"g": "p", "x": 9.0})
    assert driver.table("out") == {"p": {"n": 3}}
    assert seen == ["bTrue"]


# -- continue -------------------------------------------------------------------------------------------------------


def carried(build, **options):
    app = es.Service("s", **options)
    build(app.stream("in", key="id", schema=NUMBER)).to("out", on_change="continue")
    return app


def send(driver, *values):
    for x in values:
        driver.send("in", "a", {"g": "p", "x": x})


def test_upgrade_that_continues_shows_new_logic_to_new_records_only():
    def version(least, *, twice=False):
        def build(stream):
            kept = stream.filter(col("x") > least)
            kept = kept.filter(col("x") < 100) if twice else kept
            return kept.group_by("g").agg(total=col("x").sum())

        return carried(build)

    driver = es.testing.Driver(version(0))
    send(driver, 1.0, 2.0)
    upgrade = driver.upgrade(version(5, twice=True))
    assert kinds(upgrade) == {"out": "continue"}
    assert upgrade.records == []
    send(driver, 3.0, 7.0, 700.0)
    assert driver.table("out") == {"p": {"total": 10.0}}
    assert driver.records("out")[-1].headers["es-generation"] == b"1"


def test_upgrade_that_continues_takes_the_new_policy():
    def failing(row) -> float:
        return 1.0 / row["x"]

    def version(on_error):
        return carried(lambda s: s.map(failing, schema=float), on_error=on_error)

    driver = es.testing.Driver(version("skip"))
    send(driver, 0.0)
    assert kinds(driver.upgrade(version("dead-letter"))) == {"out": "continue"}
    send(driver, 0.0)
    assert len(driver.records("out.dlq")) == 1


def test_upgrade_whose_state_does_not_serve_is_recalculated_although_it_continues():
    driver = es.testing.Driver(carried(lambda s: s.group_by("g").agg(total=col("x").sum())))
    send(driver, 1.0, 2.0)
    upgrade = driver.upgrade(carried(lambda s: s.group_by("id").agg(total=col("x").sum())))
    assert kinds(upgrade) == {"out": "recalculate"}
    assert written(upgrade) == [("a", {"total": 3.0}), ("p", None)]


def joined(first, second):
    app = es.Service("s")
    tables = {name: numbers(app, name) for name in (first, second)}
    tables[first].join(tables[second], how="left").to("out", on_change="continue")
    return app


def test_upgrade_that_swaps_the_sides_of_a_join_does_not_take_one_sides_state_for_the_others():
    driver = es.testing.Driver(joined("one", "two"))
    driver.send("one", "a", {"g": "one", "x": 1.0})
    driver.send("two", "a", {"g": "two", "x": 2.0})
    assert kinds(driver.upgrade(joined("two", "one"))) == {"out": "recalculate"}
    driver.send("one", "a", {"g": "one", "x": 3.0})
    assert driver.table("out") == {"a": {"g": "two", "x": 2.0, "g_right": "one", "x_right": 3.0}}


def test_upgrade_after_the_last_state_of_a_table_continues():
    def version(least):
        app = es.Service("s")
        counts = numbers(app).group_by("g").agg(n=es.count())
        counts.filter(col("n") >= least).to("out", on_change="continue")
        return app

    driver = es.testing.Driver(version(1))
    driver.send("in", "a", {"g": "p", "x": 1.0})
    assert kinds(driver.upgrade(version(2))) == {"out": "continue"}
    driver.send("in", "b", {"g": "p", "x": 1.0})
    driver.send("in", "c", {"g": "q", "x": 1.0})
    assert driver.table("out") == {"p": {"n": 2}}


# -- approval ---------------------------------------------------------------------------------------------------------


def kept(least, topic="out"):
    app = es.Service("s")
    numbers(app).filter(col("x") >= least).to("kept").select("x").filter(col("x") >= least - 1).to(topic)
    return app


def hundred(app):
    driver = es.testing.Driver(app)
    with driver.batch():
        for number in range(100):
            driver.send("in", f"k{number}", {"g": "p", "x": float(number)})
    return driver


@pytest.mark.parametrize("approval", ["wait", "fail"])
@pytest.mark.parametrize(
    ("least", "message"),
    [(21, "21 of 100 keys of kept"), (1000, "Every key of kept would be tombstoned .100 keys")],
)
def test_upgrade_that_removes_much_is_not_done_unless_approved(approval, least, message):
    driver = hundred(kept(0))
    before = driver.records("kept")
    with pytest.raises(ApprovalNeededError, match=message):
        driver.upgrade(kept(least), approval=approval)
    assert driver.records("kept") == before
    driver.send("in", "new", {"g": "p", "x": 0.5})
    assert driver.table("out")["new"] == {"x": 0.5}
    assert min(driver.upgrade(kept(least)).plan.actions, key=lambda action: action.output).kind == "recalculate"
    assert len(driver.table("kept")) == max(100 - least, 0)


def test_upgrade_that_removes_the_most_that_is_allowed_needs_no_approval():
    assert len(hundred(kept(0)).upgrade(kept(20), approval="wait").records) == 20 + 20


def test_upgrade_refused_in_the_middle_of_a_chain_leaves_all_of_it():
    def version(least, most):
        app = es.Service("s")
        numbers(app).filter(col("x") >= least).to("kept").filter(col("x") < most).to("out")
        return app

    driver = hundred(version(0, 100))
    before = [driver.records(topic) for topic in ("kept", "out")]
    with pytest.raises(ApprovalNeededError, match="of out "):
        driver.upgrade(version(10, 50), approval="wait")
    assert [driver.records(topic) for topic in ("kept", "out")] == before
    driver.send("in", "new", {"g": "p", "x": 60.0})
    assert "new" in driver.table("out")


def test_upgrade_that_retires_an_output_has_to_be_approved():
    driver = hundred(kept(0))
    with pytest.raises(ApprovalNeededError, match="no longer declared"):
        driver.upgrade(kept(0, topic="other"), approval="wait")
    upgrade = driver.upgrade(kept(0, topic="other"), approval="approve")
    assert kinds(upgrade) == {"kept": "nothing", "other": "begin", "out": "retire"}


def test_upgrade_that_cannot_decode_what_the_active_version_could_has_to_be_approved():
    def version(column):
        app = es.Service("s")
        app.table("in", key="id", schema={"id": str, column: float}).to("out")
        return app

    driver = es.testing.Driver(version("x"))
    driver.send("in", "a", {"x": 1.0})
    driver.send("in", "b", b'{"x": 2.0, "y": 3.0}')
    with pytest.raises(ApprovalNeededError, match="1 record that the active version accepts would be dead-lettered"):
        driver.upgrade(version("y"), approval="wait")
    upgrade = driver.upgrade(version("y"))
    assert written(upgrade) == [("a", None), ("b", {"y": 3.0})]
    assert [letter.value["offset"] for letter in upgrade.dead_letters] == [0]


def test_upgrade_with_an_unknown_policy_is_refused():
    app = es.Service("s")
    floats(app)
    with pytest.raises(ConfigurationError, match="approve, wait, fail"):
        es.testing.Driver(app).upgrade(app, approval="maybe")


@pytest.mark.parametrize("key", ["id", ["id"], col("id").alias("id"), ["shop", "id"]])
def test_upgrade_stream_whose_records_have_names_is_corrected_as_a_table(key) -> None:
    def version(least: int) -> es.Service:
        app = es.Service("shop")
        orders = app.stream("orders", key="shop", schema={"shop": str, "id": str, "amount": int})
        orders.filter(col("amount") >= least).to("large", key=key)
        return app

    driver = es.testing.Driver(version(10), partitions=3)
    for number in range(20):
        driver.send("orders", f"s{number % 3}", {"id": f"o{number % 15}", "amount": number}, ts=number)
    before = driver.table("large")
    upgraded = driver.upgrade(version(13))
    after = driver.table("large")
    assert len(upgraded.records) == sum(after.get(name) != row for name, row in before.items()) > 0
    fresh = es.testing.Driver(version(13), partitions=3)
    for number in range(20):
        fresh.send("orders", f"s{number % 3}", {"id": f"o{number % 15}", "amount": number}, ts=number)
    assert after == fresh.table("large")
