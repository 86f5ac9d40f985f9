from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

import everstate as es
from everstate.kernels.ledger import Ledger
from everstate.kernels.operations.user_state import decode
from everstate.kernels.pages.page_store import MemoryPages
from everstate.kernels.shard import Shard
from tests.effort import examples

SCHEMA = {"id": str, "n": int}


def service(call, mode="apply", schema=None):
    app = es.Service("test")
    stream = app.stream("in", key="id", schema=SCHEMA)
    if mode == "apply":
        stream.apply(call, stateful=True, schema=schema or {"total": int}).to("out")
    else:
        getattr(stream, mode)(call, stateful=True).to("out")
    return app


def values(driver):
    return [(record.key, record.value) for record in driver.records("out")]


def held(driver):
    """All states in the driver's shards, by key."""
    found = {}
    for execution in driver._deployment.executions.values():
        unit, kept = execution.output.unit, execution.output.folder
        for state in kept.states(kept.last + 1, execution.output.generation.shards):
            pages = MemoryPages()
            pages.blocks = dict(state.blocks)
            book = next((b for b in state.books.values() if b), None)
            shard = Shard(pages, book, Ledger(()))
            for node, kind in enumerate(unit.nodes):
                if kind.operation == "stateful":
                    found |= {
                        row["$key"].decode(): decode(row["state"])
                        for row in shard.keyed(unit.stores[node]).scan().to_dicts()
                    }
    return found


def running_total(row, state):
    total = state.get("total", 0) + row["n"]
    state.set("total", total)
    return {"total": total}


def test_stateful_apply_keeps_state_by_key_across_batches(play):
    history = [("in", "a", {"n": 1}, 0), ("in", "b", {"n": 5}, 0), ("in", "a", {"n": 2}, 0), ("in", "a", {"n": 3}, 0)]
    for cuts in ([], [1, 1, 1], [2]):
        assert sorted(values(play(service(running_total), history, cuts, 2)), key=repr) == [
            ("a", {"total": 1}),
            ("a", {"total": 3}),
            ("a", {"total": 6}),
            ("b", {"total": 5}),
        ]


def test_stateful_filter_keeps_the_rows_for_which_the_function_is_true(play):
    def is_new(row, state):
        seen = state.exists(str(row["n"]))
        state.set(str(row["n"]), True)
        return not seen

    history = [("in", "a", {"n": n}, 0) for n in (1, 2, 1, 2, 3)]
    assert values(play(service(is_new, "filter"), history, [2])) == [("a", {"n": n}) for n in (1, 2, 3)]


def test_stateful_update_changes_the_row_in_place_and_ignores_the_result(play):
    def numbered(row, state):
        row["n"] = state.get("count", 0)
        state.set("count", row["n"] + 1)
        return "ignored"

    history = [("in", "a", {"n": 7}, 0), ("in", "a", {"n": 7}, 0)]
    assert values(play(service(numbered, "update"), history)) == [("a", {"n": 0}), ("a", {"n": 1})]


def test_stateful_row_without_a_key_is_dropped_and_counted(play):
    driver = play(service(running_total), [("in", None, {"n": 1}, 0), ("in", "a", {"n": 1}, 0)])
    assert values(driver) == [("a", {"total": 1})]
    assert driver.counts("out") == {"dropped.null_key": 1}


def test_stateful_function_that_raises_leaves_no_trace_in_the_state(play):
    def call(row, state):
        total = state.get("total", 0) + row["n"]
        state.set("total", total)
        state.delete("absent")
        if row["n"] == 13:
            raise ValueError("unlucky")
        return {"total": total}

    history = [("in", "a", {"n": n}, 0) for n in (1, 13, 2)]
    driver = play(service(call), history)
    assert values(driver) == [("a", {"total": 1}), ("a", {"total": 3})]
    letter = driver.records("out.dlq")[0].value
    assert (letter["offset"], letter["reason"].startswith("ValueError: unlucky (")) == (1, True)


def test_stateful_result_that_does_not_fit_leaves_no_trace_in_the_state(play):
    def call(row, state):
        state.set("total", state.get("total", 0) + row["n"])
        return {"total": "much"} if row["n"] == 13 else {"total": state.get("total")}

    driver = play(service(call), [("in", "a", {"n": n}, 0) for n in (1, 13, 2)])
    assert values(driver) == [("a", {"total": 1}), ("a", {"total": 3})]
    assert "wrong result" in driver.records("out.dlq")[0].value["reason"]


def test_stateful_function_that_changes_the_key_is_dead_lettered(play):
    driver = play(service(lambda row, state: row.update(id="b"), "update"), [("in", "a", {"n": 1}, 0)])
    assert values(driver) == []
    assert "changed the key" in driver.records("out.dlq")[0].value["reason"]


def test_stateful_value_that_state_cannot_hold_is_dead_lettered_with_a_reason(play):
    def call(row, state):
        state.set("x", {1, 2})
        return {"total": 0}

    driver = play(service(call), [("in", "a", {"n": 1}, 0)])
    assert "StateValueError" in driver.records("out.dlq")[0].value["reason"]
    assert held(driver) == {}


def test_stateful_key_whose_state_became_empty_is_removed(play):
    def call(row, state):
        if row["n"]:
            state.set("n", row["n"])
        else:
            state.delete("n")
        return {"total": 0}

    history = [("in", "a", {"n": 1}, 0), ("in", "b", {"n": 2}, 0), ("in", "a", {"n": 0}, 0)]
    driver = play(service(call), history, [1, 1])
    assert held(driver) == {"b": {"n": 2}}


def test_stateful_scalar_stream_gives_the_function_bare_values(play):
    app = es.Service("test")

    def latest(value, state) -> str:
        before = state.get("before", "")
        state.set("before", value)
        return before + value

    app.stream("in", schema=str).apply(latest, stateful=True).to("out")
    assert values(play(app, [("in", "k", text, 0) for text in "abc"])) == [("k", "a"), ("k", "ab"), ("k", "bc")]


def test_stateful_values_of_the_row_can_be_remembered(play):
    app = es.Service("test")
    schema = {"id": str, "price": Decimal, "tags": list[str], "by": dict[str, int]}

    def previous(row, state):
        before = state.get("row", {"price": Decimal(0), "tags": [], "by": {}})
        state.set("row", {name: row[name] for name in ("price", "tags", "by")})
        return before

    kept = {name: kind for name, kind in schema.items() if name != "id"}
    app.stream("in", key="id", schema=schema).apply(previous, stateful=True, schema=kept).to("out")
    row = {"price": Decimal("1.5"), "tags": ["x"], "by": {"a": 1}}
    driver = play(app, [("in", "k", row, 0), ("in", "k", row, 0)], [1])
    assert values(driver)[1] == ("k", row)


def journal(row, state):
    entries = state.get("entries", [])
    entries.append(row["n"])
    state.set("entries", entries)
    return {"entries": entries}


JOURNAL = service(journal, schema={"entries": list[int]})
ROWS = st.lists(st.tuples(st.just("in"), st.sampled_from("abc"), st.integers(0, 9), st.integers(0, 9)), max_size=20)


@settings(max_examples=examples(30), deadline=None)
@given(ROWS, st.lists(st.integers(1, 6), max_size=4), st.integers(1, 3), st.integers(1, 3))
def test_stateful_any_stream_however_cut_sees_each_key_in_order(play, history, cuts, shards, partitions):
    driver = play(JOURNAL, [(t, key, {"n": n}, ts) for t, key, n, ts in history], cuts, shards, partitions)
    expected = []
    for place, (_, key, _, _) in enumerate(history):
        entries = [n for _, other, n, _ in history[: place + 1] if other == key]
        expected.append((key, {"entries": entries}))
    assert sorted(values(driver), key=repr) == sorted(expected, key=repr)
