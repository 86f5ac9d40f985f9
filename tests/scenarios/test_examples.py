"""The examples do what they say: on the driver here, the demo on Spark."""

from __future__ import annotations

import subprocess
import sys
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
