"""The functions that conformance cases name by id; null is printed as the word `null` when it becomes text."""

from __future__ import annotations

from typing import Any


def text(value: Any) -> str:
    return "null" if value is None else str(value)


def binary(spec: dict[str, Any]) -> Any:
    """A joiner, adder or subtractor by its id."""
    return {
        "concat": lambda a, b: text(a) + spec.get("sep", "") + text(b),
        "paren": lambda a, b: f"({text(a)},{text(b)})",
        "sum": lambda a, b: a + b,
        "minus": lambda a, b: a - b,
        "append": lambda a, b: text(a) + text(b),
        "append_sorted": lambda a, b: "".join(sorted(text(a) + text(b))),
        "remove_substring": lambda a, b: text(a).replace(text(b), ""),
        "plus_one": lambda a, _: a + 1,
        "set_union": lambda a, b: sorted(set(a) | {b}),
        "set_difference": lambda a, b: sorted(set(a) - {b}),
    }[spec["fn"]]


def returns(spec: dict[str, Any], value: type) -> Any:
    """The type that a function of two values of a type gives."""
    if spec["fn"] in {"concat", "paren", "append", "append_sorted", "remove_substring"}:
        return str
    return list[str] if spec["fn"].startswith("set_") else value


def _null_tests(key: Any, value: Any) -> Any:
    return {"null": (None, value), "NULL": None}.get(key, (value, value))


#: (key, value) -> (group key, grouped value), or None where the row belongs to no group.
GROUPS: dict[str, Any] = {
    "identity": lambda k, v: (k, v),
    "value_as_key": lambda _, v: (v, v),
    "value_as_key_key_as_value": lambda k, v: (v, k),
    "region_to_name_length": lambda k, v: (v, len(k)),
    "key_chars": lambda k, _: (k[0], k[1]),
    "key_and_int_of_value": lambda k, v: (k, int(v)),
    "null_tests": _null_tests,
}

FOREIGN_KEYS: dict[str, Any] = {
    "after_pipe": lambda v: v.split("|")[1] if "|" in v else None,
    "after_pipe_returnNull_is_null": lambda v: None if v.split("|")[1] == "returnNull" else v.split("|")[1],
    "always_null": lambda _: None,
    "int_before_dash": lambda v: int(v.split("-")[0]),
}

PREDICATES: dict[str, Any] = {
    "even": lambda v: v % 2 == 0,
    "equals_accept": lambda v: v.lower() == "accept",
}

MAPPERS: dict[str, tuple[Any, type]] = {
    "int": (int, int),
    "negated_int": (lambda v: -int(v), int),
    "first_digit": (lambda v: int(str(v)[0]), int),
}
