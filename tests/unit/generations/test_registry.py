from __future__ import annotations

import json
from dataclasses import fields

import pytest

from everstate.errors import LogError
from everstate.fingerprints.prints import Column, NodePrint, Part, Setting, UnitPrint
from everstate.generations import registry as registries
from everstate.generations.generation import Event, Generation, OutputGenerations
from everstate.generations.registry import FORMAT, Registry, document, to_json
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
        versions = registry.read("totals")
        step = OutputGenerations(output="totals", audit=(*versions.audit, event(number)), archived=versions.archived)
        registry.write(step, (), step="planned")
        assert numbers(registry) == list(range(number + 1))
    sizes = [len(text) for text in log.metas("shop").values()]
    assert max(sizes) < 12 * len(to_json(OutputGenerations(output="totals", audit=(event(100),))))
    assert list(registry.generations()) == ["totals"]


def test_audit_of_a_step_that_was_killed_half_way_names_nothing_twice(log):
    registry = Registry(log, "shop")
    whole = OutputGenerations(output="totals", audit=tuple(event(number) for number in range(20)))
    registry.write(whole, (), step="planned")
    # A cutover stores what its process holds, which may be from before the entries were moved.
    log.set_meta("shop", document("totals"), to_json(whole))
    assert numbers(registry) == list(range(20))
    registry.write(whole, (), step="active")
    assert numbers(registry) == list(range(20))
    assert registry.read("totals").archived == 15


def test_registry_of_a_newer_version_is_refused_by_name(log):
    known = json.loads(to_json(OutputGenerations(output="totals")))
    log.set_meta("shop", document("totals"), json.dumps({**known, "format": FORMAT + 1, "unheard_of": 1}))
    with pytest.raises(LogError, match=f"the registry of generations has format {FORMAT + 1}; this version") as caught:
        Registry(log, "shop").read("totals")
    assert "Use the version of Everstate that wrote it" in str(caught.value)


@pytest.mark.parametrize("text", ["[]", "{}", '{"format": "x"}', '{"format": 0}', "nothing"])
def test_registry_that_is_no_such_document_is_damaged(log, text):
    log.set_meta("shop", document("totals"), text)
    with pytest.raises(LogError, match="the registry of generations is damaged"):
        Registry(log, "shop").read("totals")


def test_registry_without_a_number_is_of_the_first_format(log):
    known = json.loads(to_json(OutputGenerations(output="totals", next_number=7)))
    log.set_meta("shop", document("totals"), json.dumps({name: known[name] for name in known if name != "format"}))
    assert Registry(log, "shop").read("totals").next_number == 7


def test_registry_with_other_fields_needs_another_format():
    kinds = (OutputGenerations, Generation, Event, UnitPrint, NodePrint, Part, Column, Setting)
    stored = {kind.__name__: [each.name for each in fields(kind)] for kind in kinds}
    assert FORMAT == 1
    assert stored == {
        "OutputGenerations": ["output", "generations", "next_number", "audit", "archived"],
        "Generation": [
            *("number", "status", "fingerprint", "description", "shards", "initial", "code", "policy"),
            *("was_active", "missing", "rate", "topics", "begins", "missed", "created_ms", "changed_ms"),
        ],
        "Event": ["at_ms", "generation", "what", "who", "why", "counts"],
        "UnitPrint": [
            *("service", "output", "kind", "nodes", "settings", "packages", "policy", "libraries", "scheme", "sides"),
        ],
        "NodePrint": [
            *("name", "operation", "inputs", "stateful", "parts", "location", "columns", "migrates", "kind", "traits"),
        ],
        "Part": ["kind", "digest", "shape", "text", "location"],
        "Column": ["name", "type", "nullable", "default", "exact"],
        "Setting": ["digest", "text"],
    }
