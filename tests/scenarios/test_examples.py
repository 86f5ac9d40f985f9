"""The examples do what they say: on the driver here, the demo on Spark."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

from everstate.cli.service_loading import load_service
from everstate.testing import Driver

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"


@pytest.fixture(autouse=True)
def _searched_only_here(monkeypatch):
    """A file's folder is searched for imports from then on; other tests have modules of the same names."""
    monkeypatch.setattr(sys, "path", list(sys.path))


def driver_of(name: str, **config: object) -> Driver:
    return Driver(load_service(EXAMPLES / name, config=config), partitions=3, shards=2)


def test_customers_totals_and_vips_follow_their_orders() -> None:
    driver = driver_of("customers.py", vip_from=50)
    driver.send("orders", "o1", {"customer": "ada", "amount": 60.5, "status": "paid"})
    driver.send("orders", "o2", {"customer": "bob", "amount": 1.0, "status": "paid"})
    assert driver.table("customer-totals") == {"ada": {"total": 60.5, "orders": 1}, "bob": {"total": 1.0, "orders": 1}}
    assert driver.table("vips") == {"ada": {"total": 60.5, "orders": 1}}
    driver.send("orders", "o1", {"customer": "ada", "amount": 60.5, "status": "void"})
    assert driver.table("customer-totals") == {"bob": {"total": 1.0, "orders": 1}}
    assert driver.table("vips") == {}


def test_named_orders_follow_both_sides_of_the_join() -> None:
    driver = driver_of("named_orders.py")
    driver.send("orders", "o1", {"customer": "c1", "amount": 5, "note": None})
    assert driver.table("named-orders")["o1"]["name"] is None
    driver.send("people", "c1", {"name": "Ada", "city": "London"})
    driver.send("orders", "o2", {"customer": "c1", "amount": 9, "note": "gift"})
    assert driver.table("totals-by-name") == {"Ada": {"total": 14, "largest": 9}}
    driver.tombstone("orders", "o2")
    assert driver.table("totals-by-name") == {"Ada": {"total": 5, "largest": 5}}


def test_limits_alert_once_a_card_has_spent_too_much() -> None:
    driver = driver_of("limits.py")
    for amount in (200, 250, 100):
        driver.send("payments", "card-1", {"amount": amount, "shop": "books"})
    assert [(r.key, r.value) for r in driver.records("alerts")] == [("card-1", {"amount": 100, "spent": 550})]
    assert driver.table("shops") == {"books": {"payments": 3, "median": 200.0, "largest": [250, 200, 100]}}


def at(hour: int, minute: int = 0, second: int = 0) -> str:
    return f"2026-05-01T{hour:02}:{minute:02}:{second:02}Z"


def test_vitals_follow_late_readings_and_raise_alarms_that_stand() -> None:
    driver = driver_of("vitals.py")
    sent = 0

    def reading(pulse: float, minute: int, second: int = 0) -> None:
        nonlocal sent
        sent += 1
        value = {"patient": "p1", "pulse": pulse, "at": at(10, minute, second)}
        driver.send("readings", f"r{sent}", value, partition=0)

    for second, pulse in ((0, 118.0), (20, 130.0), (40, 999.0)):  # the last one is the monitor's mistake
        reading(pulse, 0, second)
    reading(80.0, 1, 10)
    reading(140.0, 0, 59)  # late, but within the grace
    per_minute = [value for key, value in driver.table("pulse-per-minute").items() if key[1].minute == 0]
    assert per_minute == [{"median": 130.0, "lowest": 118.0, "highest": 140.0, "readings": 3}]
    reading(80.0, 1, 30)
    reading(60.0, 0, 58)  # too late for its minute, not for the five that go on
    assert [row["value"]["pulse"] for row in driver.table("late-readings").values()] == [60.0]
    averages = {key[2].minute: value for key, value in driver.table("pulse-5m").items()}
    assert averages[1] == {"average": (118.0 + 130.0 + 140.0) / 3, "readings": 3}
    assert averages[2] == {"average": (118.0 + 130.0 + 140.0 + 80.0 + 80.0 + 60.0) / 6, "readings": 6}
    assert driver.records("fast-pulse") == []
    driver.advance(milliseconds(at(10, 3)))
    assert [(record.key[1].minute, record.value) for record in driver.records("fast-pulse")] == [(0, {"median": 130.0})]
    driver.advance(milliseconds("2026-05-02T10:02:00Z"))
    assert min(key[2].minute for key in driver.table("pulse-5m")) == 3


def milliseconds(moment: str) -> int:
    return int(datetime.fromisoformat(moment).timestamp() * 1000)


def test_clicks_are_visits_and_checkouts_whatever_is_sent_twice() -> None:
    driver = driver_of("clicks.py")
    driver.send("countries", "pt", {"name": "Portugal"})

    def click(user: str, event: str, page: str, *when: int) -> None:
        driver.send("clicks", user, {"event_id": event, "page": page, "country": "pt", "at": at(*when)})

    click("ada", "e1", "/", 10, 0)
    click("ada", "e2", "/books", 10, 25)
    click("ada", "e2", "/books", 10, 25)
    click("bob", "e3", "/pay", 10, 30)
    click("ada", "e4", "/pay", 10, 40)
    driver.send("payments", "ada", {"amount": 12.5, "at": at(10, 44)})
    click("ada", "e5", "/", 12, 0)
    visits = {(key[0], key[1].hour): value for key, value in driver.table("sessions").items()}
    assert visits["ada", 10] == {"pages": 3, "entry": "/", "exit": "/pay", "country": "pt"}
    assert visits["ada", 12]["pages"] == visits["bob", 10]["pages"] == 1
    assert driver.table("visits-per-country") == {"Portugal": {"visits": 3, "longest": 3}}
    assert [(record.key, record.value["amount"]) for record in driver.records("checkouts")] == [("ada", 12.5)]
    driver.advance(milliseconds(at(12)))
    assert ("bob", None) in [(record.key, record.value["amount"]) for record in driver.records("checkouts")]


def test_clicks_of_an_hour_in_one_micro_batch_are_the_same_visits() -> None:
    tables = []
    for batches in (1, 12):
        driver = driver_of("clicks.py")
        for start in range(0, 120, 120 // batches):
            with driver.batch():
                for number in range(start, start + 120 // batches):
                    event = {"event_id": f"e{number}", "page": "/", "country": "pt", "at": at(10, number // 2)}
                    driver.send("clicks", f"u{number % 7}", event)
        tables.append(driver.table("sessions"))
    assert tables[0] == tables[1]
    assert sum(value["pages"] for value in tables[0].values()) == 120


@pytest.mark.spark
@pytest.mark.long
def test_demo_tells_its_story_and_ends_well() -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "demo.py")], capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = " ".join(done.stdout.split())
    assert "nothing lost, nothing doubled" in told
    assert "gus tombstone" in told
    assert "was not touched" in told
