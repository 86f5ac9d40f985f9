"""Trying expressions on made-up rows while a service is built, to find what would fail for every record.

Polars finds much only when it evaluates: comparisons of types that do not fit, bad patterns, formats and units. What
fails without any rows, or for rows of nulls alone, cannot be the data's fault. What fails for all made-up values is not
either, unless it is a function that may well refuse them, or a conversion that is strict: so strictness is taken out.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from everstate.topology.expressions import trees

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

#: What Polars raises for values that it cannot deal with; a panic is no PolarsError, nor even an Exception.
POLARS_ERRORS: Final = (
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
    ArithmeticError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)

#: How many made-up rows there are.
_ROWS: Final = 10

#: Functions that refuse values by their nature, so that made-up ones prove nothing.
_PARTICULAR: Final = re.compile(
    r'"(ReplaceStrict|JsonDecode|ToArray|ToMap|Get|Gather|Item|Reinterpret|BusinessDays?|AddBusinessDay)"'
)
#: Conversions that are strict by an option.
_CONVERSIONS: Final = frozenset({"Strptime", "ToInteger"})
_DECODINGS: Final = frozenset({"HexDecode", "Base64Decode"})
#: An offset that may be short is read, never written.
_ONLY_PARSED: Final = re.compile("%#z")


def failure(expressions: Sequence[pl.Expr], schema: Mapping[str, pl.DataType]) -> str | None:
    """Why expressions fail for any record of these columns; None if they may succeed.

    Example:
        >>> import polars as pl
        >>> failure([pl.col("x") > "a"], {"x": pl.Int64()})
        'ComputeError: cannot compare string with numeric type (i64)'
        >>> failure([pl.col("s").cast(pl.Int64)], {"s": pl.String()}) is None
        True
    """
    for frame in (pl.DataFrame(schema=dict(schema)), _nulls(schema)):
        reason = _tried(frame, expressions)
        if reason is not None:
            return reason
    reason = next((reason for expression in expressions if (reason := _bad_format(expression))), None)
    if reason is not None:
        return reason
    rows = _made_up(tuple(schema.items()))
    if _tried(rows, expressions) is None:
        return None
    return next((reason for expression in expressions if (reason := _always(expression, rows))), None)


def reason_of(error: BaseException) -> str:
    """What an error of Polars says, in one line."""
    text = str(error).strip() or repr(error)
    return f"{type(error).__name__}: {text.splitlines()[0]}"


@lru_cache(maxsize=64)
def _made_up(schema: tuple[tuple[str, pl.DataType], ...]) -> pl.DataFrame:
    """Rows of values of all sorts; first rows in which columns go together, then others."""
    values = {name: list(_values(dtype)) for name, dtype in schema}
    together = {name: [some[row % len(some)] for row in range(_ROWS)] for name, some in values.items()}
    apart = {
        name: [some[(row * 3 + place) % len(some)] for row in range(_ROWS)]
        for place, (name, some) in enumerate(values.items())
    }
    return pl.concat([pl.DataFrame(part, schema=dict(schema), strict=False) for part in (together, apart)])


def _nulls(schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    return pl.DataFrame({name: [None, None] for name in schema}, schema=dict(schema))


def _tried(frame: pl.DataFrame, expressions: Sequence[pl.Expr]) -> str | None:
    try:
        frame.select(expressions)
    except POLARS_ERRORS as error:
        return reason_of(error)
    return None


def _always(expression: pl.Expr, rows: pl.DataFrame) -> str | None:
    """Why an expression fails for each of the rows, where that is not for the sake of their values."""
    reason = _tried(rows, [expression])
    if reason is None:
        return None
    written = expression.meta.serialize(format="json")
    if _PARTICULAR.search(written):
        return None
    lenient = trees.expression_of(_relaxed(json.loads(written)))
    if lenient is None:
        return None
    for row in range(rows.height):
        reason = _tried(pl.concat([rows[row], rows[row]], rechunk=True), [lenient])
        if reason is None:
            return None
    return reason


def _relaxed(tree: Any) -> Any:
    """The tree with conversions that give null where they fail."""
    if isinstance(tree, list):
        return [_relaxed(part) for part in tree]
    if not isinstance(tree, dict):
        return tree
    relaxed = {name: _relaxed(part) for name, part in tree.items()}
    if "Cast" in relaxed:
        relaxed["Cast"]["options"] = "NonStrict"
    for name in _CONVERSIONS & set(relaxed):
        options = relaxed[name][1] if isinstance(relaxed[name], list) else relaxed[name]
        options["strict"] = False
    return relaxed | dict.fromkeys(_DECODINGS & set(relaxed), False)


def _bad_format(expression: pl.Expr) -> str | None:
    """Why the format of a conversion from text means nothing: Polars only says that no text fits it."""
    moment = pl.lit(datetime(2024, 2, 7, 10, 30, tzinfo=UTC))
    for form in _formats(json.loads(expression.meta.serialize(format="json"))):
        try:
            pl.select(moment.dt.strftime(_ONLY_PARSED.sub("%z", form)))
        except POLARS_ERRORS:
            return f"the format {form!r} has no meaning"
    return None


def _formats(tree: Any) -> Iterator[str]:
    if isinstance(tree, dict):
        if "Strptime" in tree and tree["Strptime"][1]["format"]:
            yield tree["Strptime"][1]["format"]
        tree = list(tree.values())
    if isinstance(tree, list):
        for part in tree:
            yield from _formats(part)


def _values(dtype: pl.DataType) -> Iterator[Any]:
    """Some values of a type, none of them null."""
    if isinstance(dtype, (pl.List, pl.Array)):
        items = list(_values(dtype.inner))  # type: ignore[arg-type]  # an instance, since the schema's types are
        lengths = [dtype.size] if isinstance(dtype, pl.Array) else [3, 1, 2, 5]
        for length in lengths:
            yield (items * (length // len(items) + 1))[:length]
    elif isinstance(dtype, pl.Struct):
        fields = {field.name: list(_values(field.dtype)) for field in dtype.fields}  # type: ignore[arg-type]
        for row in range(_ROWS):
            yield {name: some[row % len(some)] for name, some in fields.items()}
    elif isinstance(dtype, pl.Enum):
        yield from dtype.categories
    else:
        yield from _PLAIN.get(dtype.base_type(), (None,))


_NUMBERS: Final = (1, 2, 100, 3, 7, 10, 0, 24, 12, 5)
_DAY: Final = date(2024, 2, 7)
_MOMENT: Final = datetime(2024, 2, 7, 10, 30)  # noqa: DTZ001 - Polars adds the column's zone
_PLAIN: Final[dict[Any, tuple[Any, ...]]] = {
    **dict.fromkeys((pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.Int128), (*_NUMBERS, -1)),
    **dict.fromkeys((pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64), _NUMBERS),
    **dict.fromkeys((pl.Float32, pl.Float64), (1.0, 0.5, 100.0, 2.0, -1.5)),
    pl.Decimal: (Decimal(1), Decimal(2), Decimal(100)),
    pl.Boolean: (True, False),
    pl.String: ("1", "a", "2024-02-07", "1h", "{}", "true", "10:30", "2024-02-07T10:30:00Z", "UTC", "$.a"),
    pl.Binary: (b"1", b"a", b"12345678"),
    pl.Date: tuple(_DAY + timedelta(days=days) for days in (0, 1, 30)),
    pl.Datetime: tuple(_MOMENT + timedelta(days=days) for days in (0, 1, 30)),
    pl.Duration: (timedelta(hours=1), timedelta(days=1), timedelta(0)),
    pl.Time: (time(10, 30), time(0), time(23)),
}
