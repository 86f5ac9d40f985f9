from __future__ import annotations

import pytest

from everstate.errors import FencedError, GenerationError, LogError
from everstate.generations.generation import (
    Generation,
    OutputGenerations,
    Status,
    own_dead_letters,
    own_topic,
    own_topics,
)
from everstate.generations.registry import Registry, event, from_json, to_json
from everstate.log.opening import open_log
from everstate.schema.topic_names import check_topic_name, is_internal


def generation(number=1, status=Status.PLANNED, **changes):
    facts = {"fingerprint": "f", "description": "{}", "shards": 2, "initial": {"in": {0: 0}}, "code": "c"}
    return Generation(number=number, status=status, policy="skip", **{**facts, **changes})


def test_generation_goes_through_its_life_and_no_step_back():
    found = generation()
    for status in (Status.RECALCULATING, Status.READY, Status.PUBLISHING, Status.ACTIVE, Status.RETIRED):
        found = found.to(status, now_ms=5)
        assert found.to(status, now_ms=6).status is status
    with pytest.raises(GenerationError, match="is retired and cannot become publishing"):
        found.to(Status.PUBLISHING, now_ms=7)
    again = found.to(Status.RECALCULATING, now_ms=8)
    with pytest.raises(GenerationError):
        again.to(Status.DISCARDED, now_ms=9).to(Status.READY, now_ms=10)


def test_generations_of_an_output_name_the_active_the_building_and_the_youngest_retired():
    retired = [generation(n, Status.RETIRED, changed_ms=n) for n in (1, 2)]
    versions = OutputGenerations(output="out")
    for each in [*retired, generation(3, Status.ACTIVE), generation(4, Status.READY)]:
        versions = versions.having(each, event(each, "because"))
    assert (versions.active.number, versions.building.number, versions.next_number) == (3, 4, 5)
    assert [g.number for g in versions.retired] == [2, 1]
    assert versions.without(4).building is None
    assert versions.without(4).next_number == 5
    assert [entry.why for entry in versions.audit] == ["because"] * 4


def test_generations_of_an_output_survive_being_written():
    versions = OutputGenerations(output="out").having(generation(rate=3.0), event(generation(), "x", {"new": 1}))
    assert from_json(to_json(versions)) == versions
    with pytest.raises(LogError, match="registry of generations is damaged"):
        from_json("{}")


def test_own_topics_have_legal_hidden_names_of_their_own():
    names = {
        name(service, output, generation(number))
        for name in (own_topic, own_dead_letters)
        for service, output in (("s", "o" * 240), ("so", "o" * 239))
        for number in (1, 2)
    }
    assert len(names) == 8
    assert all(is_internal(check_topic_name(name)) for name in names)


def test_own_topics_of_an_output_are_found_among_all_with_their_generation():
    names = [own_topic("s", "o", generation(12)), own_dead_letters("s", "o", generation(3))]
    others = [own_topic("s", "p", generation(12)), names[0] + "x", "o"]
    assert own_topics("s", "o", [*names, *others]) == {names[0]: 12, names[1]: 3}


def test_generations_of_an_output_know_the_numbers_of_generations_that_were_forgotten():
    versions = OutputGenerations(output="out")
    for number in (1, 2, 4):
        versions = versions.having(generation(number))
    assert versions.without(2).forgotten == {2, 3}


def test_registry_is_written_only_under_the_lease(tmp_path):
    log = open_log(tmp_path / "log")
    registry = Registry(log, "svc")
    lease = log.acquire("svc:build")
    versions = registry.read("out").having(generation())
    registry.write(versions, [lease], step="planned")
    assert registry.generations() == {"out": versions}
    log.acquire("svc:build", take_over=True)
    with pytest.raises(FencedError):
        registry.write(versions.without(1), [lease], step="planned")
    assert registry.read("out") == versions
    log.close()
