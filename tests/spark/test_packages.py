"""A service in a package, on Spark: workers have its modules by value, and it is the same service by any name."""

from __future__ import annotations

import sys

import pytest

from everstate.cli.service_loading import load_service
from everstate.generations.registry import Registry
from everstate.schema.topic_names import dead_letter_topic

pytestmark = pytest.mark.spark

RULES = """
from dataclasses import dataclass

@dataclass(frozen=True)
class Rule:
    late: float

    def is_late(self, row) -> bool:
        return row["minutes"] > self.late

RULE = Rule(late={late})
"""
TRIPS = """
import everstate as es

from . import rules
from .rules import RULE

def is_late(row) -> bool:
    from .limits import LEAST
    return row["minutes"] > LEAST and RULE.is_late(row) and rules.RULE.is_late(row)

app = es.Service("trips", shards=2)
trips = app.table("trips", key="id", schema={"id": str, "minutes": float})
trips.filter(is_late).to("late")
"""


def test_service_in_a_package_runs_and_goes_on_by_module_and_by_file(tmp_path, monkeypatch, topics, run, log):
    folder = tmp_path / "src" / "shop_of_spark"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "trips.py").write_text(TRIPS)
    (folder / "rules.py").write_text(RULES.format(late=15.0))
    (folder / "limits.py").write_text("LEAST = 5.0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    topics.create("trips", compact=True)
    topics.send("trips", [("a", {"minutes": 10.0}), ("b", {"minutes": 20.0}), ("c", {"minutes": 40.0})])
    try:
        run(load_service("shop_of_spark.trips:app"))
        assert topics.table("late") == {"b": {"minutes": 20.0}, "c": {"minutes": 40.0}}
        topics.send("trips", [("d", {"minutes": 50.0})])
        monkeypatch.chdir("/")
        run(load_service(folder / "trips.py"))
        assert set(topics.table("late")) == {"b", "c", "d"}
        assert len(Registry(log, "trips").read("late").generations) == 1, "the same service by another name"
        (folder / "rules.py").write_text(RULES.format(late=30.0))
        del sys.modules["shop_of_spark.rules"]
        run(load_service(folder / "trips.py"))
        assert set(topics.table("late")) == {"c", "d"}
        (folder / "limits.py").write_text("LEAST = 45.0\n")
        del sys.modules["shop_of_spark.limits"]
        run(load_service(folder / "trips.py"))
        assert set(topics.table("late")) == {"d"}
        assert topics.count(dead_letter_topic("late")) == 0
    finally:
        for name in [name for name in sys.modules if name.startswith("shop_of_spark")]:
            del sys.modules[name]
