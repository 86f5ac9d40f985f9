"""What services give, from scratch: plain Python over the whole history, without frames, state or micro-batches.

A table is a dict of rows by key. A row has all columns, those of the key included, and its position: timestamp, place
of the topic, partition, offset; None where it depends on how a history was cut.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tests.equivalence.histories import Placed

#: The sum of no decimals.
ZERO = Decimal(0)

Key = tuple[Any, ...]
Columns = dict[str, Any]
Position = tuple[int, int, int, int]


class Row(NamedTuple):
    """A row with its position."""

    columns: Columns
    at: Position | None


@dataclass(frozen=True)
class Table:
    """Rows by key.

    Attributes:
        names: The key's columns.
        rows: By key.
    """

    names: tuple[str, ...]
    rows: dict[Key, Row]

    def published(self) -> dict[Any, Columns]:
        """As `driver.table` shows it: values without the key."""
        return {
            key[0] if len(key) == 1 else key: {n: v for n, v in row.columns.items() if n not in self.names}
            for key, row in self.rows.items()
        }


@dataclass(frozen=True)
class Stream:
    """Rows in the order in which they came.

    Attributes:
        names: The key's columns.
        rows: Keys and rows; a key is None where the record had none.
    """

    names: tuple[str, ...]
    rows: list[tuple[Key | None, Row]]


def table(events: Iterable[Placed], topic: str, place: int, columns: Sequence[str], name: str = "id") -> Table:
    """A table source: the latest record of each key, unless it deletes the key or cannot be decoded."""
    rows: dict[Key, Row] = {}
    for event in events:
        if event.topic == topic:
            rows.pop((event.key,), None)
            if isinstance(event.value, dict):
                rows[event.key,] = _row(event, place, columns, name)
    return Table((name,), rows)


def stream(events: Iterable[Placed], topic: str, place: int, columns: Sequence[str], name: str = "id") -> Stream:
    """A stream source: every record that has a value and can be decoded."""
    return Stream(
        (name,),
        [
            (None if event.key is None else (event.key,), _row(event, place, columns, name))
            for event in events
            if event.topic == topic and isinstance(event.value, dict)
        ],
    )


def dead(events: Iterable[Placed]) -> set[tuple[str, int, int]]:
    """The positions of the records that cannot be decoded."""
    return {(e.topic, e.partition, e.offset) for e in events if isinstance(e.value, bytes)}


def _row(event: Placed, place: int, columns: Sequence[str], name: str) -> Row:
    found = {name: event.key, **{column: event.value.get(column) for column in columns}}
    return Row(found, (event.ts, place, event.partition, event.offset))


def where(flow: Any, condition: Callable[[Columns], Any]) -> Any:
    """`filter`: null counts as false."""
    if isinstance(flow, Stream):
        return replace(flow, rows=[(key, row) for key, row in flow.rows if condition(row.columns)])
    return replace(flow, rows={key: row for key, row in flow.rows.items() if condition(row.columns)})


def mapped(flow: Any, change: Callable[[Columns], Columns]) -> Any:
    """`select`, `with_columns` and `map`: other columns, the key's stay."""

    def changed(row: Row) -> Row:
        return row._replace(columns={**{n: row.columns[n] for n in flow.names}, **change(row.columns)})

    if isinstance(flow, Stream):
        return replace(flow, rows=[(key, changed(row)) for key, row in flow.rows])
    return replace(flow, rows={key: changed(row) for key, row in flow.rows.items()})


def flat_mapped(flow: Stream, change: Callable[[Columns], list[Columns]]) -> Stream:
    """`flat_map` on a stream."""
    rows = []
    for key, row in flow.rows:
        own = {name: row.columns[name] for name in flow.names}
        rows += [(key, Row({**own, **columns}, row.at)) for columns in change(row.columns)]
    return replace(flow, rows=rows)


def grouped(flow: Any, by: Callable[[Columns], Key]) -> dict[Key, list[tuple[bytes, Row]]]:
    """The rows of each group with the key they had; those without a group are dropped."""
    pairs = flow.rows if isinstance(flow, Stream) else list(flow.rows.items())
    groups: dict[Key, list[tuple[bytes, Row]]] = defaultdict(list)
    for key, row in pairs:
        group = by(row.columns)
        if None not in group:
            groups[group].append((key_bytes(key or ()), row))
    return groups


def aggregated(
    flow: Any, names: Sequence[str], by: Callable[[Columns], Key], results: dict[str, Callable[[list[Columns]], Any]]
) -> Table:
    """`group_by().agg()`."""
    rows = {}
    for group, members in grouped(flow, by).items():
        ordered = [row.columns for _, row in sorted(members, key=lambda member: (member[1].at or (), member[0]))]
        columns = {name: result(ordered) for name, result in results.items()}
        rows[group] = Row({**dict(zip(names, group, strict=True)), **columns}, _last_position(members))
    return Table(tuple(names), rows)


def folded(
    flow: Any, names: Sequence[str], by: Callable[[Columns], Key], init: Any, add: Callable[[Any, Columns], Any]
) -> Table:
    """`group_by().aggregate()` and, without `init`, `reduce()`: a stream's rows as they came, a table's by their key.

    A function that returns None deletes the aggregate; the next row starts anew.
    """
    rows = {}
    for group, members in grouped(flow, by).items():
        if isinstance(flow, Table):
            members.sort(key=lambda member: member[0])
        value = None
        for _, row in members:
            if value is None and init is None:
                value = {n: v for n, v in row.columns.items() if n not in names}
            else:
                key = dict(zip(names, group, strict=True)) if init is None else {}
                value = add(init() if value is None else {**key, **value}, row.columns)
            if value is not None:
                value = {n: v for n, v in value.items() if n not in names}
        if value is not None:
            rows[group] = Row({**dict(zip(names, group, strict=True)), **value}, _last_position(members))
    return Table(tuple(names), rows)


def _last_position(members: list[tuple[bytes, Row]]) -> Position | None:
    places = [row.at for _, row in members]
    return None if None in places else max(places)


def rekeyed(flow: Table, names: Sequence[str], by: Callable[[Columns], Key]) -> Table:
    """`rekey` on a table: the highest (timestamp, old key) wins."""
    best: dict[Key, tuple[tuple[int, bytes], Row]] = {}
    for key, row in flow.rows.items():
        new = by(row.columns)
        if None in new:
            continue
        assert row.at is not None
        rank = (row.at[0], key_bytes(key))
        if new not in best or rank > best[new][0]:
            best[new] = rank, Row({**row.columns, **dict(zip(names, new, strict=True))}, row.at)
    return Table(tuple(names), {key: row for key, (_, row) in best.items()})


def joined(left: Table, right: Table, how: str, combine: Callable[[Columns | None, Columns | None], Any]) -> Table:
    """Table-table join on the key; where `combine` gives None there is no row."""
    keys = {
        "inner": left.rows.keys() & right.rows.keys(),
        "left": set(left.rows),
        "outer": left.rows.keys() | right.rows.keys(),
    }[how]
    rows = {}
    for key in keys:
        sides = left.rows.get(key), right.rows.get(key)
        found = _combined(sides, combine)
        if found is not None:
            columns, at = found
            rows[key] = Row({**dict(zip(left.names, key, strict=True)), **columns}, at)
    return Table(left.names, rows)


def foreign_joined(
    left: Table,
    right: Table,
    how: str,
    on: Callable[[Columns], Key],
    combine: Callable[[Columns | None, Columns | None], Any],
) -> Table:
    """Join of a left column with the right table's key; the result has the left table's key."""
    rows = {}
    for key, row in left.rows.items():
        foreign = on(row.columns)
        other = None if None in foreign else right.rows.get(foreign)
        if other is None and how == "inner":
            continue
        found = _combined((row, other), combine)
        if found is not None:
            columns, at = found
            rows[key] = Row({**dict(zip(left.names, key, strict=True)), **columns}, at)
    return Table(left.names, rows)


def _combined(
    sides: tuple[Row | None, Row | None], combine: Callable[..., Any]
) -> tuple[Columns, Position | None] | None:
    columns = combine(*(None if side is None else side.columns for side in sides))
    if columns is None:
        return None
    places = [side.at for side in sides if side is not None]
    known = [at for at in places if at is not None]
    return columns, max(known) if len(known) == len(places) else None


def side_by_side(
    left: Sequence[str], right: Sequence[str], suffix: str = "_right"
) -> Callable[[Columns | None, Columns | None], Columns]:
    """What a join without a joiner gives: the value columns of both, the right ones renamed where names meet."""

    def combine(one: Columns | None, other: Columns | None) -> Columns:
        found = {name: None if one is None else one[name] for name in left}
        for name in right:
            new = name + suffix if name in left or name == "id" else name
            found[new] = None if other is None else other[name]
        return found

    return combine


def stateful(flow: Stream, fn: Callable[[Columns, dict[str, Any]], Any], mode: str) -> Stream:
    """A function with a dict of its own for each key, row by row; rows without a key are dropped."""
    states: dict[Key, dict[str, Any]] = defaultdict(dict)
    rows = []
    for key, row in flow.rows:
        if key is None:
            continue
        columns = dict(row.columns)
        result = fn(columns, states[key])
        if mode == "filter" and not result:
            continue
        if mode == "apply":
            columns = {**{name: row.columns[name] for name in flow.names}, **result}
        rows.append((key, Row(columns, row.at)))
    return replace(flow, rows=rows)


def key_bytes(key: Key) -> bytes:
    """The record key of a key: text as UTF-8, integers as decimal text, several parts as a JSON array."""
    if len(key) == 1:
        return str(key[0]).encode()
    return json.dumps(list(key), ensure_ascii=False, separators=(",", ":")).encode()


# Aggregates: each takes the rows of a group, in order.


def _of(rows: list[Columns], name: str) -> list[Any]:
    return [row[name] for row in rows if row[name] is not None]


def nearest(number: Fraction) -> float:
    """The float nearest to an exact number, infinite beyond the largest."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def nearest_root(number: Fraction) -> float:
    """The float nearest to the square root of an exact number."""
    with localcontext(prec=1200):
        return nearest(Fraction((Decimal(number.numerator) / Decimal(number.denominator)).sqrt()))


def total(numbers: list[Any]) -> Any:
    """The sum: exact for integers and decimals, rounded once for floats."""
    if not any(isinstance(number, float) for number in numbers):
        return sum(numbers)
    unusual = [number for number in numbers if not math.isfinite(number)]
    if unusual:
        return math.nan if any(map(math.isnan, unusual)) or len(set(unusual)) > 1 else unusual[0]
    try:
        return math.fsum(numbers)
    except OverflowError:  # of an intermediate sum, or of the result
        return nearest(sum(map(Fraction, numbers), Fraction(0)))


def count() -> Callable[[list[Columns]], int]:
    return len


def counted(name: str) -> Callable[[list[Columns]], int]:
    return lambda rows: len(_of(rows, name))


def summed(name: str, zero: Any = 0) -> Callable[[list[Columns]], Any]:
    return lambda rows: total(_of(rows, name)) if _of(rows, name) else zero


def mean(name: str) -> Callable[[list[Columns]], float | None]:
    """The exact sum divided by how many there are, rounded once."""

    def result(rows: list[Columns]) -> float | None:
        numbers = _of(rows, name)
        if not numbers:
            return None
        if not all(map(math.isfinite, numbers)):
            return float(total(numbers))
        return nearest(sum(map(Fraction, numbers), Fraction(0)) / len(numbers))

    return result


def variance(
    name: str, ddof: int, rounded: Callable[[Fraction], float] = nearest
) -> Callable[[list[Columns]], float | None]:
    def result(rows: list[Columns]) -> float | None:
        numbers = _of(rows, name)
        if len(numbers) <= ddof:
            return None
        if not all(map(math.isfinite, numbers)):
            return math.nan
        parts = [Fraction(number) for number in numbers]
        middle = sum(parts) / len(parts)
        return rounded(sum((part - middle) ** 2 for part in parts) / (len(parts) - ddof))

    return result


def deviation(name: str, ddof: int) -> Callable[[list[Columns]], float | None]:
    return variance(name, ddof, nearest_root)


def extreme(name: str, choose: Callable[..., Any]) -> Callable[[list[Columns]], Any]:
    """The minimum or maximum; NaN only where there is nothing else, and no negative zero."""

    def result(rows: list[Columns]) -> Any:
        found = _of(rows, name)
        ordinary = [value for value in found if value == value]  # noqa: PLR0124 - leaves NaN out
        best = choose(ordinary) if ordinary else found[0] if found else None
        return best + 0.0 if isinstance(best, float) else best

    return result


def at_end(name: str, place: int) -> Callable[[list[Columns]], Any]:
    return lambda rows: rows[place][name]


def collected(name: str) -> Callable[[list[Columns]], list[Any]]:
    return lambda rows: [row[name] for row in rows]


def distinct(name: str) -> Callable[[list[Columns]], int]:
    """Null counts as a value; NaN equals NaN, and the zeros are one."""
    return lambda rows: len({"nan" if _nan(row[name]) else row[name] for row in rows})


def top(name: str, k: int, by: str | None = None) -> Callable[[list[Columns]], list[Any]]:
    """NaN is the highest number, null comes last; ties go to the earliest."""

    def rank(row: Columns) -> tuple[int, Any]:
        value = row[by or name]
        if value is None:
            return 0, 0
        return (2, 0) if _nan(value) else (1, value)

    return lambda rows: [row[name] for row in sorted(rows, key=rank, reverse=True)][:k]


def quantile(name: str, q: float) -> Callable[[list[Columns]], float | None]:
    """Linear interpolation over the sorted numbers, NaN the highest."""

    def result(rows: list[Columns]) -> float | None:
        numbers = sorted((float(number) for number in _of(rows, name)), key=lambda n: (math.isnan(n), n))
        if not numbers:
            return None
        at = q * (len(numbers) - 1)
        low, high = numbers[math.floor(at)], numbers[math.ceil(at)]
        if low == high or math.floor(at) == math.ceil(at):
            return low
        return low + (high - low) * (at - math.floor(at))

    return result


def _nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
