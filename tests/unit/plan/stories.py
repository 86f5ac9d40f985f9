"""One plan with a bit of everything, for texts and documents."""

from __future__ import annotations

from dataclasses import replace

from everstate.fingerprints.prints import Setting, UnitPrint
from everstate.plan.actions import Plan
from everstate.plan.facts import Deployed, Options, OutputFacts, SourceFacts
from everstate.plan.preview import Contribution, Counts, DeadRecord, Explanation, FieldChange, Preview, Sample
from everstate.plan.service_decision import decide
from tests.unit.plan.prints import part, seen, source, table, totals, unit, vips

SOURCES = {
    "orders": SourceFacts(
        topic="orders", records=1_000_000, archived=1_200, start={0: 0, 1: 0}, end={0: 600_000, 1: 400_000}
    ),
    "clicks": SourceFacts(topic="clicks", records=500, missing=10, start={0: 10}, end={0: 510}),
    "totals": SourceFacts(topic="totals", records=100, start={0: 0}, end={0: 250}, compacted=True),
}

PREVIEW = Preview(
    output="totals",
    generation=4,
    counts=Counts(new=2, changed=1, stale=30, unchanged=69, newly_dead=4),
    new=(Sample("FR", None, '{"total": 3}'),),
    changed=(Sample("DE", '{"total": 1}', '{"total": 2}'),),
    stale=(Sample("anna", '{"total": 9}'),),
    dead=(DeadRecord("orders", 1, 17, "amount is missing"),),
)


def configured_totals(limit: str, by: str) -> UnitPrint:
    described = totals(by=by, settings={"limit": Setting(limit, limit)})
    predicate = part("expression", f"amount > {limit}", shape="amount > $limit")
    nodes = tuple(replace(n, parts={"p": predicate}) if n.name == "orders/filter" else n for n in described.nodes)
    return replace(described, nodes=nodes)


def outputs() -> dict[str, OutputFacts]:
    old = unit("old", source("orders"), table("orders"))
    return {
        "totals": OutputFacts(
            active=Deployed(print=configured_totals("10", "customer"), generation=3, rate=50_000.0), keys=100
        ),
        "vips": OutputFacts(active=Deployed(print=vips(), generation=5), keys=8),
        "seen": OutputFacts(
            active=Deployed(print=seen(), generation=1), pending=Deployed(print=seen(policy="fail"), generation=2)
        ),
        "old": OutputFacts(active=Deployed(print=old, generation=9), keys=12),
    }


def whole_story(**changes) -> Plan:
    fresh = unit("fresh", source("orders"), table("orders"))
    arguments = {
        "prints": [vips(), configured_totals("20", "country"), seen(policy="skip"), fresh],
        "outputs": outputs(),
        "sources": SOURCES,
        "options": Options(accept_truncated=("clicks",), file="shop.py"),
        **changes,
    }
    return replace(decide("shop", **arguments), previews=(PREVIEW,))


#: A key that was asked for.
EXPLAINED = Explanation(
    key="DE",
    change="changed",
    old='{"total": 1}',
    new='{"total": 2}',
    fields=(FieldChange("total", "1", "2"),),
    records=3,
    contributions=(
        Contribution(topic="orders", key="o1", partition=0, offset=7, value='{"amount": 1}', counts="old"),
        Contribution(topic="orders", key=None, partition=1, offset=9, value='{"amount": 2}', counts="new"),
    ),
)
