"""Random services of all kinds of steps against themselves: in other shards, in other cuts, and after an edit.

No oracle knows all these steps at once. But results must not depend on shards, nor on cuts where the order of arrival
does not count; and an edit that means the same writes nothing, and what comes after it is what would have come.
"""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

import everstate as es
from tests.equivalence.mixed import Sent, history, made, play, service
from tests.equivalence.playing import examples, shown
from tests.figures import PLAYED


def tables(driver: es.testing.Driver, count: int) -> list[str]:
    return [shown(driver.table(f"out{number}")) for number in range(count)]


def recut(chance: random.Random, sent: list[Sent]) -> list[Sent]:
    return [record._replace(ends_batch=record.topic[0] == "$" or chance.random() < 0.4) for record in sent]


@examples(60, 25)
@given(st.integers(0, 10**9))
def test_random_services_do_not_depend_on_shards_or_cuts_or_edits_that_mean_the_same(seed):
    chance = random.Random(seed)
    outputs = tuple(made(chance) for _ in range(chance.randint(1, 2)))
    app = service(outputs)
    sent = history(chance, {topic for unit in app.units() for topic in unit.topics})
    live = es.testing.Driver(app, partitions=2)
    play(live, sent)
    wanted = tables(live, len(outputs))

    sharded = es.testing.Driver(service(outputs), partitions=2, shards=3)
    play(sharded, sent)
    assert tables(sharded, len(outputs)) == wanted, f"seed {seed}, shards: {outputs}"

    if not any(unit.order_sensitive or unit.clocked for unit in app.units()):
        cut = es.testing.Driver(service(outputs), partitions=2, shards=2)
        play(cut, recut(chance, sent))
        assert tables(cut, len(outputs)) == wanted, f"seed {seed}, cuts: {outputs}"

    # Between two micro-batches: the order of arrival is a matter of where they end.
    places = [0, *(place for place, record in enumerate(sent, 1) if record.ends_batch)]
    edited, place = es.testing.Driver(service(outputs), partitions=2), chance.choice(places)
    play(edited, sent[:place])
    written = edited.upgrade(service(outputs, edited=True)).records
    assert written == [], f"seed {seed}, the edit wrote: {outputs}"
    play(edited, sent[place:])
    assert tables(edited, len(outputs)) == wanted, f"seed {seed}, after the edit: {outputs}"
    PLAYED["random services of all kinds of steps"] += 1
