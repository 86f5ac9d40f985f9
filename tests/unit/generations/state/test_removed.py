from __future__ import annotations

import json

import polars as pl
import pytest

import everstate as es
from everstate.errors import LogDeniedError
from everstate.generations.state.removed import has_removals, held_back
from everstate.log.records import HEADERS

SCHEMA = {"key": pl.Binary, "value": pl.Binary, "ts": pl.Int64, "headers": HEADERS}


def frame(*rows):
    """Rows of (key, ts, header), which is a pair of name and value or none."""
    headers = [None if header is None else [{"name": header[0], "value": header[1]}] for _, _, header in rows]
    content = [(key, b"1", ts, header) for (key, ts, _), header in zip(rows, headers, strict=True)]
    return pl.DataFrame(content, schema=SCHEMA, orient="row")


def cause(place):
    return ("es-cause", place.encode())


def read(ends, identity="one", **more):
    known = {"read": json.dumps({"in": {str(p): end for p, end in ends.items()}}), "topics": {"in": identity}, **more}
    return ("es-read", json.dumps(known).encode())


NOTHING = frame()


def kept(table, topic, removals, ids=None):
    return held_back(table, topic, removals, {"in": "one"} if ids is None else ids)["key"].to_list()


@pytest.mark.parametrize(
    ("place", "back"),
    [("in/0/4", False), ("in/0/5", True), ("in/1/0", True), ("in/2/0", True)],
)
def test_key_comes_back_if_its_cause_had_not_been_read_when_it_was_removed(place, back):
    # The time says nothing: rows that come out of order have others in a recalculation.
    removals = frame((b"a", 10, read({0: 5, 1: 0})))
    assert kept(frame((b"a", 10 if back else 99, cause(place))), NOTHING, removals) == ([b"a"] if back else [])


def test_key_that_is_on_the_topic_is_not_removed():
    table, removals = frame((b"a", 5, cause("in/0/0"))), frame((b"a", 10, read({0: 5})))
    assert kept(table, frame((b"a", 3, None)), removals) == [b"a"]


def test_key_that_was_never_removed_stays():
    table, removals = frame((b"a", 5, cause("in/0/0")), (b"b", 5, cause("in/0/0"))), frame((b"a", 10, read({0: 5})))
    assert kept(table, NOTHING, removals) == [b"b"]
    assert kept(table, NOTHING, NOTHING) == [b"a", b"b"]


@pytest.mark.parametrize(("ts", "back"), [(10, False), (11, True)])
def test_time_tells_where_no_place_does(ts, back):
    expected = [b"a"] if back else []
    removals = frame((b"a", 10, read({0: 5})))
    assert kept(frame((b"a", ts, cause("other/0/0"))), NOTHING, removals) == expected
    assert kept(frame((b"a", ts, None)), NOTHING, removals) == expected
    assert kept(frame((b"a", ts, cause("in/0/0"))), NOTHING, frame((b"a", 10, None))) == expected
    created_again = {"in": "two"}
    assert kept(frame((b"a", ts, cause("in/0/0"))), NOTHING, removals, created_again) == expected


@pytest.mark.parametrize(("active", "ts", "back"), [(69, 5, True), (70, 20, False), (None, 5, False), (None, 20, True)])
def test_version_that_was_replaced_keeps_what_had_come_back_by_then(active, ts, back):
    more = {} if active is None else {"active": active}
    removals = frame((b"a", 10, read({0: 5}, **more)))
    found = held_back(frame((b"a", ts, None)), NOTHING, removals, {"in": "one"}, 70)
    assert found["key"].to_list() == ([b"a"] if back else [])


def test_owner_that_may_not_see_removals_is_deployed_all_the_same():
    class Denied:
        def has_topic(self, name):
            raise LogDeniedError(f"no right to {name}", hint="Give it.")

    app = es.Service("s")
    app.table("in", schema={"n": int}).to("out")
    assert has_removals(Denied(), app.units()[0]) is False
