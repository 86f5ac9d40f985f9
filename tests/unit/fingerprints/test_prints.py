from __future__ import annotations

import json
import random

import pytest

import everstate as es
from everstate import col
from everstate.errors import LogError
from everstate.fingerprints.outputs import print_unit
from everstate.fingerprints.prints import UnitPrint


@pytest.fixture
def text():
    app = es.Service("shop")
    orders = app.table("orders", key="id", schema={"id": str, "customer": str, "cents": int})
    orders.filter(col("cents") > 5).group_by("customer").agg(total=col("cents").sum()).to("totals")
    return print_unit(app.units()[0], policy="dead-letter", settings={}).to_json()


def places(value, path=()):
    """Everywhere that something can be taken out or replaced."""
    found = [(*path, key) for key in (value if isinstance(value, dict) else range(len(value)))]
    inner = [(place, value[place[-1]]) for place in found]
    return found + [deeper for place, part in inner if isinstance(part, (dict, list)) for deeper in places(part, place)]


def damaged(text, rng):
    document = json.loads(text)
    *path, last = rng.choice(places(document))
    holder = document
    for key in path:
        holder = holder[key]
    if rng.random() < 0.4:
        del holder[last]
    else:
        holder[last] = rng.choice([None, 7, "x", [], {}, [None], {"unheard_of": 1}])
    return json.dumps(document)


def test_print_that_is_damaged_anywhere_is_read_or_named(text):
    rng = random.Random(1)
    said = []
    for _ in range(400):
        try:
            UnitPrint.from_json(damaged(text, rng))
        except LogError as error:
            said.append(str(error))
    assert len(said) > 50
    assert all("the description of a generation in the registry is damaged" in each for each in said)


@pytest.mark.parametrize("content", ["", "{}", "[]", "null", '"x"', '{"nodes": 5}'])
def test_print_that_is_no_such_document_is_named(content):
    with pytest.raises(LogError, match="is damaged"):
        UnitPrint.from_json(content)
