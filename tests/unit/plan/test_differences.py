from __future__ import annotations

from dataclasses import replace

import pytest

from everstate.fingerprints.prints import Setting, UnitPrint
from everstate.plan.differences import Category, differences
from tests.unit.plan.prints import filtered, grouped, node, part, source, table, totals, unit


def found(old: UnitPrint | None, new: UnitPrint | None) -> list[tuple[str, str, str | None, str | None]]:
    return [(str(d.category), d.node, d.old, d.new) for d in differences(old, new)]


def with_node(described: UnitPrint, name: str, **changes) -> UnitPrint:
    nodes = tuple(replace(node, **changes) if node.name == name else node for node in described.nodes)
    return replace(described, nodes=nodes)


def test_differences_same_meaning_is_empty() -> None:
    moved = with_node(totals(), "orders/filter", location="elsewhere.py:99")
    other_libraries = replace(moved, libraries={"polars": "2.1"}, settings={"unused": Setting("a", "1")})
    assert differences(totals(), other_libraries) == ()


def test_differences_output_only_in_new_is_a_new_output() -> None:
    (difference,) = differences(None, totals())
    assert difference.category is Category.NEW_OUTPUT
    assert difference.cause == "The output totals is new."
    assert difference.location == "shop.py:9"


def test_differences_output_only_in_old_is_a_removed_output() -> None:
    (difference,) = differences(totals(), None)
    assert (difference.category, difference.cause) == (
        Category.REMOVED_OUTPUT,
        "The output totals is no longer declared.",
    )


def test_differences_of_nothing_is_empty() -> None:
    assert differences(None, None) == ()


def joined() -> UnitPrint:
    return unit(
        "totals",
        source("orders"),
        table("orders"),
        filtered("orders/filter", "orders/table", "amount > 0"),
        grouped("totals/aggregate", "orders/filter", "customer", "sum(amount)"),
        source("people", at="shop.py:4"),
        table("people", at="shop.py:4"),
        node(
            "totals/join",
            "totals/aggregate",
            "people/table",
            stateful=True,
            at="shop.py:8",
            how=part("parameter", "how=inner"),
        ),
    )


def test_differences_joined_source_is_a_new_topic_and_more_state() -> None:
    assert found(totals(), joined()) == [
        ("new source topic", "people", None, "people"),
        ("more intermediate state", "totals/join", None, "how=inner"),
    ]
    first, second = differences(totals(), joined())
    assert (first.cause, first.location) == ("The topic people is now read.", "shop.py:4")
    assert (second.cause, second.location) == ("A join that keeps state was added.", "shop.py:8")


def test_differences_join_taken_away_is_a_removed_topic_and_less_state() -> None:
    assert found(joined(), totals()) == [
        ("removed source topic", "people", "people", None),
        ("less intermediate state", "totals/join", "how=inner", None),
    ]
    assert differences(joined(), totals())[1].cause == "A join was removed, along with its state."


def test_differences_replaced_source_is_one_removed_and_one_new_topic() -> None:
    new = unit(
        "totals",
        source("purchases"),
        table("purchases"),
        filtered("purchases/filter", "purchases/table", "amount > 0"),
        grouped("totals/aggregate", "purchases/filter", "customer", "sum(amount)"),
    )
    assert found(totals(), new) == [
        ("new source topic", "purchases", None, "purchases"),
        ("removed source topic", "orders", "orders", None),
    ]


def test_differences_source_read_as_a_table_is_more_state() -> None:
    stream = unit("seen", source("orders"))
    assert found(stream, unit("seen", source("orders"), table("orders"))) == [
        ("more intermediate state", "orders/table", None, None)
    ]


def test_differences_topic_read_twice_is_no_new_topic() -> None:
    again = replace(source("orders"), name="orders#2")
    merge = node("totals/merge", "orders", "orders#2")
    old, new = unit("totals", source("orders")), unit("totals", source("orders"), again, merge)
    assert [row[:2] for row in found(old, new)] == [
        ("changed logic", "orders#2"),
        ("changed logic", "totals/merge"),
    ]
    assert "read in one fewer place" in differences(new, old)[0].cause


def test_differences_other_key_of_a_source_is_a_changed_source_key() -> None:
    new = totals()
    new = replace(new, nodes=(source("orders", key="order_id"), *new.nodes[1:]))
    (difference,) = differences(totals(), new)
    assert difference.category is Category.SOURCE_KEY
    assert (difference.cause, difference.old, difference.new) == (
        "The key of the source orders changed.",
        "id",
        "order_id",
    )


def columned(columns: str, source_columns: str = "a: int", **parts) -> UnitPrint:
    """A select with these columns, and steps around it that all have a schema, as real ones do."""
    select = node("orders/select", "orders", at="shop.py:6", schema=part("schema", columns), **parts)
    after = node("orders/filter", "orders/select", schema=part("schema", columns), predicate=part("expression", "p"))
    return unit("seen", source("orders", schema=source_columns), select, after)


def test_differences_other_columns_of_a_source_are_named_once_at_the_source() -> None:
    assert found(columned("a: int", "a: int"), columned("a: str", "a: str")) == [
        ("changed private schema", "orders", "a: int", "a: str")
    ]


def test_differences_column_added_in_between_is_named_once_with_all_columns() -> None:
    one = {"a": part("expression", "a + 1")}
    assert found(columned("a: int", **one), columned("a: int, b: int", **one, b=part("expression", "b * 2"))) == [
        ("changed private schema", "orders/select", "a: int", "a: int, b: int")
    ]


def test_differences_column_calculated_otherwise_with_another_type_is_changed_logic_alone() -> None:
    old, new = columned("a: int", a=part("expression", "a + 1")), columned("a: float", a=part("expression", "a + 0.5"))
    assert found(old, new) == [("changed logic", "orders/select", "a + 1", "a + 0.5")]


def test_differences_column_added_and_another_changed_are_told_apart() -> None:
    old = columned("a: int", a=part("expression", "a + 1"))
    new = columned("a: int, b: int", a=part("expression", "a + 2"), b=part("expression", "b"))
    assert [row[0] for row in found(old, new)] == ["changed private schema", "changed logic"]


def test_differences_columns_alone_are_changed_private_schema() -> None:
    assert found(columned("a: int"), columned("a: int, key")) == [
        ("changed private schema", "orders/select", "a: int", "a: int, key")
    ]


def test_differences_columns_that_a_map_declares_are_named_beside_those_of_its_source() -> None:
    def version(columns: str, declared: str) -> UnitPrint:
        mapped = node("orders/map", "orders", at="shop.py:6", schema=part("schema", declared))
        return unit("seen", source("orders", schema=columns), mapped)

    assert found(version("a", "x"), version("b", "y")) == [
        ("changed private schema", "orders", "a", "b"),
        ("changed private schema", "orders/map", "x", "y"),
    ]


def configured(limit: str, *, text: str | None = None, shape: str = "amount > $limit") -> UnitPrint:
    predicate = part("expression", f"amount > {limit}", shape=shape)
    described = with_node(totals(), "orders/filter", parts={"predicate": predicate})
    return replace(described, settings={"limit": Setting(limit, text or limit), "unused": Setting("u", "u")})


def test_differences_other_value_of_a_setting_is_changed_configuration() -> None:
    (difference,) = differences(configured("10"), configured("20"))
    assert difference.category is Category.CONFIGURATION
    assert (difference.node, difference.location) == ("orders/filter", "shop.py:5")
    assert (difference.cause, difference.old, difference.new) == (
        "The setting limit changed.",
        "10",
        "20",
    )


def test_differences_secret_setting_shows_only_its_mask() -> None:
    (difference,) = differences(configured("10", text="***"), configured("20", text="***"))
    assert (difference.old, difference.new) == ("***", "***")


def test_differences_constant_that_becomes_a_setting_of_the_same_value_is_empty() -> None:
    assert differences(totals(predicate="amount > 10"), configured("10")) == ()


def test_differences_setting_and_logic_changed_together_are_both_named() -> None:
    new = configured("20", shape="amount >= $limit")
    assert [row[0] for row in found(configured("10"), new)] == ["changed configuration", "changed logic"]


def test_differences_setting_without_a_name_is_still_configuration() -> None:
    old, new = (replace(configured(limit), settings={}) for limit in ("10", "20"))
    assert [(d.category, d.cause) for d in differences(old, new)] == [
        (Category.CONFIGURATION, "A setting of the filter changed.")
    ]


def test_differences_other_predicate_is_changed_logic() -> None:
    (difference,) = differences(totals(), totals(predicate="amount > 5"))
    assert difference.category is Category.LOGIC
    assert (difference.node, difference.cause) == ("orders/filter", "The filter changed.")
    assert (difference.old, difference.new) == ("amount > 0", "amount > 5")
    assert difference.location == "shop.py:5"


def test_differences_other_function_of_one_name_names_it_and_its_own_line() -> None:
    def version(digest: str) -> UnitPrint:
        mapped = node(
            "orders/map",
            "orders",
            at="shop.py:6",
            fn=part("function", "price", digest=digest, location="prices.py:2"),
        )
        return unit("seen", source("orders"), mapped)

    (difference,) = differences(version("a"), version("b"))
    assert difference.cause == "The function price of the map changed."
    assert (difference.location, difference.old, difference.new) == ("prices.py:2", None, None)


def test_differences_two_expressions_on_one_line_are_one_difference() -> None:
    def version(first: str, second: str) -> UnitPrint:
        parts = {"a": part("expression", first), "b": part("expression", second)}
        return unit("seen", source("orders"), node("orders/select", "orders", at="shop.py:6", **parts))

    assert found(version("a + 1", "b + 1"), version("a + 2", "b + 2")) == [
        ("changed logic", "orders/select", "a + 1, b + 1", "a + 2, b + 2")
    ]


def test_differences_other_semantics_of_an_operation_says_who_changed() -> None:
    def version(number: str) -> UnitPrint:
        return with_node(totals(), "orders/filter", parts={"semantics": part("semantics", number)})

    (difference,) = differences(version("1"), version("2"))
    assert (difference.category, difference.cause) == (
        Category.LOGIC,
        "Everstate now calculates the filter differently.",
    )


def test_differences_other_group_is_changed_grouping() -> None:
    assert found(totals(), totals(by="country")) == [("changed grouping", "totals/aggregate", "customer", "country")]


def test_differences_added_rekey_is_changed_grouping() -> None:
    rekey = node("orders/rekey", "orders", at="shop.py:6", by=part("grouping", "customer"))
    old, new = unit("seen", source("orders")), unit("seen", source("orders"), rekey)
    assert found(old, new) == [("changed grouping", "orders/rekey", None, "customer")]
    assert found(new, old) == [("changed grouping", "orders/rekey", "customer", None)]


@pytest.mark.parametrize(
    ("old", "new", "cause"),
    [
        ("2.0", "2.1", "The version of the package numpy changed."),
        (None, "2.1", "The package numpy is now used."),
        ("2.0", None, "The package numpy is no longer used."),
    ],
)
def test_differences_package_of_another_version_is_changed_package(old, new, cause) -> None:
    before, after = ({"numpy": version} if version else {} for version in (old, new))
    (difference,) = differences(totals(packages=before), totals(packages=after))
    assert (difference.category, difference.cause) == (Category.PACKAGE, cause)
    assert (difference.old, difference.new) == (old, new)


def test_differences_other_policy_is_changed_policy() -> None:
    assert found(totals(), totals(policy="skip")) == [("changed policy", "", "dead-letter", "skip")]


def test_differences_table_that_becomes_a_stream_is_changed_logic() -> None:
    assert found(totals(), totals(kind="stream")) == [("changed logic", "totals/output", "table", "stream")]


def test_differences_of_functions_that_were_looked_at_otherwise_say_so() -> None:
    code = {"predicate": part("function", "kept", digest="then")}
    old = with_node(totals(), "orders/filter", parts=code)
    new = with_node(totals(), "orders/filter", parts={"predicate": part("function", "kept", digest="now")})
    causes = {scheme: differences(old, replace(new, scheme=scheme))[0].cause for scheme in (1, 2)}
    assert causes[2] == "This version of Everstate reads code differently, so the filter may have changed."
    assert causes[1] != causes[2]


def test_differences_of_a_scheme_without_functions_are_none() -> None:
    assert differences(totals(), replace(totals(), scheme=2)) == ()
