from __future__ import annotations

import base64
import re

import everstate as es


def shop():
    app = es.Service("shop")
    orders = app.table("orders", key="id", schema={"id": str, "amount": float, "note": str | None})
    return app, orders


def drawing(html):
    return base64.b64decode(re.search(r"base64,([^\"]+)\"", html)[1]).decode()


def test_flow_shows_its_kind_key_and_columns():
    _, orders = shop()
    assert repr(orders) == "Table of service shop, key id: amount float, note text or null"
    assert str(orders.select("note")) == "Table of service shop, key id: note text or null"


def test_service_shows_its_outputs():
    app, orders = shop()
    assert repr(app) == "Service('shop') with no outputs"
    orders.to("copy")
    orders.select("note").to("notes")
    assert repr(app) == "Service('shop') with outputs copy, notes"


def test_notebook_shows_columns_key_and_the_drawing():
    app, orders = shop()
    shown = orders.filter(es.col("amount") > 1)._repr_mimebundle_()
    assert shown["text/plain"] == repr(orders)
    assert re.findall(r"<td[^>]*>([^<]*)</td>", shown["text/html"])[:3] == ["id", "text", "key"]
    assert "filter" in drawing(shown["text/html"])
    orders.to("copy")
    picture = drawing(app._repr_mimebundle_(include=None, exclude=None)["text/html"])
    assert picture.startswith("<svg")
    assert "copy" in picture
    assert len(app.outputs) == 1, "looking declares nothing"


def test_notebook_takes_no_name_for_markup():
    app = es.Service("shop")
    stream = app.stream("words", schema={"<b>": str})
    assert "<b>" not in stream._repr_mimebundle_()["text/html"]
