"""How an output is cut into stages, and what its steps know of those downstream."""

from __future__ import annotations

import everstate as es


def test_unit_follows_order_only_in_front_of_operations_that_order():
    def table_is_followed(build):
        app = es.Service("test")
        build(app.table("in", key="id", schema={"id": str, "g": str, "v": int})).to("out")
        (unit,) = app.units()
        return unit.followed_by_order[1]

    v = es.col("v")
    assert not table_is_followed(lambda table: table)
    assert not table_is_followed(lambda table: table.group_by("g").agg(v.sum()))
    assert table_is_followed(lambda table: table.group_by("g").agg(v.first()))
    assert table_is_followed(lambda table: table.filter(v > 0).group_by("g").agg(es.collect(v).alias("all")))
    assert table_is_followed(lambda table: table.rekey("g"))
