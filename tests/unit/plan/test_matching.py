from __future__ import annotations

from everstate.fingerprints.prints import UnitPrint
from everstate.plan.differences import differences
from everstate.plan.matching import Match, source_topics
from tests.unit.plan.prints import filtered, grouped, node, part, source, table, totals, unit


def chain(*predicates: str) -> UnitPrint:
    """orders through filters, named as the service would name them, into one aggregate."""
    nodes = [source("orders"), table("orders")]
    for place, predicate in enumerate(predicates):
        name = "orders/filter" if not place else f"orders/filter#{place + 1}"
        nodes.append(filtered(name, nodes[-1].name, predicate))
    return unit("totals", *nodes, grouped("totals/aggregate", nodes[-1].name, "customer", "sum(amount)"))


def steps(old: UnitPrint, new: UnitPrint) -> list[tuple[str, str | None, str | None]]:
    return [(d.cause, d.old, d.new) for d in differences(old, new)]


def test_match_filter_inserted_first_leaves_the_others_alone() -> None:
    assert steps(chain("a", "b"), chain("x", "a", "b")) == [("A filter was added.", None, "x")]


def test_match_filter_inserted_between_leaves_the_others_alone() -> None:
    assert steps(chain("a", "b"), chain("a", "x", "b")) == [("A filter was added.", None, "x")]


def test_match_filter_inserted_before_ten_renames_none() -> None:
    ten = [f"p{n}" for n in range(10)]
    assert steps(chain(*ten), chain("x", *ten)) == [("A filter was added.", None, "x")]
    assert steps(chain("x", *ten), chain(*ten)) == [("A filter was removed.", "x", None)]


def test_match_filter_replaced_is_changed() -> None:
    assert steps(chain("a", "b", "c"), chain("a", "x", "c")) == [("The filter changed.", "b", "x")]


def test_match_filter_inserted_and_another_changed_are_told_apart() -> None:
    assert steps(chain("a", "b"), chain("x", "a", "c")) == [
        ("A filter was added.", None, "x"),
        ("The filter changed.", "b", "c"),
    ]


def test_match_step_replaced_by_one_of_another_kind_is_removed_and_added() -> None:
    mapped = unit(
        "totals",
        source("orders"),
        table("orders"),
        node("orders/map", "orders/table", fn=part("function", "clean")),
        grouped("totals/aggregate", "orders/map", "customer", "sum(amount)"),
    )
    assert steps(chain("a"), mapped) == [("A map was added.", None, "clean"), ("A filter was removed.", "a", None)]


def test_match_steps_in_another_order_are_rewired() -> None:
    found = differences(chain("a", "b"), chain("b", "a"))
    assert {d.cause for d in found} == {
        "The filter gets its rows from a different step.",
        "The aggregate gets its rows from a different step.",
    }
    match = Match.of(chain("a", "b"), chain("b", "a"))
    assert (match.added, match.removed) == ((), ())


def test_match_sides_of_a_join_exchanged_are_rewired() -> None:
    def version(*sides: str) -> UnitPrint:
        join = node("out/join", *(f"{side}/table" for side in sides), stateful=True, how=part("parameter", "left"))
        return unit("out", source("a"), table("a"), source("b"), table("b"), join)

    (difference,) = differences(version("a", "b"), version("b", "a"))
    assert (difference.node, difference.old, difference.new) == ("out/join", "a/table, b/table", "b/table, a/table")


def test_match_equal_steps_on_two_chains_keep_to_their_own() -> None:
    def version(left: str, right: str) -> UnitPrint:
        join = node("out/join", "a/filter", "b/filter", stateful=True)
        return unit(
            "out",
            source("a"),
            filtered("a/filter", "a", left),
            source("b"),
            filtered("b/filter", "b", right),
            join,
        )

    assert steps(version("x", "x"), version("x", "y")) == [("The filter changed.", "x", "y")]
    assert steps(version("x", "x"), version("y", "x")) == [("The filter changed.", "x", "y")]


def test_match_everything_of_one_print_with_itself() -> None:
    match = Match.of(totals(), totals())
    assert [(was.name, now.name) for was, now in match.kept] == [(n.name, n.name) for n in totals().nodes]
    assert (match.added, match.removed, match.rewired) == ((), (), ())


def test_source_topics_are_sorted_and_named_once() -> None:
    again = node("b#2", topic=part("topic", "b"))
    assert source_topics(unit("out", source("b"), again, source("a"))) == ("a", "b")
