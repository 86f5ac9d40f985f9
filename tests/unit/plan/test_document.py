from __future__ import annotations

import json
from dataclasses import replace

import pytest

from everstate.errors import ConfigurationError
from everstate.fingerprints.prints import UnitPrint
from everstate.plan.actions import Plan
from everstate.plan.document import drift, from_json, to_json
from everstate.plan.facts import Deployed, OnChange, Options, OutputFacts, SourceFacts
from everstate.plan.service_decision import decide
from tests.unit.plan.prints import clicks, seen, totals, vips
from tests.unit.plan.stories import SOURCES, configured_totals, outputs, whole_story

ORDERS = SourceFacts(topic="orders", records=10, start={0: 0, 1: 0}, end={0: 6, 1: 4})


def single(
    new: UnitPrint,
    active: UnitPrint | None = None,
    source: SourceFacts = ORDERS,
    *,
    on_change: OnChange = "recalculate",
    **options,
) -> Plan:
    facts = OutputFacts(active=Deployed(print=active, generation=3, shards=2), keys=5) if active else OutputFacts()
    return decide(
        "shop",
        [new],
        {new.output: facts},
        {source.topic: source},
        on_change={new.output: on_change},
        options=Options(**options),
    )


def test_document_of_a_whole_plan_is_read_back_the_same() -> None:
    assert from_json(to_json(whole_story())) == whole_story()


RESTORED = decide(
    "shop",
    [totals()],
    {
        "totals": OutputFacts(
            active=Deployed(print=totals(by="x"), generation=3), retained=(Deployed(print=totals(), generation=2),)
        )
    },
    {"orders": ORDERS},
)


@pytest.mark.parametrize(
    ("kind", "plan"),
    [
        ("nothing", single(totals(), totals())),
        ("begin", single(totals())),
        ("continue", single(clicks(predicate="x"), clicks(), on_change="continue")),
        ("recalculate", single(totals(by="x"), totals(), recalculate=("totals",))),
        ("migrate", single(vips(predicate="x"), vips(), SourceFacts(topic="totals"), on_change="migrate")),
        ("restore", RESTORED),
        ("refuse", single(totals(), totals(), SourceFacts(topic="orders", exists=False))),
        ("retire", decide("shop", [], {"totals": OutputFacts(active=Deployed(print=totals(), generation=1))}, {})),
    ],
)
def test_document_of_every_kind_of_action_is_read_back_the_same(kind, plan) -> None:
    assert plan.actions[0].kind == kind
    assert from_json(to_json(plan)) == plan


def test_document_says_what_follows_and_what_needs_approval() -> None:
    known = json.loads(to_json(whole_story()))
    assert known["actions"][0]["follows"].startswith("A new generation is built alongside generation 3")
    assert [(c["output"], c["risk"]) for c in known["concerns"]] == [
        ("totals", "many tombstones"),
        ("totals", "dead records"),
        ("old", "retired output"),
    ]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "3", '{"version": 3}', '{"version": 3, "service": "s", "actions": [{}]}']
)
def test_document_that_is_no_plan_is_refused(text) -> None:
    with pytest.raises(ConfigurationError, match="this is not a plan"):
        from_json(text)


def test_document_of_another_version_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="has version 1, but this version of Everstate reads version 3"):
        from_json('{"version": 1}')


PLANNED = single(totals(by="x"), totals())


def test_drift_of_the_same_plan_is_none() -> None:
    assert drift(PLANNED, PLANNED) is None
    assert drift(whole_story(), from_json(to_json(whole_story()))) is None


def test_drift_sources_that_grew_are_none() -> None:
    grown = replace(ORDERS, records=100, end={0: 60, 1: 40, 2: 0})
    assert drift(PLANNED, single(totals(by="x"), totals(), grown)) is None


def test_drift_prepared_generation_is_none() -> None:
    facts = outputs()
    prepared = Deployed(
        print=configured_totals("20", "country"), generation=4, end={"orders": {0: 600_000, 1: 400_000}}
    )
    facts["totals"] = replace(facts["totals"], pending=prepared)
    now = whole_story(outputs=facts)
    assert now.action("totals").records == 0
    assert drift(whole_story(), now) is None


def test_drift_accepted_truncation_of_a_prepared_generation_is_none() -> None:
    lost = replace(ORDERS, missing=3)
    planned = single(totals(by="x"), totals(), lost, accept_truncated=("orders",))
    active, pending = (Deployed(print=totals(by=by), generation=g) for by, g in (("customer", 3), ("x", 4)))
    facts = {"totals": OutputFacts(active=active, pending=pending)}
    now = decide("shop", [totals(by="x")], facts, {"orders": lost}, options=planned.options)
    assert drift(planned, now) is None


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        (replace(PLANNED, service="other"), "the plan is for service shop, but this is other"),
        (single(totals(by="y"), totals()), "the code or configuration of output totals has changed"),
        (
            single(totals(by="x"), totals(), replace(ORDERS, exists=False)),
            "output totals can no longer be deployed: topic orders does not exist",
        ),
        (
            single(totals(by="x"), totals(), replace(ORDERS, missing=3)),
            "output totals can no longer be deployed: topic orders has lost 3 records",
        ),
        (
            single(totals(by="x"), totals(by="x")),
            "the plan says recalculate for output totals, but now it would be nothing",
        ),
        (single(totals(by="x")), "no generation of totals is active; when the plan was made, generation 3 was"),
        (single(totals(by="x"), totals(), shards=4), "output totals would get a different number of shards"),
        (
            single(totals(by="x"), totals(), replace(ORDERS, end={0: 5, 1: 4})),
            "topic orders was created again: partition 0 ends at 5, not 6",
        ),
        (single(totals(by="x"), totals(), replace(ORDERS, end={0: 6})), "topic orders has 1 partitions; it had 2"),
        (
            single(totals(by="x"), totals(), replace(ORDERS, missing=3), accept_truncated=("orders",)),
            "topic orders has lost 3 records to retention",
        ),
        (Plan("shop", ()), "output totals is gone"),
        (replace(PLANNED, actions=(*PLANNED.actions, *single(seen()).actions)), "output seen is not in the plan"),
    ],
)
def test_drift_of_code_generations_or_history_is_named(now, reason) -> None:
    found = drift(PLANNED, now)
    assert found is not None
    assert found.startswith(reason)


def test_drift_reading_that_was_made_up_is_named() -> None:
    (action,) = PLANNED.actions
    forged = replace(action, sources=(replace(action.sources[0], topic="elsewhere"),))
    assert drift(replace(PLANNED, actions=(forged,)), PLANNED) == "output totals no longer reads topic elsewhere"


def test_drift_of_a_chain_names_the_first_output_that_drifted() -> None:
    prints = [vips(predicate="other"), configured_totals("30", "country"), seen(policy="skip")]
    now = whole_story(prints=prints, sources=SOURCES)
    found = drift(whole_story(), now)
    assert found is not None
    assert found.startswith("the code or configuration of output totals ")
