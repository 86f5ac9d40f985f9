"""What is said of an expression that does not work row by row: which part, why, and what to write instead."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from everstate.errors import UnsupportedError
from everstate.topology.expressions import trees
from everstate.topology.expressions.python_text import python_text

if TYPE_CHECKING:
    from everstate.location import Location


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_AGGREGATES: Final = _names(
    "ApproxNUnique ApproxQuantile ArgMax ArgMin Boolean.All Boolean.Any Boolean.HasNulls Boolean.IsEmpty "
    "Boolean.IsSorted Bitwise.And Bitwise.Or Bitwise.Xor Correlation Entropy IndexOf Kurtosis Len LowerBound "
    "MaxBy MinBy NullCount Product Quantile Skew StringExpr.ConcatVertical UpperBound"
)
_LENGTHS: Final = _names(
    "Append ArgUnique ArgWhere ArrayExpr.Explode DropNans DropNulls Explode ExtendConstant Filter Gather "
    "GatherEvery Hist ListExpr.Explode Mode RLE Repeat Reshape Slice TopK TopKBy Unique UniqueCounts ValueCounts"
)
_ORDERS: Final = _names(
    "ArgSort Boolean.IsDuplicated Boolean.IsFirstDistinct Boolean.IsLastDistinct Boolean.IsUnique CumCount CumMax "
    "CumMin CumProd CumSum Diff Eval.Cumulative EwmMean EwmMeanBy EwmStd EwmSum EwmSumBy EwmVar Interpolate "
    "InterpolateBy Over PctChange PeakMax PeakMin RLEID Range.DateRange Range.DatetimeRange Range.IntRange "
    "Range.LinearSpace Range.TimeRange Rank Reverse Rolling SearchSorted SetSortedFlag Shift Sort SortBy"
)

_JOIN: Final = (
    "Calculate it with group_by(...).agg(...) and join the rows with that table; "
    "what a key has seen so far is for a stateful function, apply(fn, stateful=True)."
)
_STATE: Final = (
    "What came before is for a stateful function, apply(fn, stateful=True), or for group_by(...).aggregate(init, add); "
    "what a group has together is for group_by(...).agg(...) and a join with that table."
)
_FEWER: Final = (
    "Use filter(...) to leave rows out and flat_map(fn) to make several; within one row, list.eval() and list.filter()."
)
_CLASSES: Final = 'Write the classes out: pl.when(col("x") < 10).then(pl.lit("low")).otherwise(pl.lit("high")).'
_FUNCTION: Final = "Write it as a Python function of the row: map(fn) or filter(fn)."

#: By what is wrong: what to say after the part, and what to write instead.
_WORDS: Final[dict[str, tuple[str, str]]] = {
    "categorical": (
        "is categorical, whose codes depend on what the process has seen before",
        "Leave it as text, or cast to pl.Enum([...]), which names its values.",
    ),
    "series": (
        "is a series, which would be lined up with whatever rows a micro-batch has",
        "A list of values to look for is fine: is_in([...]); values by row come from a join with a table.",
    ),
    "StringExpr.Strptime": (
        "has no format, so that it would guess one from the first rows of a micro-batch",
        'Give the format: str.to_datetime("%Y-%m-%d %H:%M:%S").',
    ),
    "chosen": (
        "divides items of lists by a value that is chosen among others, and its last digit depends on the other lists",
        "Divide in each branch: pl.when(...).then(pl.element() / 7).otherwise(pl.element() / 3).",
    ),
    "Hash": ("differs between versions of Polars", "Use hashlib in a function of the row: map(fn)."),
    "Element": ("only has a meaning inside list.eval() and the like", "Name a column with col()."),
    "Field": ("only has a meaning inside struct.with_fields()", 'Write col("name").struct.field("x").'),
    **dict.fromkeys(
        ("Bin", "Cut", "QCut"), ("sorts rows into classes by looking at all of them, or into categories", _CLASSES)
    ),
    "Rank": ("depends on other rows, or on chance", _STATE),
}
_OTHER_ROWS: Final = "needs other rows, but each row is seen on its own here"
_CHANCE: Final = ("depends on chance", "Results must be the same when they are calculated again: leave it out.")


def refusal(reason: str, tree: Any, expression: pl.Expr, location: Location | None) -> UnsupportedError:
    """The error for an expression.

    Args:
        reason: What is wrong, as the walk names it.
        tree: The part that is the reason.
        expression: The whole.
        location: Where the user wrote it.
    """
    if reason in ("python", "AnonymousFunction", "AnonymousAgg") or "Python" in reason:
        return trees.holds_python(python_text(expression), location)
    why, hint = _reason(reason)
    part = trees.expression_of(tree)
    text = "" if part is None or str(part) == str(expression) else f"{python_text(part)} in "
    return UnsupportedError(f"{call_of(reason)} {why}: {text}{python_text(expression)}", location=location, hint=hint)


def _reason(reason: str) -> tuple[str, str]:
    name = reason.removeprefix("set of ")
    if name != reason:
        return (
            "takes one set of values for all rows, and this one would come from the rows themselves",
            "Pass the values: is_in([1, 2]), replace({1: 2}); values by row come from a list column or from a join.",
        )
    if reason in _WORDS:
        return _WORDS[reason]
    if name.startswith("Random") or name == "ListExpr.Sample":
        return _CHANCE
    if name.startswith("Agg.") or name in _AGGREGATES:
        return _OTHER_ROWS, _JOIN
    if name in _LENGTHS:
        return "gives a different number of rows than it gets", _FEWER
    if name in _ORDERS or name.startswith(("Rolling", "FillNullWithStrategy")):
        return _OTHER_ROWS, _STATE
    return f"is not known to work row by row (Polars {pl.__version__})", _FUNCTION


#: Namespaces by the family that Polars keeps them in.
_SPACES: Final = {
    "ArrayExpr": "arr.",
    "BinaryExpr": "bin.",
    "Categorical": "cat.",
    "Extension": "ext.",
    "ListExpr": "list.",
    "MapExpr": "map.",
    "RollingExpr": "rolling_",
    "RollingExprBy": "rolling_",
    "StringExpr": "str.",
    "StructExpr": "struct.",
    "TemporalExpr": "dt.",
}
_SPELLED: Final = {
    "Boolean.IsIn": "is_in()",
    "Eval.Cumulative": "cumulative_eval()",
    "QCut": "qcut()",
    "RLE": "rle()",
    "RLEID": "rle_id()",
    "SetSortedFlag": "set_sorted()",
    "StringExpr.ConcatVertical": "str.join()",
    **dict.fromkeys(("categorical", "chosen", "form", "series"), "this"),
}
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def call_of(reason: str) -> str:
    """A function as users call it.

    Example:
        >>> call_of("Agg.NUnique"), call_of("ListExpr.Sample"), call_of("CumSum")
        ('n_unique()', 'list.sample()', 'cum_sum()')
    """
    name = reason.removeprefix("set of ")
    if name in _SPELLED:
        return _SPELLED[name]
    family, _, member = name.rpartition(".")
    word = _HUMP.sub("_", member).lower()
    if family == "FillNullWithStrategy":
        return f'fill_null(strategy="{word}")'
    return f"{_SPACES.get(family, '')}{word}()"
