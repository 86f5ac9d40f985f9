from __future__ import annotations

import everstate as es
from everstate import col


def shop() -> es.Service:
    app = es.Service("shop")
    orders = app.table("orders", key="id", schema={"id": str, "customer": str, "amount": int})
    people = app.table("people", key="customer", schema={"customer": str, "name": str})
    totals = orders.filter(col("amount") > 0).group_by("customer").agg(total=col("amount").sum())
    totals.join(people, how="left").to("named-totals")
    clicks = app.stream("clicks", schema=str)
    clicks.apply(lambda v, s: v, stateful=True, schema=str).to("seen")
    clicks.group_by("key").reduce(lambda a, b: a + b).to("joined-clicks")
    return app


def test_describe_names_stages_nodes_topics_stores_and_neighbours() -> None:
    unit = shop().describe().to_json()["outputs"][0]
    assert unit["topics"] == {"read": ["orders", "people"], "written": ["named-totals", "named-totals.dlq"]}
    nodes = {node["name"]: node for stage in unit["stages"] for node in stage["nodes"]}
    assert nodes["named-totals/join"]["from"] == ["named-totals/aggregate", "people/table"]
    assert nodes["named-totals/join"]["store"] == "named-totals/join"
    assert nodes["orders/filter"]["store"] is None
    assert nodes["orders/filter"]["location"].startswith(__file__)
    assert [stage["number"] for stage in unit["stages"]] == [0, 1, 2]


def test_describe_names_order_sensitive_steps() -> None:
    outputs = {unit["output"]: unit for unit in shop().describe().to_json()["outputs"]}
    assert outputs["named-totals"]["order_sensitive"] == []
    assert outputs["seen"]["order_sensitive"] == ["clicks/stateful"]
    assert outputs["joined-clicks"]["order_sensitive"] == ["joined-clicks/aggregate"]
    assert "depends on the order of arrival: clicks/stateful" in str(shop().describe())


def test_describe_inserted_step_renames_no_other() -> None:
    def names(*, extra: bool) -> set[str]:
        app = es.Service("s")
        table = app.table("in", schema={"g": str, "n": int})
        table = table.with_columns(m=col("n") + 1) if extra else table
        table.filter(col("n") > 0).group_by("g").agg(x=es.count()).to("out")
        (unit,) = app.describe().to_json()["outputs"]
        return {node["name"] for stage in unit["stages"] for node in stage["nodes"]}

    assert names(extra=True) - names(extra=False) == {"in/with_columns"}


def test_describe_says_what_goes_by_time() -> None:
    app = es.Service("s")
    rows = app.stream("in", key="k", schema={"n": int}, idle_after="90s")
    rows.group_by("k").window(es.tumbling("1m")).agg(n=es.count()).to("per-minute")
    app.table("in", key="k", schema={"n": int}, idle_after="90s").expire(after="7d", clock="wall").to("fresh")
    found = {unit["output"]: unit["time"] for unit in app.describe().to_json()["outputs"]}
    assert found["per-minute"] == {"waits_for": ["in"], "idle_after": {"in": "1m30s"}, "wall_clock": False}
    assert found["fresh"] == {"waits_for": [], "idle_after": {}, "wall_clock": True}
    assert "passes over a quiet partition of in after 1m30s" in str(app.describe())
    assert "uses the wall clock, which is recorded every second" in str(app.describe())


def test_describe_stream_that_only_hands_its_time_on_waits_for_nothing() -> None:
    app = es.Service("s")
    clicks = app.stream("clicks", key="user", schema={"user": str})
    clicks.filter(es.col("user") != "bot").to("people")
    assert "waits" not in str(app.describe())
