"""Prints that earlier versions have stored, read as if they had been made today."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from polars import col

import everstate as es
from everstate.fingerprints import print_unit
from everstate.fingerprints.prints import UnitPrint
from everstate.topology.traits import Need

ORDER = {"id": str, "customer": str, "amount": int, "note": str | None}


def of_rows(flow):
    flow = flow.filter(col("amount") > 0).with_columns(twice=col("amount") * 2).rename({"twice": "double"})
    return (
        flow.drop("double").select("customer", "amount").map(lambda row: row, schema={"customer": str, "amount": int})
    )


def joined(orders):
    totals = orders.group_by("customer").agg(total=col("amount").sum())
    return orders.join(totals, on="customer").rekey("customer").join(totals, how="left")


FLOWS = {
    "rows of a table": ("table", of_rows),
    "rows of a stream": ("stream", lambda f: of_rows(f).merge(of_rows(f)).rekey("customer")),
    "many rows": ("stream", lambda f: f.flat_map(lambda row: [row], schema=ORDER)),
    "aggregate of a table": ("table", lambda f: f.group_by("customer").agg(n=es.count(), last=col("amount").last())),
    "aggregate of a stream": ("stream", lambda f: f.group_by("customer").agg(n=es.count())),
    "fold of a table": ("table", lambda f: f.group_by("customer").reduce(max)),
    "fold of a stream": ("stream", lambda f: f.group_by("customer").reduce(max)),
    "function": ("stream", lambda f: f.apply(lambda row, state: row, stateful=True, schema=ORDER)),
    "joins": ("table", joined),
}


def described(source, build):
    app = es.Service("shop")
    build(getattr(app, source)("orders", key="id", schema=ORDER)).to("out")
    return print_unit(app.units()[0], policy="dead-letter", settings={})


def as_stored_before(written):
    """The JSON that the first versions have stored."""
    known = json.loads(written.to_json())
    for node in known["nodes"]:
        del node["kind"], node["traits"]
        node["columns"] = [
            f"{column['name']}: {column['type']}{'?' if column['nullable'] else ''}"
            + (f" = {column['default']}" if column["default"] else "")
            for column in node["columns"]
        ]
    return json.dumps(known)


@pytest.mark.parametrize("flow", FLOWS)
def test_earlier_print_has_the_kinds_traits_and_columns_of_one_made_today(flow):
    made = described(*FLOWS[flow])
    read = UnitPrint.from_json(as_stored_before(made))
    assert read.fingerprint == made.fingerprint
    for was, now in zip(read.nodes, made.nodes, strict=True):
        assert was.kind == now.kind
        # Whether an aggregate orders rows depends on its calls, which plans do not ask for.
        assert was.traits == replace(now.traits, orders_rows=was.traits.orders_rows)
        assert was.has_columns_of(now)


@pytest.mark.parametrize("flow", FLOWS)
def test_print_stored_today_is_read_as_it_was_written(flow):
    made = described(*FLOWS[flow])
    assert UnitPrint.from_json(made.to_json()) == made


def test_earlier_print_with_a_default_has_it_in_its_column():
    written = json.loads(as_stored_before(described(*FLOWS["function"])))
    written["nodes"][0]["columns"] = ['note: text? = "a = b?"', "at: {a: integer, b: text}", "n: integer = 3"]
    columns = UnitPrint.from_json(json.dumps(written)).nodes[0].columns
    assert [(c.name, c.type, c.nullable, c.default) for c in columns] == [
        ("note", "text", True, '"a = b?"'),
        ("at", "{a: integer, b: text}", False, None),
        ("n", "integer", False, "3"),
    ]


def test_print_of_an_operation_that_nobody_knows_needs_every_record():
    written = json.loads(as_stored_before(described(*FLOWS["aggregate of a table"])))
    written["nodes"][-2]["operation"] = "sessions"
    node = UnitPrint.from_json(json.dumps(written)).nodes[-2]
    assert (node.traits.need, node.traits.keeps_state, node.traits.converts) == (Need.ALL, True, False)


def test_print_of_a_later_version_with_more_traits_is_read():
    written = json.loads(described(*FLOWS["joins"]).to_json())
    written["nodes"][0]["traits"]["levitates"] = True
    assert UnitPrint.from_json(json.dumps(written)) == described(*FLOWS["joins"])
