from __future__ import annotations

from xml.etree import ElementTree as ET

import everstate as es
from everstate.topology.drawing import mermaid
from everstate.topology.drawing_svg import svg


def units():
    app = es.Service("s")
    words = app.stream("words", schema=str)
    counts = words.filter(lambda w: w != "<&>").group_by("value").agg(n=es.count()).to("counts")
    counts.filter(es.col("n") > 1).to("repeated")
    return app.units()


def test_mermaid_draws_a_topic_once_though_two_outputs_use_it() -> None:
    drawing = mermaid(units())
    assert drawing.count("([counts])") == 1
    assert "==>" in drawing


def test_svg_is_well_formed_and_shows_every_box_and_arrow() -> None:
    picture = ET.fromstring(svg(units()))
    space = {"s": "http://www.w3.org/2000/svg"}
    labels = [text.text for text in picture.findall(".//s:text", space)]
    assert sorted(labels) == ["aggregate", "counts", "filter", "filter", "repeated", "table", "words"]
    assert len(picture.findall("s:path", space)) == 6
