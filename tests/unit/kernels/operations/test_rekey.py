from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars import col

import everstate as es
from everstate.kernels.operations import rekey
from tests.effort import examples

SCHEMA = {"id": str, "new": str | None, "x": int}


def rekeyed() -> Any:
    return es.Service("s").table("in", key="id", schema=SCHEMA).rekey("new")


values = st.fixed_dictionaries({"new": st.sampled_from(["A", "B", None]), "x": st.integers(0, 3)})
histories = st.lists(
    st.lists(st.tuples(st.sampled_from("abcde"), values | st.none(), st.integers(0, 3)), min_size=2, max_size=6),
    min_size=3,
    max_size=7,
)


def one_more(total, row):
    return {"n": total["n"] + 1}


def one_less(total, row):
    return {"n": total["n"] - 1}


@settings(max_examples=examples(50), deadline=None, suppress_health_check=list(HealthCheck))
@given(history=histories, layout=st.tuples(st.integers(1, 3), st.integers(1, 2)))
def test_rekey_random_table_highest_timestamp_and_old_key_wins(flow, history, layout):
    run = flow(rekey, rekeyed(), *layout)
    latest: dict[str, tuple[dict[str, Any] | None, int]] = {}
    for batch in history:
        latest |= {key: (value, ts) for key, value, ts in batch}
        run.send(*batch)
        wanted: dict[bytes, dict[str, Any]] = {}
        for _, key in sorted((ts, key) for key, (value, ts) in latest.items() if value is not None):
            value = latest[key][0]
            if value is not None and value["new"] is not None:
                wanted[value["new"].encode()] = {"new": value["new"], "id": key, "x": value["x"]}
        assert run.table == wanted


def test_rekey_deleted_winner_brings_the_next_back(flow):
    run = flow(rekey, rekeyed())
    run.send(("a", {"new": "A", "x": 1}, 1), ("b", {"new": "A", "x": 2}, 2))
    back = run.send(("b", None, 9))
    assert back.select("$op", "x", "$ts").rows() == [(-1, 2, 9), (1, 1, 1)]


def test_rekey_change_of_a_row_that_does_not_win_yields_and_reads_little(flow):
    run = flow(rekey, rekeyed())
    run.send(*((f"{number:05}", {"new": "A", "x": number}, number) for number in range(3000)))
    run.pages[0].reset_counts()
    assert run.send(("00010", {"new": "A", "x": 7}, 10)).is_empty()
    assert run.pages[0].gets < len(run.pages[0].blocks) / 2
    assert run.values("x") == {"A": 2999}


def test_rekey_function_that_raises_makes_a_dead_letter_and_none_drops_the_row(flow):
    def first_letter(row: dict[str, Any]) -> str | None:
        if row["x"] < 0:
            raise ValueError("negative")
        return row["new"]

    table = es.Service("s").table("in", key="id", schema=SCHEMA).rekey(first_letter)
    run = flow(rekey, table)
    run.send(("a", {"new": "A", "x": 1}, 1), ("b", {"new": "B", "x": -1}, 2), ("c", {"new": None, "x": 1}, 3))
    assert list(run.table) == [b"A"]
    assert run.ledger.letters()["$off"].to_list() == [1]
    assert run.ledger.counts["dropped.null_key"] == 1


def test_rekey_composite_key_is_a_json_array(flow):
    table = es.Service("s").table("in", key="id", schema=SCHEMA).rekey("new", y=col("x") + 1)
    run = flow(rekey, table)
    run.send(("a", {"new": "A", "x": 1}, 1))
    assert list(run.table) == [b'["A",2]']


@pytest.mark.parametrize(
    "grouped",
    [
        lambda rows: rows.group_by("g").agg(n=es.count()),
        lambda rows: rows.group_by("g").aggregate(lambda: {"n": 0}, one_more, one_less, schema={"n": int}),
        lambda rows: rows.group_by("g").aggregate(lambda: {"n": 0}, one_more, schema={"n": int}),
    ],
    ids=["agg", "aggregate with remove", "aggregate without remove"],
)
@pytest.mark.parametrize("cuts", [(), (3,), (1, 1, 1)])
def test_rekey_of_groups_goes_by_the_contributions_they_still_have(play, grouped, cuts):
    app = es.Service("test")
    grouped(app.table("in", key="id", schema={"id": str, "g": str})).rekey("n").to("out")
    history = [
        ("in", "a", {"g": "A"}, 5),
        ("in", "b", {"g": "B"}, 7),
        ("in", "c", {"g": "A"}, 10),
        ("in", "c", None, 20),
    ]
    assert play(app, history, cuts).table("out") == {1: {"g": "B"}}
