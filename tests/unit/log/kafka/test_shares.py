from __future__ import annotations

import json

import pytest

from everstate.log import Commit
from everstate.log.descriptions import Lease, Staged
from everstate.log.kafka import shares
from everstate.log.kafka.journal import Entry
from everstate.log.kafka.markers import Marker
from everstate.log.kafka.staging import Place
from everstate.log.leasing import this_process


def part(partition, rows=30_000, topic="totals"):
    return Staged(topic, partition, rows, "", Place(f"/staged/{topic}", 1_000, 10 * partition, "id").location())


def commit(number=3, digest="d"):
    return Commit(
        service="s",
        output="o",
        generation="1",
        query_id="q",
        batch_id=number,
        start={},
        end={},
        digest=digest,
        token=7,
    )


PARTS = [part(number) for number in range(4)]
LEASE = Lease("s", 7, this_process())


def entries(*pairs):
    return {key: Entry(value, 0, number) for number, (key, value) in enumerate(pairs)}


def noted(made, parts=PARTS, of=2):
    return ("shares/o", shares.noted(made, parts, of))


def said(made, number, of=2):
    return shares.Share(made, LEASE, number, of, ()).entry


@pytest.mark.parametrize(
    ("parts", "of"),
    [(PARTS, 1), ([part(0, 10), part(1, 10)], 2), ([part(0), part(2)], 2), ([], 4)],
    ids=["one publisher", "few records", "all of one publisher", "nothing"],
)
def test_noted_where_one_publisher_will_do_is_nothing(parts, of):
    assert shares.noted(commit(), parts, of) is None


def test_noted_that_no_record_could_hold_is_nothing():
    many = [part(number, 1_000, f"{number:0>200}") for number in range(2_500)]
    assert shares.noted(commit(), many, 2) is None


def test_begun_batch_of_which_nothing_was_sent_has_all_parts_where_they_were():
    found = shares.begun(entries(noted(commit())), Marker(commit(), {}))
    assert (found.of, found.left) == (2, (0, 1))
    places = [(p.topic, p.partition, p.rows, Place.of(p)) for p in found.parts]
    assert places == [(p.topic, p.partition, p.rows, Place.of(p)) for p in PARTS]


def test_begun_batch_knows_what_each_publisher_has_said():
    made = commit()
    found = shares.begun(entries(noted(made), said(made, 0)), Marker(made, {}))
    assert found.left == (1,)
    assert [found.missing(number) for number in range(4)] == [False, True, False, True]
    (share,) = found.shares(made, LEASE, PARTS)
    assert (share.number, share.of, [p.partition for p in share.parts]) == (1, 2, [1, 3])
    assert shares.begun(entries(noted(made), said(made, 0), said(made, 1)), Marker(made, {})) is None


def test_begun_batch_goes_by_its_own_number_of_publishers_not_by_that_of_others():
    made = commit()
    found = shares.begun(entries(noted(made, of=3), said(made, 0, of=2)), Marker(made, {}))
    assert (found.of, found.left) == (3, (0, 1, 2))


@pytest.mark.parametrize("last", [commit(4), commit(3, "other")])
def test_begun_batch_that_is_not_the_last_one_is_over(last):
    assert shares.begun(entries(noted(commit())), Marker(last, {})) is None
    assert shares.begun(entries(noted(commit())), None) is None


def test_entry_of_a_publisher_says_which_one_of_how_many():
    key, value = said(commit(), 1)
    assert key == "share/o/1"
    assert json.loads(value) == {"batch": ["1", "q", 3, "d"], "publisher": 1, "of": 2}
