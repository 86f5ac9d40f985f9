"""The functions that conformance cases name by id; null is printed as the word `null` when it becomes text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_origin

#: Functions that make text of whatever they get.
TEXTS = frozenset({"concat", "paren", "append", "append_sorted", "remove_substring"})


class InexpressibleError(Exception):
    """What a case needs and cannot be said through the public API, or is not known here."""


class Known(dict[str, Any]):
    """Functions by their id.

    Args:
        what: What they are.
        functions: By id.
    """

    def __init__(self, what: str, functions: dict[str, Any]) -> None:
        super().__init__(functions)
        self._what = what

    def __missing__(self, name: str) -> Any:
        raise InexpressibleError(f"{self._what} {name!r} is not known; there are {', '.join(self)}")


def text(value: Any) -> str:
    return "null" if value is None else str(value)


def binary(spec: dict[str, Any]) -> Any:
    """A joiner, adder, subtractor or merger by its id."""
    functions = {
        "concat": lambda a, b: text(a) + spec.get("sep", "") + text(b),
        "paren": lambda a, b: f"({text(a)},{text(b)})",
        "sum": lambda a, b: a + b,
        "minus": lambda a, b: a - b,
        "append": lambda a, b: text(a) + text(b),
        "append_sorted": lambda a, b: "".join(sorted(text(a) + text(b))),
        "remove_substring": lambda a, b: text(a).replace(text(b), ""),
        "plus_one": lambda a, _: a + 1,
        "set_union": lambda a, b: sorted({*a, *_members(b)}),
        "set_difference": lambda a, b: sorted({*a} - {*_members(b)}),
    }
    return Known("the function", functions)[spec["fn"]]


def _members(value: Any) -> list[Any]:
    """What a set gets or loses: a value, or all of another set."""
    return value if isinstance(value, list) else [value]


def kind_of(values: Iterable[Any]) -> Any:
    """The type that all these values have; lists by what is in them, and text where there is nothing.

    Raises:
        InexpressibleError: If there is none.
    """
    present = [value for value in values if value is not None]
    if present and all(isinstance(value, list) for value in present):
        return list[kind_of(item for value in present for item in (value if isinstance(value, list) else [value]))]
    kinds = {type(value) for value in present} or {str}
    if kinds == {int, float}:
        return float
    if len(kinds) > 1 or kinds - {str, int, float, bool}:
        named = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise InexpressibleError(f"values of one topic have one plain type or are lists of it, but these are: {named}")
    return kinds.pop()


def returns(spec: dict[str, Any], value: Any) -> Any:
    """The type that a function gives for values whose first is of a type."""
    if spec["fn"] in TEXTS:
        return str
    if spec["fn"].startswith("set_"):
        return value if get_origin(value) is list else list[value]
    return value


def aggregate_type(adder: dict[str, Any], start: Any, values: list[Any]) -> Any:
    """The type of an aggregate that begins with a value and adds others."""
    if adder["fn"] in TEXTS:
        return str
    if adder["fn"].startswith("set_"):
        return list[kind_of([*start, *values])]
    return kind_of([start] if adder["fn"] == "plus_one" else [start, *values])


def _null_tests(key: Any, value: Any) -> Any:
    return {"null": (None, value), "NULL": None}.get(key, (value, value))


#: (key, value) -> (group key, grouped value), or None where the row belongs to no group.
GROUPS: dict[str, Any] = Known(
    "the grouping",
    {
        "identity": lambda k, v: (k, v),
        "value_as_key": lambda _, v: (v, v),
        "value_as_key_key_as_value": lambda k, v: (v, k),
        "region_to_name_length": lambda k, v: (v, len(k)),
        "key_chars": lambda k, _: (k[0], k[1]),
        "key_and_int_of_value": lambda k, v: (k, int(v)),
        "null_tests": _null_tests,
    },
)

FOREIGN_KEYS: dict[str, Any] = Known(
    "the foreign key",
    {
        "after_pipe": lambda v: v.split("|")[1] if "|" in v else None,
        "after_pipe_returnNull_is_null": lambda v: None if v.split("|")[1] == "returnNull" else v.split("|")[1],
        "always_null": lambda _: None,
        "int_before_dash": lambda v: int(v.split("-")[0]),
    },
)

KEY_MAPPERS: dict[str, Any] = Known(
    "the key",
    {
        "second_csv_token_or_null": lambda v: v.split(",")[1] if "," in v else None,
        "value": lambda v: v,
        "always_null": lambda _: None,
    },
)

PREDICATES: dict[str, Any] = Known(
    "the predicate",
    {
        "even": lambda v: v % 2 == 0,
        "equals_accept": lambda v: v.lower() == "accept",
    },
)

MAPPERS: dict[str, tuple[Any, type]] = Known(
    "the mapper",
    {
        "int": (int, int),
        "negated_int": (lambda v: -int(v), int),
        "first_digit": (lambda v: int(str(v)[0]), int),
    },
)
