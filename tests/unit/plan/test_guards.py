from __future__ import annotations

from dataclasses import replace

import pytest

from everstate.errors import ConfigurationError
from everstate.plan.actions import (
    Action,
    Begin,
    Continue,
    Estimate,
    Keep,
    Migrate,
    Reading,
    Recalculate,
    Restore,
    Retire,
)
from everstate.plan.guards import Limits, Policy, Risk, concerns, decision
from everstate.plan.preview import Counts
from tests.unit.plan.prints import totals

BASE = {"output": "totals", "fingerprint": totals().fingerprint, "active": 3}
RECALCULATE = Recalculate(**BASE, estimate=Estimate(10))


def risks(action: Action = RECALCULATE, limits: Limits | None = None, **counts: int) -> list[Risk]:
    return [concern.risk for concern in concerns(Counts(**counts), action, limits)]


def test_concerns_exactly_a_fifth_of_a_hundred_keys_is_none() -> None:
    assert risks(stale=20, unchanged=80) == []


def test_concerns_one_key_more_than_a_fifth_is_many_tombstones() -> None:
    (concern,) = concerns(Counts(stale=21, unchanged=79), RECALCULATE)
    assert concern.risk is Risk.MANY_TOMBSTONES
    assert concern.message == "21 of 100 keys of totals (21 %) would be tombstoned."
    assert concern.hint == "If this is intended: everstate run SERVICE.py --approve"


def test_concerns_table_of_ninety_nine_keys_is_too_small_for_the_share() -> None:
    assert risks(stale=98, unchanged=1) == []
    assert risks(stale=98, unchanged=2) == [Risk.MANY_TOMBSTONES]


def test_concerns_changed_keys_are_live_and_new_keys_are_not() -> None:
    assert risks(stale=20, changed=80) == []
    assert risks(stale=20, changed=79, new=1_000) == []
    assert risks(stale=21, changed=79, new=1_000) == [Risk.MANY_TOMBSTONES]


@pytest.mark.parametrize("live", [10, 30, 70, 1_000, 3_000_000_000])
def test_concerns_share_is_exact_for_every_size(live) -> None:
    limits = Limits(share=0.1, least=0)
    stale = live // 10
    assert risks(limits=limits, stale=stale, unchanged=live - stale) == []
    assert risks(limits=limits, stale=stale + 1, unchanged=live - stale - 1) == [Risk.MANY_TOMBSTONES]


@pytest.mark.parametrize("keys", [1, 99, 100, 5_000])
def test_concerns_all_keys_of_a_table_of_any_size_is_one_concern(keys) -> None:
    assert risks(stale=keys) == [Risk.EMPTIED_TABLE]
    assert risks(stale=keys, new=10) == [Risk.EMPTIED_TABLE]


def test_concerns_table_that_was_empty_is_none() -> None:
    assert risks() == []
    assert risks(new=5_000) == []


def test_concerns_tombstones_beside_newly_dead_records_are_one_below_any_share() -> None:
    assert risks(stale=1, unchanged=1_000, newly_dead=1) == [Risk.DEAD_RECORDS]
    assert risks(stale=50, unchanged=50, newly_dead=1) == [Risk.MANY_TOMBSTONES, Risk.DEAD_RECORDS]


def test_concerns_newly_dead_records_without_tombstones_are_none() -> None:
    assert risks(unchanged=1_000, changed=3, newly_dead=10) == []


def test_concerns_tombstones_of_a_truncated_source_are_one_below_any_share() -> None:
    truncated = replace(RECALCULATE, sources=(Reading("orders", truncated="has lost 3 records to retention"),))
    assert risks(truncated, stale=1, unchanged=99) == [Risk.EXPIRED_HISTORY]
    assert risks(truncated, changed=1, unchanged=99) == []
    (concern,) = concerns(Counts(stale=1, unchanged=99), RECALCULATE, expired=["orders"])
    assert concern.message == (
        "1 key of totals would be tombstoned, perhaps only because orders lost the records that they came from."
    )


def test_concerns_retired_output_always_is() -> None:
    (concern,) = concerns(Counts(stale=2), Retire(**BASE, keys=2))
    assert concern.risk is Risk.RETIRED_OUTPUT
    assert concern.message == "totals is no longer declared and would be retired: 2 keys would be tombstoned."
    (kept,) = concerns(Counts(), Retire(**BASE, keys=2, keep_topic=True))
    (empty,) = concerns(Counts(), Retire(**BASE, keys=0))
    assert kept.message == empty.message == "totals is no longer declared and would be retired: its topic stays."


def test_concerns_output_that_was_never_active_is_none() -> None:
    assert risks(Retire(output="totals", fingerprint="f", discards=1)) == []


@pytest.mark.parametrize(
    "action",
    [
        Begin(output="totals", fingerprint="f", keys=200),
        Migrate(**BASE, estimate=Estimate(10)),
        Restore(**BASE, generation=2, estimate=Estimate(10)),
    ],
)
def test_concerns_every_cutover_is_guarded(action) -> None:
    assert risks(action, stale=200) == [Risk.EMPTIED_TABLE]


@pytest.mark.parametrize("action", [Keep(**BASE), Continue(**BASE)])
def test_concerns_action_that_publishes_nothing_is_none(action) -> None:
    assert risks(action, stale=200) == []


@pytest.mark.parametrize("limits", [{"share": -0.1}, {"share": 1.1}, {"least": -1}])
def test_limits_out_of_range_are_refused(limits) -> None:
    with pytest.raises(ConfigurationError):
        Limits(**limits)


@pytest.mark.parametrize("policy", list(Policy))
def test_decision_without_concerns_or_with_approval_goes_on(policy) -> None:
    found = concerns(Counts(stale=1), RECALCULATE)
    assert decision((), policy) is Policy.APPROVE
    assert decision(found, policy, approved=True) is Policy.APPROVE
    assert decision(found, policy) is policy


def test_counts_written_is_what_differs() -> None:
    assert Counts(new=1, changed=2, stale=4, unchanged=8).written == 7
