from __future__ import annotations

import pickle
import random

import pytest
from pyspark import cloudpickle

from everstate.log import vectors
from everstate.log.stops import Stops


def random_vectors(rng, count):
    """Vectors that mostly grow; now and then a topic is left out, comes back or begins again."""
    ends = {"a": {0: 0, 1: 0}, "b": {0: 0}}
    found = []
    for _ in range(count):
        for partitions in ends.values():
            for partition in partitions:
                partitions[partition] += rng.choice([0, 0, 1, 5])
        if rng.random() < 0.05:
            ends["b"] = {0: 0}
        found.append({topic: dict(parts) for topic, parts in ends.items() if topic == "a" or rng.random() < 0.8})
    return found


def advancing(found):
    kept = []
    for vector in found:
        if not kept or not vectors.reached(kept[-1], vector):
            kept.append(vector)
    return kept


def after(stops, begin, most):
    ahead = [stop for stop in stops if not vectors.reached(begin, stop)]
    within = [stop for stop in ahead if vectors.lag(begin, stop) <= most]
    return within[-1] if within else (ahead[0] if ahead else None)


def named(vector):
    return {topic: parts for topic, parts in vector.items() if parts}


@pytest.mark.parametrize("seed", range(20))
def test_stops_random_vectors_agree_with_plain_ones(seed):
    rng = random.Random(seed)
    plain = random_vectors(rng, rng.randrange(1, 60))
    stops = Stops.of(plain, range(len(plain)))
    assert [named(vector) for vector in stops] == [named(vector) for vector in plain]
    assert [named(vector) for vector in stops.advancing()] == [named(vector) for vector in advancing(plain)]
    for _ in range(10):
        begin, most = rng.choice(plain), rng.randrange(1, 40)
        expected, found = after(plain, begin, most), stops.after(begin, most)
        assert (found and named(found)) == (expected and named(expected))
    cut = rng.randrange(len(plain))
    assert Stops.joined([stops[:cut], stops[cut:]]) == stops
    again = pickle.loads(pickle.dumps(stops))
    assert again == stops
    assert again.times.tolist() == list(range(len(plain)))


def test_stops_of_nothing_are_an_empty_sequence():
    stops = Stops.of([])
    assert len(stops) == len(stops.advancing()) == len(Stops.from_bytes(stops.to_bytes())) == len(Stops.joined([])) == 0
    assert stops.after({"t": {0: 1}}, 10) is None


def test_stops_many_take_few_bytes_each():
    rng = random.Random(1)
    ends, found = [0, 0, 0, 0], []
    for _ in range(5000):
        ends = [end + rng.randrange(200) for end in ends]
        found.append({"t": dict(enumerate(ends))})
    assert len(Stops.of(found, range(0, 5_000_000, 1000)).to_bytes()) < 8 * len(found)


def test_stops_sent_to_workers_arrive_as_they_were():
    stops = Stops.of([{"t": {0: 5}}, {"t": {0: 9, 1: 2}}])
    assert cloudpickle.loads(cloudpickle.dumps(stops)) == stops
