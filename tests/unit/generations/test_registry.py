from __future__ import annotations

import pytest

from everstate.generations import registry as registries
from everstate.generations.generation import Event, History
from everstate.generations.registry import Registry, document, to_json
from everstate.log import EmbeddedLog


@pytest.fixture
def log(tmp_path):
    return EmbeddedLog(tmp_path / "log")


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(registries, "_EVENTS", 5)


def event(number):
    return Event(at_ms=number, generation=1, what="active", who="me")


def numbers(registry):
    return [entry.at_ms for entry in registry.audit("totals")]


def test_audit_of_many_steps_is_complete_and_no_document_grows(log):
    registry = Registry(log, "shop")
    for number in range(123):
        history = registry.read("totals")
        step = History(output="totals", audit=(*history.audit, event(number)), archived=history.archived)
        registry.write(step, (), step="planned")
        assert numbers(registry) == list(range(number + 1))
    sizes = [len(text) for text in log.metas("shop").values()]
    assert max(sizes) < 12 * len(to_json(History(output="totals", audit=(event(100),))))
    assert list(registry.histories()) == ["totals"]


def test_audit_of_a_step_that_was_killed_half_way_names_nothing_twice(log):
    registry = Registry(log, "shop")
    whole = History(output="totals", audit=tuple(event(number) for number in range(20)))
    registry.write(whole, (), step="planned")
    # A cutover stores what its process holds, which may be from before the entries were moved.
    log.set_meta("shop", document("totals"), to_json(whole))
    assert numbers(registry) == list(range(20))
    registry.write(whole, (), step="active")
    assert numbers(registry) == list(range(20))
    assert registry.read("totals").archived == 15
