"""Calls whose effect depends on their arguments: `gmtime(x)` calculates, `gmtime()` reads the clock."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from everstate.fingerprints.outside.usage import Use

    Condition = Callable[[ast.Call, Use], bool]


def excused(name: str, use: Use) -> bool:
    """Whether a name that has an effect has none where it is used like this; `pandas.*.sample` is a method."""
    condition = _BY_NAME.get(name)
    return condition is not None and use.call is not None and condition(use.call, use)


def _given(place: int, *names: str) -> Condition:
    """An argument is given, by position or by one of these names, and it is not None."""

    def holds(call: ast.Call, _: Use) -> bool:
        values = [keyword.value for keyword in call.keywords if keyword.arg in names]
        if len(call.args) >= place > 0 and not any(isinstance(part, ast.Starred) for part in call.args[:place]):
            values.append(call.args[place - 1])
        return any(not (isinstance(value, ast.Constant) and value.value is None) for value in values)

    return holds


def _without(place: int, *names: str) -> Condition:
    """An argument is not given, by position or by name."""

    def holds(call: ast.Call, _: Use) -> bool:
        spread = any(keyword.arg is None for keyword in call.keywords)
        starred = any(isinstance(part, ast.Starred) for part in call.args)
        named = any(keyword.arg in names for keyword in call.keywords)
        return not (spread or starred or named or len(call.args) >= place)

    return holds


def _literal(call: ast.Call, _: Use) -> bool:
    """The first argument is a text that names no variable of the code around it."""
    first = call.args[0] if call.args else None
    return isinstance(first, ast.Constant) and isinstance(first.value, str) and "@" not in first.value


def _true(name: str) -> Condition:
    def holds(call: ast.Call, _: Use) -> bool:
        return any(
            keyword.arg == name and isinstance(keyword.value, ast.Constant) and keyword.value.value is True
            for keyword in call.keywords
        )

    return holds


def _in_order(call: ast.Call, use: Use) -> bool:
    """What comes out has an order: it is asked for, or the result is sorted."""
    return use.ordered or _true("maintain_order")(call, use)


def _kept(_: ast.Call, use: Use) -> bool:
    return use.kept


_SEEDED: Final = _given(1, "seed", "x", "a", "entropy")
_BY_NAME: Final[dict[str, Condition]] = {
    "datetime.datetime.fromtimestamp": _given(2, "tz"),
    "pandas.Timestamp.fromtimestamp": _given(2, "tz"),
    "time.gmtime": _given(1),
    "time.asctime": _given(1),
    "time.strftime": _given(2),
    "gzip.compress": _given(3, "mtime"),
    "gzip.GzipFile": _given(5, "mtime"),
    "random.Random": _SEEDED,
    "numpy.random.default_rng": _SEEDED,
    "numpy.random.RandomState": _SEEDED,
    "numpy.random.SeedSequence": _SEEDED,
    "numpy.random.PCG64": _SEEDED,
    "numpy.random.Philox": _SEEDED,
    "numpy.random.MT19937": _SEEDED,
    "statistics.*.samples": _given(0, "seed"),
    "dateutil.parser.parse": _given(0, "default"),
    "dateutil.rrule.rrule": _given(2, "dtstart"),
    "dateutil.rrule.rrulestr": _given(0, "dtstart"),
    "dateutil.tz.gettz": _given(1, "name"),
    "xml.etree.ElementTree.ElementTree": _without(2, "file"),
    "warnings.simplefilter": _kept,
    "warnings.filterwarnings": _kept,
    "pandas.eval": _literal,
    "pandas.*.eval": _literal,
    "pandas.*.query": _literal,
    "pandas.*.sample": _given(5, "random_state"),
    "polars.*.sample": _given(0, "seed"),
    "polars.*.shuffle": _given(1, "seed"),
    "polars.*.unique": _in_order,
    "polars.*.group_by": _in_order,
}
