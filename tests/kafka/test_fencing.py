"""Two processes and one right to publish: whoever is late, and however late, publishes nothing."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from everstate.errors import FencedError, LeaseHeldError
from everstate.log import Cutover, Holder, TopicConfig, leasing
from everstate.log.crash import Crash, crash_at, intercepted
from everstate.log.kafka.clients import Clients
from tests.kafka.conftest import batch, table, values

pytestmark = [pytest.mark.kafka]

ELSEWHERE = Holder("another-machine", 4711, 1.0)


@pytest.fixture
def two(opened):
    """A process that publishes, and one that is about to replace it."""
    first, second = opened(), opened()
    first.create_topic("totals", TopicConfig(compact=True))
    lease = first.acquire("service")
    first.commit(*batch(first, lease, {"totals": [("a", "0")]}, 0))
    return first, lease, second


def test_zombie_whose_producer_is_open_is_refused_after_the_takeover(two):
    first, lease, second = two
    late = batch(first, lease, {"totals": [("a", "late")]}, 1)
    successor = second.acquire("service", take_over=True)
    with pytest.raises(FencedError, match="has been taken over"):
        first.commit(*late)
    assert table(second, "totals") == {"a": "0"}
    assert second.commit(*batch(second, successor, {"totals": [("a", "1")]}, 1)).status == "committed"
    assert values(second, "totals") == ["0", "1"]


def test_zombie_that_is_replaced_in_the_middle_of_its_transaction_publishes_nothing(two):
    first, lease, second = two
    late = batch(first, lease, {"totals": [("a", "late")]}, 1)
    taken = []

    def replace(point):
        if point == "log.commit.inside_transaction" and not taken:
            taken.append(second.acquire("service", take_over=True))

    with intercepted(replace), pytest.raises(FencedError, match="has been taken over"):
        first.commit(*late)
    assert values(second, "totals") == ["0"]
    assert second.commit(*batch(second, taken[0], {"totals": [("a", "1")]}, 1)).status == "committed"


def test_zombie_that_takes_the_transactional_id_last_stops_and_the_owner_goes_on(two):
    first, lease, second = two
    successor = second.acquire("service", take_over=True)
    second.commit(*batch(second, successor, {"totals": [("a", "1")]}, 1))
    # As after a pause: nothing of its own is open any more, so it initialises, which fences the owner's producer.
    first.close()
    with pytest.raises(FencedError):
        first.commit(*batch(first, lease, {"totals": [("a", "late")]}, 1))
    assert second.commit(*batch(second, successor, {"totals": [("a", "2")]}, 2)).status == "committed"
    assert values(second, "totals") == ["0", "1", "2"]


def test_zombie_that_writes_documents_is_refused(two):
    first, lease, second = two
    first.set_meta("service", "registry", "old", leases=[lease])
    second.acquire("service", take_over=True)
    with pytest.raises(FencedError):
        first.set_meta("service", "registry", "late", leases=[lease])
    assert second.get_meta("service", "registry") == "old"


@pytest.mark.long
def test_transaction_that_takes_too_long_is_undone_by_the_broker_and_repeated(two, monkeypatch):
    first, lease, _ = two
    made = Clients.producer
    monkeypatch.setattr(Clients, "producer", lambda self, name=None: made(self, name, timeout_ms=2_000))
    first.close()
    slow = []

    def wait(point):
        if point == "log.commit.inside_transaction" and not slow:
            slow.append(point)
            threading.Event().wait(6)

    with intercepted(wait):
        assert first.commit(*batch(first, lease, {"totals": [("a", "1")]}, 1)).status == "committed"
    assert values(first, "totals") == ["0", "1"]
    assert first.last_commit("service", "output").batch_id == 1


def test_successor_that_dies_with_the_token_before_it_has_fenced_anybody_is_made_good_by_the_next(two, opened):
    first, lease, second = two

    def die(*_):
        raise Crash("the token is written")

    second._registry._fence = die
    with pytest.raises(Crash):
        second.acquire("service", take_over=True)
    # Whoever has its producer open may still publish, and what it has published counts.
    assert first.commit(*batch(first, lease, {"totals": [("a", "late")]}, 1)).status == "committed"
    third = opened()
    successor = third.acquire("service", take_over=True)
    with pytest.raises(FencedError):
        first.commit(*batch(first, lease, {"totals": [("a", "later")]}, 2))
    assert third.last_commit("service", "output").batch_id == 1
    assert third.commit(*batch(third, successor, {"totals": [("a", "2")]}, 2)).status == "committed"
    assert values(third, "totals") == ["0", "late", "2"]


def difference(log, lease, leases):
    """A cutover to a generation that has only a key of its own."""
    made, staged = batch(
        log, lease, {"totals": [("b", "1"), ("a", None)]}, 0, generation="g2", query_id="q2", kind="cutover"
    )
    ends = log.end_offsets(["totals"])
    return Cutover(commit=made, leases=leases, expected=ends, documents={"registry": "g2"}), staged


@pytest.mark.long
def test_cutover_that_takes_too_long_is_undone_by_the_broker_and_repeated(two, monkeypatch):
    first, lease, _ = two
    made = Clients.producer
    monkeypatch.setattr(Clients, "producer", lambda self, name=None: made(self, name, timeout_ms=2_000))
    first.close()
    slow = []

    def wait(point):
        if point == "log.cutover.inside_transaction" and not slow:
            slow.append(point)
            threading.Event().wait(6)

    with intercepted(wait):
        assert first.cutover(*difference(first, lease, (lease,))).status == "committed"
    assert values(first, "totals") == ["0", "1", None]
    assert first.get_meta("service", "registry") == "g2"


@pytest.mark.parametrize("late", ["service", "service:build"])
def test_zombie_that_is_replaced_in_the_middle_of_a_cutover_publishes_nothing(two, late):
    first, lease, second = two
    leases = (lease, first.acquire("service:build"))
    taken = []

    def replace(point):
        if point == "log.cutover.inside_transaction" and not taken:
            taken.append(second.acquire(late, take_over=True))

    with intercepted(replace), pytest.raises(FencedError, match="has been taken over"):
        first.cutover(*difference(first, lease, leases))
    assert values(second, "totals") == ["0"]
    assert second.get_meta("service", "registry") is None


def test_acquire_by_several_at_once_gives_each_token_once(opened):
    logs = [opened() for _ in range(3)]

    def take(log):
        return [log.acquire("service", take_over=True).token for _ in range(3)]

    with ThreadPoolExecutor(3) as pool:
        tokens = [token for found in pool.map(take, logs) for token in found]
    assert sorted(tokens) == list(range(1, 10))


@pytest.fixture
def lost(opened, monkeypatch, request):
    """A process elsewhere that has died in the middle of a transaction of its registry; the brokers end it in time."""
    producer, limit = Clients.producer, getattr(request, "param", 6_000)
    monkeypatch.setattr(Clients, "producer", lambda self, name=None: producer(self, name, timeout_ms=limit))
    there = opened()
    there.create_topic("totals", TopicConfig(compact=True))
    lease = there.acquire("service", holder=ELSEWHERE)
    there.commit(*batch(there, lease, {"totals": [("a", "0")]}, 0))
    yield there, lease
    there.close()


def dies_in_a_cutover(log, lease):
    with intercepted(crash_at("log.cutover.inside_transaction")), pytest.raises(Crash):
        log.cutover(*difference(log, lease, (lease,)))


@pytest.mark.parametrize("lost", [50_000], indirect=True)
def test_holder_elsewhere_that_died_in_a_transaction_of_its_registry_is_found_and_replaced_at_once(lost, opened):
    here = opened()
    dies_in_a_cutover(*lost)
    began = time.monotonic()
    successor = here.acquire("service", take_over=True)
    assert time.monotonic() - began < 40
    assert here.commit(*batch(here, successor, {"totals": [("a", "1")]}, 1)).status == "committed"
    assert values(here, "totals") == ["0", "1"]


@pytest.mark.long
@pytest.mark.parametrize("lives", [True, False])
def test_holder_elsewhere_whose_signs_of_life_an_open_transaction_hides_is_judged_by_all_of_them(
    lost, opened, monkeypatch, lives
):
    monkeypatch.setattr(leasing, "HEARTBEAT_TIMEOUT_MS", 4_000)
    there, lease = lost
    here = opened()
    dies_in_a_cutover(there, lease)
    done = threading.Event()

    def beat():
        while not done.wait(0.3):
            there.heartbeat(lease)

    beating = threading.Thread(target=beat)
    if lives:
        beating.start()
    try:
        threading.Event().wait(5)
        assert here.holder("service") == (ELSEWHERE if lives else None)
        if lives:
            with pytest.raises(LeaseHeldError, match="process 4711 on another-machine"):
                here.acquire("service")
        else:
            assert here.acquire("service").token == lease.token + 1
    finally:
        done.set()
        if lives:
            beating.join()


def test_holder_elsewhere_lives_as_long_as_it_gives_signs_by_the_brokers_clock(opened, monkeypatch):
    monkeypatch.setattr(leasing, "HEARTBEAT_TIMEOUT_MS", 1_500)
    there, here = opened(), opened()
    lease = there.acquire("service", holder=ELSEWHERE)
    assert here.holder("service") == ELSEWHERE
    threading.Event().wait(1)
    there.heartbeat(lease)
    threading.Event().wait(1)
    with pytest.raises(LeaseHeldError, match="process 4711 on another-machine"):
        here.acquire("service")
    threading.Event().wait(0.7)
    assert here.holder("service") is None
    assert here.acquire("service").token == lease.token + 1
    with pytest.raises(FencedError):
        there.heartbeat(lease)
