from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from everstate.plan.facts import SourceFacts
from everstate.plan.needs import Need, gap, needs
from everstate.topology.traits import Traits
from tests.unit.plan.prints import filtered, grouped, node, seen, source, table, totals, unit, vips

COMPACTED = SourceFacts(topic="orders", compacted=True, superseded=5)


def test_needs_table_through_table_steps_is_the_latest() -> None:
    assert needs(totals()) == {"orders": Need.LATEST}
    assert needs(vips()) == {"totals": Need.LATEST}


def test_needs_stream_into_an_aggregate_is_every_record() -> None:
    described = unit("out", source("clicks"), grouped("out/aggregate", "clicks", "key", "count()"))
    assert needs(described) == {"clicks": Need.ALL}


def test_needs_stateful_function_is_every_record() -> None:
    assert needs(seen()) == {"clicks": Need.ALL}


def test_needs_stream_output_without_state_is_nothing() -> None:
    assert needs(seen(stateful=False)) == {"clicks": Need.NOTHING}


def test_needs_addressable_stream_without_state_is_every_record() -> None:
    assert needs(seen(stateful=False, kind="table")) == {"clicks": Need.ALL}


def test_needs_table_joined_to_a_stream_is_every_record_of_both() -> None:
    join = node("out/join", "clicks", "people/table", stateful=True)
    assert needs(unit("out", source("clicks"), source("people"), table("people"), join, kind="stream")) == {
        "clicks": Need.ALL,
        "people": Need.ALL,
    }


def test_needs_step_that_is_not_known_is_every_record() -> None:
    window = node("out/window", "orders/table", stateful=True)
    assert needs(unit("out", source("orders"), table("orders"), window)) == {"orders": Need.ALL}


def test_needs_topic_read_as_table_and_as_stream_is_the_larger() -> None:
    again = node("orders#2", topic=source("orders").parts["topic"])
    count = grouped("out/aggregate", "orders#2", "key", "count()")
    join = node("out/join", "orders/filter", "out/aggregate", stateful=True)
    nodes = (source("orders"), table("orders"), filtered("orders/filter", "orders/table", "x"), again, count, join)
    assert needs(unit("out", *nodes)) == {"orders": Need.ALL}


@pytest.mark.parametrize("need", [Need.LATEST, Need.ALL])
def test_gap_retention_counts_for_every_need_but_none(need) -> None:
    lost = SourceFacts(topic="orders", missing=1, start={0: 1})
    assert gap(lost, need) == "has lost 1 record to retention; it begins at offset 1 in partition 0"
    assert gap(lost, Need.NOTHING) == ""


def test_gap_stored_values_stand_in_for_the_latest_only() -> None:
    lost = SourceFacts(topic="orders", missing=1, stored=True)
    assert gap(lost, Need.LATEST) == ""
    assert gap(lost, Need.ALL) == "has lost 1 record to retention"


def test_gap_compacted_topic_is_whole_for_the_latest_and_truncated_for_the_rest() -> None:
    assert gap(COMPACTED, Need.LATEST) == ""
    assert gap(COMPACTED, Need.ALL) == "has lost 5 records to compaction, and a step depends on every record"


def test_gap_compaction_that_cannot_be_counted_counts_as_truncated() -> None:
    unknown = SourceFacts(topic="orders", compacted=True)
    assert gap(unknown, Need.ALL).startswith("has lost earlier records of its keys to compaction")


def test_gap_compaction_that_removed_nothing_is_whole() -> None:
    assert gap(SourceFacts(topic="orders", compacted=True, superseded=0), Need.ALL) == ""


def looked_up(kind: str, *after: str) -> dict[str, Need]:
    """What a join of clicks with the table of people needs, with these steps after it."""
    traits = Traits(on_shard=True, keeps_state=True, looked_up=(1,), order_sensitive=True, need=Need.LATEST)
    join = node("out/join", "clicks", "people/table", stateful=True)
    steps = [node(name, place, stateful=True) for place, name in pairwise(["out/join", *after])]
    described = unit("out", source("clicks"), source("people"), table("people"), join, *steps, kind=kind)
    nodes = (replace(each, traits=traits) if each.name == join.name else each for each in described.nodes)
    return needs(replace(described, nodes=tuple(nodes)))


def test_needs_lookup_into_a_stream_is_the_latest_of_the_table_alone() -> None:
    assert looked_up("stream") == {"clicks": Need.NOTHING, "people": Need.LATEST}


def test_needs_lookup_before_more_state_is_every_record_of_both() -> None:
    assert looked_up("stream", "out/apply") == {"clicks": Need.ALL, "people": Need.ALL}


def test_needs_lookup_into_a_table_is_every_record_of_both() -> None:
    assert looked_up("table") == {"clicks": Need.ALL, "people": Need.ALL}
