from __future__ import annotations

from dataclasses import replace

from everstate.fingerprints.prints import UnitPrint
from everstate.plan.actions import Estimate, Plan, Restore
from everstate.plan.facts import Deployed, OutputFacts, SourceFacts
from everstate.plan.service_decision import decide
from everstate.plan.text import Span, Style, plain, text
from tests.unit.plan.prints import node, part, seen, source, table, totals, unit, vips
from tests.unit.plan.stories import whole_story

WHOLE_STORY = """\
Service shop: 4 of 5 outputs would change.

What changed:
  The setting limit changed: 10 -> 20 (shop.py:5)
    changed configuration of totals

  The aggregate uses a different key: customer -> country (shop.py:7)
    changed grouping of totals

  Records that cannot be processed are handled differently: dead-letter -> skip
    changed policy of seen

What follows:
  ~ totals would be recalculated
      reads 1,000,000 records from orders, 1,200 of them in the archive
      A new generation is built alongside generation 3; then what differs is
        published, with a tombstone for each key that it does not produce.
      preview █▓▒▒▒▒▒▒▒▒▒▒▒░░░░░░░░░░░░░░░░░░░░░░░░░░░
      █ 2 new, ▓ 1 changed, ▒ 30 tombstones, ░ 69 unchanged; 33 records to write
        + FR: {"total": 3}
        ~ DE: {"total": 1} -> {"total": 2}
        - anna: {"total": 9}
      4 records that the active version accepts would be dead-lettered
        ! orders, partition 1, offset 17: amount is missing
      needs approval: 30 of 100 keys of totals (30 %) would be tombstoned.
      needs approval: 30 keys of totals would be tombstoned, and 4 records that
        the active version accepts would be dead-lettered.
  ~ seen would be recalculated
      reads 500 records from clicks
      incomplete: topic clicks has lost 10 records to retention; it begins at
        offset 10 in partition 0
      depends on the order of arrival: clicks/stateful
      discards generation 2, which is being built
      State is rebuilt alongside generation 1 without publishing; what the
        stream has published stands, and the new version picks up where the old
        one stops.
  + fresh would begin (shop.py:9)
      reads 1,000,000 records from orders, 1,200 of them in the archive
      The first generation processes all that its sources have and publishes as
        it goes.
  - old would be retired (was at shop.py:9)
      Generation 9 is retired, with a tombstone for each of its 12 keys.
      needs approval: old is no longer declared and would be retired: 12 keys
        would be tombstoned.
  = vips unchanged; vips takes in what differs in totals

Cost: 2,000,500 records to read; the time is not known yet: no recalculation of
  this size was measured here.
If this is intended: everstate run shop.py --approve
Plan: 1 to begin, 2 to recalculate, 1 to retire, 1 unchanged. Apply it:
  everstate run shop.py"""


def test_text_of_a_whole_plan() -> None:
    assert plain(text(whole_story(), width=80)) == WHOLE_STORY


def test_text_of_a_service_that_did_not_change_is_short() -> None:
    facts = OutputFacts(active=Deployed(print=totals(), generation=3))
    plan = decide("shop", [totals()], {"totals": facts}, {"orders": SourceFacts(topic="orders")})
    assert plain(text(plan)) == "Service shop: nothing changes.\n  = totals unchanged"


def test_text_of_a_refusal_says_what_is_wrong_and_what_to_do() -> None:
    facts = {"vips": OutputFacts(active=Deployed(print=vips(), generation=3))}
    assert plain(text(decide("shop", [vips(predicate="x")], facts, {}))) == (
        "Service shop cannot start: vips is refused.\n"
        "\n"
        "What changed:\n"
        "  The filter changed: total > 1000 -> x (shop.py:13)\n"
        "    changed logic of vips\n"
        "\n"
        "What follows:\n"
        "  ! vips is refused\n"
        "      topic totals does not exist.\n"
        "      Create it: everstate topic create totals\n"
        "      Nothing is started; generation 3 stays in place.\n"
        "\n"
        "Plan: 1 refused."
    )


def test_text_places_are_relative_to_the_root() -> None:
    described = replace(seen(), nodes=tuple(replace(n, location=f"/home/me/{n.location}") for n in seen().nodes))
    plan = decide("shop", [described], {}, {"clicks": SourceFacts(topic="clicks")})
    assert "seen would begin (shop.py:9)" in plain(text(plan, root="/home/me/"))
    assert "seen would begin (/home/me/shop.py:9)" in plain(text(plan))


def test_text_of_what_was_removed_points_to_the_old_place() -> None:
    stateless = seen(stateful=False)
    facts = {"seen": OutputFacts(active=Deployed(print=seen(), generation=1))}
    plan = decide("shop", [stateless], facts, {"clicks": SourceFacts(topic="clicks")})
    cause = "A stateful function was removed, along with its state"
    assert f"{cause}: count -> nothing (was at shop.py:6)" in plain(text(plan))


def test_text_of_circumstances_of_a_recalculation() -> None:
    facts = OutputFacts(
        active=Deployed(print=totals(), generation=3), pending=Deployed(print=totals(by="x"), generation=4)
    )
    sources = {"orders": SourceFacts(topic="orders")}
    plan = decide("shop", [totals(by="x")], {"totals": facts}, sources, on_change={"totals": "continue"})
    shown = plain(text(plan))
    assert "  State cannot be carried over: the aggregate uses a different key.\n" in shown
    assert "  resumes generation 4, which was prepared or left half built\n" in shown


def test_text_styles_say_what_a_word_is() -> None:
    spans = {span for line in text(whole_story()) for span in line}
    assert {
        Span("totals", Style.OUTPUT),
        Span("would be recalculated", Style.ACTION),
        Span("changed grouping", Style.CATEGORY),
        Span("customer", Style.OLD),
        Span("country", Style.NEW),
        Span("shop.py:7", Style.PLACE),
        Span("needs approval: ", Style.WARNING),
    } <= spans


def test_text_with_square_brackets_is_kept_as_it_is() -> None:
    facts = {"totals": OutputFacts(active=Deployed(print=totals(predicate="[bold]"), generation=1))}
    plan = decide("shop", [totals(predicate="[/bold]")], facts, {"orders": SourceFacts(topic="orders")})
    assert "[bold] -> [/bold]" in plain(text(plan))


def test_text_of_an_empty_plan_is_one_line() -> None:
    assert plain(text(Plan("shop", ()))) == "Service shop: nothing changes."


def test_text_of_a_preview_names_outputs_whose_changes_come_on_top() -> None:
    plan = whole_story()
    (preview,) = plan.previews
    shown = plain(text(replace(plan, previews=(replace(preview, upstream=("orders-clean",)),))))
    assert "  these counts leave out what changes in orders-clean\n" in shown


def test_text_of_a_rollback_says_that_it_was_asked_for() -> None:
    back = Restore(output="totals", fingerprint="f", active=2, generation=1, estimate=Estimate(0), asked=True)
    shown = plain(text(Plan("shop", (back,))))
    assert "      requested with everstate rollback\n      Generation 1 takes over again: it catches up" in shown


def test_text_of_a_migration_says_what_proves_it_and_what_follows_if_it_does_not_hold() -> None:
    def folded(add: str) -> UnitPrint:
        parts = {"by": part("grouping", "customer"), "add": part("function", add), "remove": part("function", "less")}
        step = node("sums/aggregate", "orders/table", stateful=True, at="shop.py:4", **parts)
        return unit("sums", source("orders"), table("orders"), replace(step, migrates=True))

    plan = decide(
        "shop",
        [folded("new")],
        {"sums": OutputFacts(active=Deployed(print=folded("old"), generation=3))},
        {"orders": SourceFacts(topic="orders", records=500_000, end={0: 500_000})},
        on_change={"sums": "migrate"},
    )
    assert plain(text(plan)) == (
        "Service shop: 1 of 1 output would change.\n"
        "\n"
        "What changed:\n"
        "  The aggregate changed: old -> new (shop.py:4)\n"
        "    changed logic of sums\n"
        "\n"
        "What follows:\n"
        "  ~ sums would be migrated\n"
        "      reads 500,000 records from orders\n"
        "      The state of generation 3 is converted, and a sample of its keys is recalculated to check it; then "
        "what differs is published. If the sample disagrees, the whole output is recalculated.\n"
        "\n"
        "Cost: 500,000 records to read; the time is not known yet: no recalculation of this size was measured here.\n"
        "Plan: 1 to migrate. Apply it: everstate run SERVICE.py"
    )
