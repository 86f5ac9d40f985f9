from __future__ import annotations

from dataclasses import replace

import pytest

from everstate.errors import ConfigurationError
from everstate.fingerprints.prints import UnitPrint
from everstate.plan.actions import (
    Action,
    Begin,
    Continue,
    Keep,
    Migrate,
    Plan,
    Recalculate,
    Refuse,
    Restore,
    Retire,
)
from everstate.plan.differences import Category
from everstate.plan.facts import Deployed, Mismatch, OnChange, Options, OutputFacts, SourceFacts
from everstate.plan.service_decision import decide
from tests.unit.plan.prints import clicks, filtered, grouped, node, part, seen, source, table, totals, unit, vips

ORDERS = SourceFacts(topic="orders", records=1_000_000, start={0: 0, 1: 0}, end={0: 600_000, 1: 400_000})
CLICKS = SourceFacts(topic="clicks", records=500, start={0: 0}, end={0: 500})
TOTALS = SourceFacts(topic="totals", records=100, start={0: 0}, end={0: 250}, compacted=True)
SOURCES = {facts.topic: facts for facts in (ORDERS, CLICKS, TOTALS)}


def running(described: UnitPrint, generation: int = 3, **others) -> OutputFacts:
    return OutputFacts(active=Deployed(print=described, generation=generation, shards=2), keys=100, **others)


def mismatched(facts: OutputFacts, mismatch: Mismatch) -> OutputFacts:
    return replace(facts, active=replace(facts.active, mismatch=mismatch))


def only(
    new: UnitPrint,
    facts: OutputFacts | None = None,
    *sources: SourceFacts,
    on_change: OnChange = "recalculate",
    **options,
) -> Action:
    known = {**SOURCES, **{fact.topic: fact for fact in sources}}
    plan = decide(
        "shop",
        [new],
        {new.output: facts} if facts else {},
        known,
        on_change={new.output: on_change},
        options=Options(**options),
    )
    (action,) = plan.actions
    return action


def test_decide_first_deployment_on_an_empty_topic_begins() -> None:
    action = only(totals())
    assert isinstance(action, Begin)
    assert (action.active, action.keys, action.records) == (None, 0, 1_000_000)
    assert [d.category for d in action.differences] == [Category.NEW_OUTPUT]
    assert action.follows.startswith("The first generation processes")


def test_decide_first_deployment_of_a_stream_without_state_counts_what_it_reads() -> None:
    begun = only(seen(stateful=False))
    assert isinstance(begun, Begin)
    assert begun.records == CLICKS.records
    changed = only(seen(stateful=False), running(seen()))
    assert isinstance(changed, Recalculate)
    assert changed.records == 0


def test_decide_first_deployment_on_a_topic_with_keys_says_so() -> None:
    action = only(totals(), OutputFacts(keys=7))
    assert isinstance(action, Begin)
    assert action.keys == 7
    assert "already has 7 keys" in action.follows


def test_decide_unchanged_output_does_nothing() -> None:
    action = only(totals(), running(totals()))
    assert isinstance(action, Keep)
    assert (action.active, action.differences, action.records) == (3, (), 0)
    assert action.sources[0].end == ORDERS.end


def test_decide_changed_output_recalculates_from_all_its_sources() -> None:
    action = only(totals(predicate="amount > 5"), running(totals()))
    assert isinstance(action, Recalculate)
    assert [d.category for d in action.differences] == [Category.LOGIC]
    assert [(reading.topic, reading.records) for reading in action.sources] == [("orders", 1_000_000)]
    assert (action.estimate.rate, action.estimate.seconds) == (None, None)
    assert action.fingerprint == totals(predicate="amount > 5").fingerprint


def test_decide_estimate_goes_by_the_measured_rate() -> None:
    active = Deployed(print=totals(), generation=3, rate=50_000.0)
    action = only(totals(by="country"), OutputFacts(active=active))
    assert isinstance(action, Recalculate)
    assert (action.estimate.seconds, action.estimate.rate) == (20.0, 50_000.0)


def test_decide_recalculation_that_was_asked_for_has_no_differences() -> None:
    action = only(totals(), running(totals()), recalculate=("totals",))
    assert isinstance(action, Recalculate)
    assert action.asked
    assert action.differences == ()


def test_decide_other_shards_recalculate_with_that_difference_alone() -> None:
    action = only(totals(), running(totals()), shards=4)
    assert isinstance(action, Recalculate)
    assert [(d.category, d.old, d.new) for d in action.differences] == [(Category.SHARDS, "2", "4")]
    assert isinstance(only(totals(), running(totals()), shards=2), Keep)


def test_decide_libraries_that_calculate_otherwise_recalculate() -> None:
    old, new = totals(libraries={"polars": "2.0"}), totals(libraries={"polars": "2.1"})
    assert isinstance(only(new, running(old)), Keep)
    action = only(new, mismatched(running(old), Mismatch("a sample differs", "orders/filter", libraries=True)))
    assert isinstance(action, Recalculate)
    assert [(d.category, d.old, d.new) for d in action.differences] == [(Category.LIBRARY, "polars 2.0", "polars 2.1")]


def test_decide_stream_output_says_that_its_records_stand() -> None:
    action = only(seen(policy="skip"), running(seen()))
    assert isinstance(action, Recalculate)
    assert action.stream
    assert "what the stream has published stands" in action.follows


def test_decide_stream_without_state_reads_nothing_again() -> None:
    action = only(seen(stateful=False, policy="skip"), running(seen(stateful=False)))
    assert isinstance(action, Recalculate)
    assert action.records == 0


# Retained and pending generations


def retained(described: UnitPrint, **others) -> Deployed:
    return Deployed(**{"print": described, "generation": 2, "shards": 2, "end": {"orders": {0: 599_990}}, **others})


def test_decide_version_that_is_retained_is_restored() -> None:
    facts = running(totals(by="country"), retained=(retained(totals()),))
    action = only(totals(), facts)
    assert isinstance(action, Restore)
    assert (action.generation, action.records) == (2, 400_010)
    assert [d.category for d in action.differences] == [Category.GROUPING]


@pytest.mark.parametrize("unusable", [{"resumable": False}, {"shards": 3}, {"print": totals(by="x")}])
def test_decide_retained_version_that_does_not_serve_is_recalculated(unusable) -> None:
    facts = running(totals(by="country"), retained=(retained(totals(), **unusable),))
    assert isinstance(only(totals(), facts), Recalculate)


def test_decide_prepared_generation_of_this_version_is_gone_on_with() -> None:
    facts = running(totals(by="country"), pending=retained(totals(), generation=4, end={"orders": ORDERS.end}))
    action = only(totals(), facts)
    assert isinstance(action, Recalculate)
    assert (action.resumes, action.discards, action.records) == (4, None, 0)


def test_decide_half_built_generation_of_another_version_is_discarded() -> None:
    facts = running(totals(by="country"), pending=retained(totals(by="x"), generation=4))
    action = only(totals(), facts)
    assert isinstance(action, Recalculate)
    assert (action.resumes, action.discards) == (None, 4)


def test_decide_active_version_deployed_again_discards_what_is_being_built() -> None:
    action = only(totals(), running(totals(), pending=retained(totals(by="x"), generation=4)))
    assert isinstance(action, Keep)
    assert action.discards == 4


def test_decide_prepared_generation_needs_no_history() -> None:
    lost = replace(CLICKS, missing=10, start={0: 10})
    facts = running(seen(policy="fail"), pending=Deployed(print=seen(), generation=4, shards=2))
    assert isinstance(only(seen(), facts, lost), Recalculate)
    assert isinstance(only(seen(), running(seen(policy="fail")), lost), Refuse)


# on_change


def test_decide_continue_carries_on_where_stored_state_fits() -> None:
    action = only(clicks(predicate="amount > 5"), running(clicks()), on_change="continue")
    assert isinstance(action, Continue)
    assert action.records == 0


def test_decide_continue_recalculates_where_stored_state_does_not_fit() -> None:
    action = only(totals(by="country"), running(totals()), on_change="continue")
    assert isinstance(action, Recalculate)
    assert action.instead == "State cannot be carried over: the aggregate uses a different key."


def folded(add: str, *, migrates: bool = False) -> UnitPrint:
    """orders, brought together by the user's own function."""
    parts = {"by": part("grouping", "customer"), "add": part("function", add), "remove": part("function", "remove")}
    step = node("totals/aggregate", "orders/table", stateful=True, **parts)
    return unit("totals", source("orders"), table("orders"), replace(step, migrates=migrates))


def test_decide_migrate_converts_and_checks_against_history() -> None:
    action = only(folded("new", migrates=True), running(folded("old")), on_change="migrate")
    assert isinstance(action, Migrate)
    assert action.checked
    assert action.estimate.records == action.records == 1_000_000


def test_decide_migrate_recalculates_where_nothing_converts_state() -> None:
    action = only(folded("new"), running(folded("old", migrates=True)), on_change="migrate")
    assert isinstance(action, Recalculate)
    assert action.instead == "State cannot be migrated: the aggregate has no migrate function."


def test_decide_migrate_behind_the_last_state_reads_no_history() -> None:
    before, after = (
        unit("large", source("orders"), table("orders"), filtered("orders/filter", "orders/table", predicate))
        for predicate in ("amount > 5", "amount > 7")
    )
    action = only(after, running(before), on_change="migrate")
    assert isinstance(action, Migrate)
    assert not action.checked
    assert action.records == 0
    assert action.follows == (
        "The state of generation 3 stays as it is, and nothing is replayed; then what differs is published."
    )


def test_decide_migrate_goes_on_with_a_generation_that_is_half_built() -> None:
    facts = replace(
        running(folded("old")), pending=Deployed(print=folded("new"), generation=4, shards=2, migrated=True)
    )
    action = only(folded("new", migrates=True), facts, on_change="migrate")
    assert isinstance(action, Migrate)
    assert action.resumes == 4
    assert action.discards is None


def test_decide_migrate_of_libraries_that_calculate_otherwise_recalculates() -> None:
    facts = mismatched(running(folded("old")), Mismatch("a sample differs", "orders/filter", libraries=True))
    action = only(folded("new", migrates=True), facts, on_change="migrate")
    assert isinstance(action, Recalculate)
    assert "libraries" in action.instead


def test_decide_migrate_recalculates_where_keys_are_others() -> None:
    action = only(totals(by="country"), running(totals()), on_change="migrate")
    assert isinstance(action, Recalculate)
    assert action.instead == "State cannot be migrated: the aggregate uses a different key."


@pytest.mark.parametrize("on_change", ["continue", "migrate"])
def test_decide_other_shards_are_recalculated_whatever_is_declared(on_change) -> None:
    action = only(totals(), running(totals()), on_change=on_change, shards=4)
    assert isinstance(action, Recalculate)
    assert "the number of shards changed" in action.instead


# Sources


def test_decide_source_that_does_not_exist_is_refused_with_the_command() -> None:
    action = only(totals(), None, replace(ORDERS, exists=False))
    assert isinstance(action, Refuse)
    assert action.problem == "topic orders does not exist"
    assert not action.truncated
    assert action.hint == "Create it: everstate topic create orders"


def test_decide_source_that_cannot_be_read_is_refused_even_if_nothing_changed() -> None:
    action = only(totals(), running(totals()), replace(ORDERS, problem="segment 3 is damaged", cure="Restore it."))
    assert isinstance(action, Refuse)
    assert (action.problem, action.hint) == ("segment 3 is damaged", "Restore it.")
    assert action.follows == "Nothing is started; generation 3 stays in place."


LOST = replace(ORDERS, missing=1_200, start={0: 1_000, 1: 200})


def test_decide_truncated_source_is_refused_with_what_is_missing() -> None:
    action = only(totals(by="country"), running(totals()), LOST)
    assert isinstance(action, Refuse)
    assert action.problem == (
        "topic orders has lost 1,200 records to retention; it begins at offset 1,000 in partition 0, 200 in partition 1"
    )
    assert action.hint.startswith("Continue with what is left: everstate run SERVICE.py --accept-truncated orders")
    assert action.truncated
    assert [d.category for d in action.differences] == [Category.GROUPING]


def test_decide_truncation_that_is_accepted_by_name_goes_on_and_is_noted() -> None:
    action = only(totals(by="country"), running(totals()), LOST, accept_truncated=("orders",))
    assert isinstance(action, Recalculate)
    assert action.sources[0].truncated.startswith("has lost 1,200 records to retention")


def test_decide_truncated_source_with_an_archive_is_whole() -> None:
    action = only(totals(by="country"), running(totals()), replace(LOST, missing=0, archived=1_200))
    assert isinstance(action, Recalculate)
    assert (action.sources[0].archived, action.sources[0].truncated) == (1_200, "")


def test_decide_truncated_source_matters_to_nobody_who_does_not_recalculate() -> None:
    assert isinstance(only(totals(), running(totals()), LOST), Keep)
    continued = only(clicks(predicate="x"), running(clicks()), LOST, on_change="continue")
    assert isinstance(continued, Continue)


@pytest.mark.parametrize("options", [{"on_change": "migrate"}, {"recalculate": ("totals",)}])
def test_decide_truncated_source_is_refused_for_all_that_needs_history(options) -> None:
    assert isinstance(only(totals(result="mean(amount)"), running(totals()), LOST, **options), Refuse)


def test_decide_first_deployment_on_a_truncated_source_depends_on_keys() -> None:
    fresh = only(totals(), None, LOST)
    assert isinstance(fresh, Begin)
    assert fresh.sources[0].truncated
    assert isinstance(only(totals(), OutputFacts(keys=1), LOST), Refuse)


# Several outputs


def test_decide_chain_is_in_topological_order_and_touches_only_what_changed() -> None:
    facts = {"totals": running(totals()), "vips": running(vips(), 5)}
    plan = decide("shop", [vips(), totals(predicate="amount > 5")], facts, SOURCES)
    upstream, downstream = plan.actions
    assert isinstance(upstream, Recalculate)
    assert isinstance(downstream, Keep)
    assert downstream.consumes == ("totals",)
    assert downstream.follows == "Generation 5 carries on unchanged, and consumes what changes in totals."
    assert plan.changes == (upstream,)


def test_decide_source_that_the_service_makes_itself_need_not_exist() -> None:
    plan = decide("shop", [totals(), vips()], {}, {"orders": ORDERS})
    assert [type(action) for action in plan.actions] == [Begin, Begin]


def test_decide_output_of_a_refused_one_is_refused_if_its_topic_is_not_there() -> None:
    plan = decide("shop", [totals(), vips()], {}, {})
    assert [action.output for action in plan.refusals] == ["totals", "vips"]
    running_on = decide("shop", [totals(), vips()], {"vips": running(vips())}, {"totals": TOTALS})
    assert isinstance(running_on.action("vips"), Keep)


def test_decide_output_that_is_no_longer_declared_is_retired() -> None:
    plan = decide("shop", [totals()], {"totals": running(totals()), "vips": running(vips())}, SOURCES)
    action = plan.action("vips")
    assert isinstance(action, Retire)
    assert (action.keys, action.fingerprint) == (100, vips().fingerprint)
    assert [d.category for d in action.differences] == [Category.REMOVED_OUTPUT]
    assert action.follows == "Generation 3 is retired, with a tombstone for each of its 100 keys."


def test_decide_retired_output_keeps_its_topic_if_asked() -> None:
    plan = decide("shop", [], {"vips": running(vips())}, SOURCES, options=Options(keep_topic=True))
    assert plan.action("vips").follows == "Generation 3 is retired and the topic stays as it is."


def test_decide_retired_outputs_come_last_and_readers_before_what_they_read() -> None:
    facts = {"totals": running(totals()), "vips": running(vips()), "seen": running(seen())}
    plan = decide("shop", [seen()], facts, SOURCES)
    assert [action.output for action in plan.actions] == ["seen", "vips", "totals"]


def test_decide_retired_output_names_those_who_still_read_it() -> None:
    plan = decide("shop", [vips()], {"totals": running(totals()), "vips": running(vips())}, SOURCES)
    action = plan.action("totals")
    assert isinstance(action, Retire)
    assert action.readers == ("vips",)
    assert action.follows.endswith("100 keys, which vips will see.")


def test_decide_output_that_was_never_active_is_given_up() -> None:
    facts = {"vips": OutputFacts(pending=Deployed(print=vips(), generation=1))}
    action = decide("shop", [], facts, {}).action("vips")
    assert (action.active, action.discards) == (None, 1)
    assert action.follows == "Discards generation 1, which is being built."


def test_decide_outputs_that_read_each_other_keep_the_order_of_declaration() -> None:
    a = unit("a", source("b"), table("b"), grouped("a/aggregate", "b/table", "x", "y"))
    b = unit("b", source("a"), table("a"))
    assert [action.output for action in decide("shop", [a, b], {}, {}).actions] == ["b", "a"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"recalculate": ("total",)}, "--recalculate total: the service has no such output"),
        ({"accept_truncated": ("order",)}, "--accept-truncated order: the service has no such source topic"),
    ],
)
def test_decide_option_with_an_unknown_name_is_refused(options, message) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        only(totals(), **options)
    assert caught.value.hint


def test_plan_action_of_an_unknown_output_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        Plan("shop", ()).action("totals")


MISSED = Mismatch("a sample of 7 records gives a different result", "orders/filter", "shop.py:12")


@pytest.mark.parametrize("on_change", ["recalculate", "continue", "migrate"])
def test_decide_change_that_the_fingerprint_missed_recalculates_and_asks_for_a_report(on_change) -> None:
    action = only(totals(), mismatched(running(totals()), MISSED), on_change=on_change)
    assert isinstance(action, Recalculate)
    (found,) = action.differences
    assert (found.category, found.node, found.location) == (Category.MISSED, "orders/filter", "shop.py:12")
    assert "a sample of 7 records gives a different result" in found.cause
    assert "report" in found.cause


def test_decide_generation_whose_sample_differs_is_neither_restored_nor_gone_on_with() -> None:
    kept = Deployed(print=totals(by="x"), generation=2, shards=2)
    facts = replace(running(totals()), retained=(kept,))
    assert isinstance(only(totals(by="x"), facts), Restore)
    assert isinstance(only(totals(by="x"), replace(facts, retained=(replace(kept, mismatch=MISSED),))), Recalculate)
    pending = replace(running(totals()), pending=replace(kept, generation=4, mismatch=MISSED))
    action = only(totals(by="x"), pending)
    assert isinstance(action, Recalculate)
    assert (action.resumes, action.discards) == (None, 4)


def test_decide_warnings_are_passed_on_whatever_happens() -> None:
    assert only(totals(), running(totals(), warnings=("look",))).warnings == ("look",)


KNOWN = {"orders": "id-1", "totals": "id-2", "totals.dlq": "id-3"}


def aware(described: UnitPrint, topics: dict[str, str], begins: dict[int, int] | None = None, **others) -> OutputFacts:
    """An output whose generation remembers its topics, and what they are now."""
    known = {**KNOWN, described.output: "id-2", f"{described.output}.dlq": "id-3"}
    active = Deployed(print=described, generation=3, shards=2, topics=known, begins={0: 5})
    return OutputFacts(active=active, topics=topics, begins={0: 5} if begins is None else begins, **others)


PRESENT = {"totals": "id-2", "totals.dlq": "id-3"}


def test_decide_source_that_was_created_again_recalculates_whatever_was_declared() -> None:
    again = replace(ORDERS, id="id-9", end={0: 600_001, 1: 400_000})
    assert isinstance(only(totals(), aware(totals(), PRESENT), replace(ORDERS, id="id-1")), Keep)
    assert isinstance(only(totals(), aware(totals(), PRESENT)), Keep)  # nothing is known of it
    assert isinstance(only(totals(), running(totals()), again), Keep)  # nothing was noted: it is adopted
    for on_change in ("recalculate", "continue", "migrate"):
        action = only(totals(), aware(totals(), PRESENT), again, on_change=on_change)
        assert isinstance(action, Recalculate)
        assert [found.category for found in action.differences] == [Category.RECREATED_SOURCE]
        assert "topic orders was deleted and created again" in action.differences[0].cause
    kept = Deployed(print=totals(by="x"), generation=2, shards=2, topics=KNOWN)
    assert isinstance(only(totals(by="x"), aware(totals(), PRESENT, retained=(kept,)), again), Recalculate)


@pytest.mark.parametrize(
    ("topics", "begins", "said"),
    [
        ({"totals.dlq": "id-3"}, {}, "was deleted, along with"),
        ({**PRESENT, "totals": "id-9"}, {0: 0}, "was deleted and created again"),
        (PRESENT, {0: 8}, "has lost 3 records from its beginning"),
    ],
)
def test_decide_output_topic_that_is_lost_is_published_again_from_state(topics, begins, said) -> None:
    action = only(totals(), aware(totals(), topics, begins))
    assert isinstance(action, Migrate)
    assert not action.checked
    assert action.records == 0
    assert [found.category for found in action.differences] == [Category.OUTPUT_TOPIC]
    assert said in action.differences[0].cause


def test_decide_dead_letters_that_are_lost_are_recalculated() -> None:
    action = only(totals(), aware(totals(), {"totals": "id-2"}))
    assert isinstance(action, Recalculate)
    assert "topic totals.dlq was deleted" in action.differences[0].cause


def test_decide_stream_whose_topic_is_lost_is_published_again() -> None:
    action = only(seen(), aware(seen(), {}))
    assert isinstance(action, Recalculate)
    assert action.again
    assert "publishes the stream from the beginning" in action.follows
    # A stream's records may expire, which is nobody's mistake.
    present = {seen().output: "id-2", f"{seen().output}.dlq": "id-3"}
    assert isinstance(only(seen(), aware(seen(), present, {0: 100})), Keep)
