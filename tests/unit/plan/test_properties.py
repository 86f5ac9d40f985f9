"""What holds for any two versions of a chain of steps."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from everstate.fingerprints.prints import UnitPrint
from everstate.plan.differences import differences
from everstate.plan.document import drift, from_json, to_json
from everstate.plan.facts import Deployed, OutputFacts, SourceFacts
from everstate.plan.matching import Match
from everstate.plan.service_decision import decide
from tests.unit.plan.prints import node, part, source, table, unit

STEPS = st.tuples(st.sampled_from(["filter", "map", "rekey", "aggregate"]), st.integers(0, 4))


def chain(steps: list[tuple[str, int]]) -> UnitPrint:
    """A chain with names as the service would give them."""
    nodes = [source("in"), table("in")]
    counts: dict[str, int] = {}
    for operation, value in steps:
        counts[operation] = counts.get(operation, 0) + 1
        name = f"in/{operation}" + (f"#{counts[operation]}" if counts[operation] > 1 else "")
        meaning = part("expression", str(value))
        nodes.append(node(name, nodes[-1].name, stateful=operation == "aggregate", meaning=meaning))
    return unit("out", *nodes)


CHAINS = st.lists(STEPS, max_size=8).map(chain)


@given(CHAINS, CHAINS)
def test_differences_are_empty_exactly_where_fingerprints_are_equal(old, new) -> None:
    assert (differences(old, new) == ()) == (old.fingerprint == new.fingerprint)


@given(CHAINS, CHAINS)
def test_match_has_every_node_once(old, new) -> None:
    match = Match.of(old, new)
    assert sorted(n.name for n in [*match.removed, *(was for was, _ in match.kept)]) == sorted(
        n.name for n in old.nodes
    )
    assert sorted(n.name for n in [*match.added, *(now for _, now in match.kept)]) == sorted(n.name for n in new.nodes)


@given(st.lists(STEPS, max_size=8), STEPS, st.data())
def test_one_inserted_step_is_one_difference_both_ways(steps, step, data) -> None:
    place = data.draw(st.integers(0, len(steps)))
    short, long = chain(steps), chain([*steps[:place], step, *steps[place:]])
    assert [d.cause.split(" was ")[1][:5] for d in differences(short, long)] == ["added"]
    assert [d.cause.split(" was ")[1][:5] for d in differences(long, short)] == ["remov"]


@given(CHAINS, CHAINS, st.sampled_from(["recalculate", "continue", "migrate"]))
def test_any_plan_is_read_back_the_same_and_has_not_drifted(old, new, on_change) -> None:
    facts = {"out": OutputFacts(active=Deployed(print=old, generation=1))}
    sources = {"in": SourceFacts(topic="in", records=3, start={0: 0}, end={0: 3})}
    plan = decide("shop", [new], facts, sources, on_change={"out": on_change})
    assert from_json(to_json(plan)) == plan
    later = {"in": replace(sources["in"], end={0: 9})}
    assert drift(plan, decide("shop", [new], facts, later, on_change={"out": on_change})) is None
