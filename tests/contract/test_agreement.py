"""The same history on two logs: whatever one says, the other says."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everstate.errors import EverstateError
from everstate.log import Cutover, Holder, TopicConfig, combined_digest, leasing
from tests.contract.conftest import BENCHES, frame
from tests.effort import examples

HOUR_MS = 3_600_000
TOPICS = {
    "table": TopicConfig(compact=True, partitions=2),
    "stream": TopicConfig(partitions=2),
    "short": TopicConfig(retention_ms=2 * HOUR_MS),
    "built": TopicConfig(compact=True, partitions=2, delete_retention_ms=HOUR_MS),
}
HOLDERS = [None, Holder("elsewhere", 1, 1.0), Holder("elsewhere", 2, 2.0)]
KEYS = st.sampled_from(["a", "b", "c"])
VALUES = st.none() | st.sampled_from(["1", "2", ""])
CONTENT = st.fixed_dictionaries(
    {}, optional={name: st.lists(st.tuples(KEYS, VALUES), max_size=3) for name in ("table", "stream", "built")}
)
TOPIC = st.sampled_from(sorted(TOPICS))
LEASE = st.sampled_from(["service", "service:build"])
KIND = st.sampled_from(["open", "open", "closed", "cutover"])
OFTEN = [
    st.tuples(st.just("append"), TOPIC, st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=3)),
    st.tuples(st.just("commit"), CONTENT, KIND, st.sampled_from(["g1", "g2"]), st.integers(-1, 1), st.booleans()),
    st.tuples(st.just("commit"), CONTENT, st.just("open"), st.just("g1"), st.just(1), st.just(True)),
    st.tuples(st.just("commit"), CONTENT, st.just("open"), st.just("g1"), st.just(0), st.just(True)),
    st.tuples(st.just("commit"), CONTENT, st.just("closed"), st.just("g2"), st.just(1), st.just(True)),
    st.tuples(st.just("wait"), st.sampled_from([1, HOUR_MS, 5 * HOUR_MS, 25 * HOUR_MS, -10, -2 * HOUR_MS])),
    st.tuples(st.just("compact"), st.sampled_from(["table", "built"])),
    st.tuples(st.just("age")),
]
SELDOM = [
    st.tuples(st.just("keyless"), st.sampled_from(["stream", "short"]), st.integers(1, 3)),
    st.tuples(st.just("create"), TOPIC),
    st.tuples(st.just("delete"), TOPIC),
    st.tuples(st.just("acquire"), LEASE, st.booleans(), st.sampled_from(HOLDERS)),
    st.tuples(st.just("heartbeat"), LEASE),
    st.tuples(st.just("release"), LEASE),
    st.tuples(st.just("document"), st.sampled_from(["x", "y"]), st.none() | st.just("1"), LEASE),
    st.tuples(st.just("forget")),
]
STEPS = st.lists(st.integers(0, 5).flatmap(lambda turn: st.one_of(OFTEN if turn else SELDOM)), min_size=8, max_size=20)


class Player:
    """Plays steps on one log and says what came of each."""

    def __init__(self, bench) -> None:
        self.bench, self.log, self.leases, self.last = bench, bench.log, {}, {}
        for name, config in TOPICS.items():
            self.log.create_topic(name, config)
        for name in ("service", "service:build"):
            self.leases[name] = self.log.acquire(name, holder=HOLDERS[1])
        bench.lease = self.leases["service"]

    def play(self, step):
        try:
            return getattr(self, step[0])(*step[1:])
        except EverstateError as error:
            return type(error), str(error)

    def append(self, name, records):
        self.log.append(name, frame(*records))

    def keyless(self, name, count):
        self.log.append(name, pl.DataFrame({"value": [b"v"] * count}))

    def create(self, name):
        self.log.create_topic(name, TOPICS[name])

    def delete(self, name):
        self.log.delete_topic(name)

    def compact(self, name):
        self.log.compact(name)

    def wait(self, milliseconds):
        self.bench.clock.advance(milliseconds)

    def age(self):
        """Time for records to expire and for tombstones to go."""
        self.bench.clock.advance(3 * HOUR_MS)
        self.log.append("short", frame(("k", "v")))
        self.log.compact("built")

    def acquire(self, name, take_over, holder):
        self.leases[name] = self.log.acquire(name, take_over=take_over, holder=holder)
        return self.leases[name].token

    def heartbeat(self, name):
        self.log.heartbeat(self.leases[name])

    def release(self, name):
        self.log.release(self.leases[name])

    def document(self, name, value, lease):
        self.log.set_meta("service", name, value, leases=[self.leases[lease]])

    def commit(self, content, kind, generation, ahead, ordered):
        staged = [part for name, rows in content.items() for part in self.log.stage_all(name, frame(*rows))]
        known = self.log.last_commit("service", "output", generation)
        if kind == "closed" and known is not None and known.kind != "closed":
            return None  # a generation that has published is not built any more
        number = (known.batch_id if known is not None else -1) + ahead
        lease = self.leases["service:build" if kind == "closed" else "service"]
        batch, _ = self.bench.batch({}, number, generation=generation, query_id=generation, token=lease.token)
        made = replace(batch, kind=kind, lease=lease.name, ordered=ordered, digest=combined_digest(staged))
        if kind != "cutover":
            return self.log.commit(made, staged)
        ends = self.log.end_offsets(["table"])
        copies, drops = {"__everstate.kept": self.bench.copy("table")}, ("built",) if ahead else ()
        documents = {"registry": generation}
        asked = Cutover(commit=made, leases=(lease,), expected=ends, documents=documents, copies=copies, drops=drops)
        return self.log.cutover(asked, staged)

    def forget(self):
        self.log.forget("service")

    def image(self):
        log = self.log
        names = [name for name in (*TOPICS, "__everstate.kept") if log.has_topic(name)]
        found = {name: log.describe(name) for name in names}
        away = {name: {0: info.start[0] + 1} for name, info in found.items()}
        return {
            "topics": log.topics(),
            "ends": {name: (info.config, info.start, info.end, info.records) for name, info in found.items()},
            "records": {
                (name, number): log.read(name, number, first, appended=True).rows()
                for name, info in found.items()
                for number, first in info.start.items()
            },
            "latest": {name: log.latest(name).rows() for name in names},
            "commits": [log.last_commit("service", "output", generation) for generation in (None, "g1", "g2")],
            "order": list(log.order("service", "output", ["source", "stream", "table", "nowhere"])),
            "documents": log.metas("service"),
            "holders": [log.holder(name) for name in ("service", "service:build")],
            "dropped": log.tombstones_dropped(away, since_ms=0),
        }


def check_agreement(paths, steps):
    # A log whose clock cannot be set has a history of its own.
    players = [Player(bench.make(paths)) for bench in BENCHES.values() if "clock" in bench.can]
    for place, step in enumerate(steps):
        said = [player.play(step) for player in players]
        assert all(one == said[0] for one in said), (place, step)
    images = [player.image() for player in players]
    assert all(image == images[0] for image in images)
    for player in players:
        player.log.close()


@pytest.fixture(scope="module", autouse=True)
def no_watch():
    """Nobody gives signs of life while another one watches, so nobody need watch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leasing, "WATCH_S", 0.0)
        yield


@settings(deadline=None, max_examples=examples(300, 30))
@given(STEPS)
def test_logs_same_random_history_gives_the_same_answers(no_watch, tmp_path_factory, steps):
    check_agreement(tmp_path_factory, steps)
