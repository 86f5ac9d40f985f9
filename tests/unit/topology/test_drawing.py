from __future__ import annotations

import re
from itertools import combinations
from xml.etree import ElementTree as ET

import pytest

import everstate as es
from everstate import col
from everstate.dsl.display import drawn
from everstate.fingerprints.noted.phrases import wording
from everstate.topology.drawing import Sheet, mermaid, svg
from everstate.topology.drawing.layout import Box, layout

SPACE = {"s": "http://www.w3.org/2000/svg"}


def shop(*, outputs: int = 3) -> es.Service:
    app = es.Service("shop")
    orders = app.table("orders", key="id", schema={"id": str, "customer": str, "amount": int})
    people = app.table("people", key="customer", schema={"customer": str, "name": str})
    totals = orders.filter(col("amount") > 0).group_by("customer").agg(total=col("amount").sum()).to("totals")
    if outputs > 1:
        vips = totals.join(people).filter(col("total") > app.config("vip_from", 1000)).to("vips", partitions=4)
    if outputs > 2:
        vips.join(totals, on="customer", how="left").map(lambda row: {"a<b": 1}, schema={"a<b": int}).to("last")
        totals.group_by("total").agg(n=es.count()).to("spread")
    return app


def shown(app: es.Service, **partitions: int) -> list[str]:
    picture = ET.fromstring(drawn(app.units(), app, partitions))
    return [text.text for text in picture.findall(".//s:text", SPACE)]


def test_card_has_the_steps_of_an_output_in_the_words_of_the_user():
    words = shown(shop(outputs=1))
    start = words.index("totals")
    assert words[start : start + 13] == [
        "totals",
        "table, by customer",
        "table",
        "latest orders per id",
        "orders/table",
        "filter",
        'col("amount") > 0',
        "rows move to customer",
        "group_by",
        '"customer"',
        "agg",
        'total=col("amount").sum()',
        "totals/aggregate",
    ]


def test_arrow_says_the_key_and_the_partitions_where_they_are_known():
    words = shown(shop(), orders=3)
    assert "by id · 3 partitions" in words
    assert "by customer" in words
    assert "by customer · 4 partitions" in words


def test_rows_of_a_foreign_key_join_move_to_the_key_of_the_other_table():
    words = shown(shop())
    assert "rows move to customer" in words
    assert not any("$" in word for word in words)


def test_step_whose_text_is_not_known_is_told_from_what_it_holds():
    units = shop(outputs=2).units()
    text = svg(units)
    assert "dyn int" not in text
    words = [part.text for part in ET.fromstring(text).findall(".//s:text", SPACE)]
    assert 'col("amount") > 0' in words
    assert "how='inner'" in words


def test_long_text_is_wrapped_one_argument_a_line_and_whole_in_the_title():
    app = es.Service("s")
    rows = app.stream("in", key="id", schema={"id": str, "n": int})
    rows.group_by("id").agg(smallest=col("n").min(), largest=col("n").max(), middle=es.median(col("n"))).to("out")
    words = shown(app)
    assert words[words.index("agg") + 1 :][:3] == [
        'smallest=col("n").min()',
        'largest=col("n").max()',
        'middle=es.median(col("n"))',
    ]
    title = ET.fromstring(drawn(app.units(), app)).findall(".//s:title", SPACE)[-1].text
    assert title == 'agg smallest=col("n").min(), largest=col("n").max(), middle=es.median(col("n"))'


def test_secret_is_not_drawn():
    app = es.Service("s")
    token = app.config("api_token", "hush-hush-hush")
    app.stream("in", key="id", schema={"id": str, "t": str}).filter(col("t") == token).to("out")
    assert "hush" not in drawn(app.units(), app) + mermaid(app.units(), wording(app.units(), app.configuration))


@pytest.mark.parametrize("outputs", [1, 2, 3])
def test_no_arrow_passes_behind_a_box_and_no_box_covers_another(outputs):
    sheet = Sheet.of(shop(outputs=outputs).units())
    sizes = dict.fromkeys((*sheet.topics, *sheet.cards), (200.0, 120.0))
    places = layout(sheet, sizes, dict.fromkeys(sheet.arrows, 80.0))
    assert len(places.routes) == len(sheet.arrows)
    assert not any(_overlap(one, other) for one, other in combinations(places.boxes.values(), 2))
    for route in places.routes:
        for (x1, y1), (x2, y2) in zip(route.points, route.points[1:], strict=False):
            assert x1 <= x2
            for name, box in places.boxes.items():
                # A bend stays between the heights of its two ends.
                crossed = Box(x1 + 0.1, min(y1, y2), x2 - x1 - 0.2, abs(y2 - y1) + 0.1)
                assert not _overlap(crossed, box), (route.arrow, name)


def _overlap(one: Box, other: Box) -> bool:
    beside = one.x + one.width <= other.x or other.x + other.width <= one.x
    return not (beside or one.y + one.height <= other.y or other.y + other.height <= one.y)


def test_svg_has_both_colours_a_legend_and_no_markup_from_names():
    text = drawn(shop().units(), shop())
    assert "@media (prefers-color-scheme:dark)" in text
    assert "keeps state, in this store" in text
    assert "a<b" not in re.sub(r"<title>.*?</title>", "", text)
    ET.fromstring(text)


def test_drawing_of_a_service_without_outputs_is_only_a_legend():
    assert "a topic" in [part.text for part in ET.fromstring(svg([])).findall(".//s:text", SPACE)]


def test_mermaid_draws_an_output_once_though_another_reads_it():
    app = shop()
    drawing = mermaid(app.units(), wording(app.units(), app.configuration), {"orders": 3})
    assert drawing.count('"totals (table, by customer)"') == 1
    assert '["filter col(#quot;amount#quot;) #gt; 0"]' in drawing
    assert '-->|"by id · 3 partitions"|' in drawing
