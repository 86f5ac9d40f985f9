from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars import col

import everstate as es
from everstate.errors import NumberOverflowError, RecordError, UnsupportedError
from everstate.kernels.operations.aggregate import aggregate
from tests.effort import examples
from tests.equivalence.oracles import nearest_root

SCHEMA = {"id": str, "g": str | None, "x": int | None, "f": float | None}
REVERSIBLE = {
    "n": es.count(),
    "c": col("x").count(),
    "sx": col("x").sum(),
    "sf": col("f").sum(),
    "mx": col("x").mean(),
    "mf": col("f").mean(),
    "vx": col("x").var(),
    "vf": col("f").var(ddof=0),
    "df": col("f").std(),
    "ratio": col("f").sum() / es.count(),
}
ENDS = {
    "lo": col("x").min(),
    "hi": col("x").max(),
    "flo": col("f").min(),
    "fhi": col("f").max(),
    "first": col("x").first(),
    "last": col("f").last(),
}
WHOLE = {
    "u": col("x").n_unique(),
    "all": es.collect("f"),
    "top": es.top_k("x", 2),
    "by": es.top_k("x", 2, by="f"),
    "med": es.median("x"),
    "q": es.quantile("f", 0.3),
}


def source(kind: str) -> Any:
    return getattr(es.Service("s"), kind)("in", key="id", schema=SCHEMA)


def exact_mean(values: list[float]) -> float | None:
    if not values:
        return None
    if not all(map(math.isfinite, values)):
        return fsum(values)
    return float(sum(map(Fraction, values)) / len(values))


def exact_variance(values: list[float], ddof: int, rounded: Any = float) -> float | None:
    if len(values) <= ddof:
        return None
    if not all(map(math.isfinite, values)):
        return math.nan
    parts = [Fraction(value) for value in values]
    mean = sum(parts) / len(parts)
    return rounded(sum((part - mean) ** 2 for part in parts) / (len(parts) - ddof))


def fsum(values: list[float]) -> float:
    if all(map(math.isfinite, values)):
        return math.fsum(values)
    return sum(value for value in values if not math.isfinite(value))


def expected(records: list[dict[str, Any]]) -> dict[str, Any]:
    """What a group gives, from scratch; the records are in order."""
    xs = [r["x"] for r in records if r["x"] is not None]
    fs = [r["f"] for r in records if r["f"] is not None]
    floats = pl.Series([_positive_zero(r["f"]) for r in records], dtype=pl.Float64)
    ranked = sorted(records, key=lambda r: _rank(r["f"]))
    return {
        "n": len(records),
        "c": len(xs),
        "sx": sum(xs),
        "sf": fsum(fs),
        "mx": exact_mean(xs),
        "mf": exact_mean(fs),
        "vx": exact_variance(xs, 1),
        "vf": exact_variance(fs, 0),
        "df": exact_variance(fs, 1, nearest_root),
        "ratio": fsum(fs) / len(records),
        "lo": min(xs, default=None),
        "hi": max(xs, default=None),
        "flo": floats.min(),
        "fhi": floats.max(),
        "first": records[0]["x"],
        "last": records[-1]["f"],
        "u": len({r["x"] for r in records}),
        "all": [r["f"] for r in records],
        "top": (sorted(xs, reverse=True) + [None] * (len(records) - len(xs)))[:2],
        "by": [r["x"] for r in ranked][:2],
        "med": pl.Series(xs, dtype=pl.Float64).median(),
        "q": floats.quantile(0.3, "linear"),
    }


def _rank(value: float | None) -> tuple[bool, float]:
    """Highest first, NaN above all, null last."""
    return value is None, -math.inf if value is None or math.isnan(value) else -value


def _positive_zero(value: float | None) -> float | None:
    return None if value is None else value + 0.0


floats = st.none() | st.sampled_from([0.1, 0.2, 0.3, -0.1, 1e16, -1e16, 5e-324, 0.0, -0.0]) | st.floats(-1e6, 1e6)
special = floats | st.sampled_from([math.nan, math.inf, -math.inf])
values = st.fixed_dictionaries(
    {
        "g": st.sampled_from(["A", "A", "B", "C", None]),
        "x": st.none() | st.integers(-3, 3) | st.sampled_from([2**58, -(2**58), 2**40]),
        "f": floats,
    }
)
histories = st.lists(
    st.lists(st.tuples(st.sampled_from("abcdef"), values | st.none(), st.integers(0, 5)), min_size=2, max_size=6),
    min_size=3,
    max_size=7,
)
layouts = st.tuples(st.integers(1, 3), st.integers(1, 2))
thorough = settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))


def check(flow: Any, kind: str, aggregates: dict[str, pl.Expr], history: Any, layout: tuple[int, int]) -> None:
    run = flow(aggregate, source(kind).group_by("g").agg(**aggregates), *layout)
    live: dict[Any, tuple[int, int, dict[str, Any]]] = {}
    offset = 0
    for records in history:
        batch = [record for record in records if kind == "table" or record[1] is not None]
        for key, value, ts in batch:
            name = key if kind == "table" else offset
            live.pop(name, None)
            if value is not None:
                live[name] = (ts, offset, value)
            offset += 1
        run.send(*batch)
        groups: dict[str, list[dict[str, Any]]] = {}
        for _, _, value in sorted(live.values(), key=lambda entry: entry[:2]):
            if value["g"] is not None:
                groups.setdefault(value["g"], []).append(value)
        wanted = {}
        for group, members in groups.items():
            row = expected(members)
            wanted[group.encode()] = {"g": group, **{name: row[name] for name in aggregates}}
        assert {key: repr(row) for key, row in sorted(run.table.items())} == {
            key: repr(row) for key, row in sorted(wanted.items())
        }


@pytest.mark.parametrize("kind", ["table", "stream"])
@thorough
@given(history=histories, layout=layouts)
def test_reversible_leaves_random_history_equal_a_run_from_scratch(flow, kind, history, layout):
    check(flow, kind, REVERSIBLE, history, layout)


@pytest.mark.parametrize("kind", ["table", "stream"])
@thorough
@given(history=histories, layout=layouts)
def test_extremes_and_ends_random_history_equal_a_run_from_scratch(flow, kind, history, layout):
    check(flow, kind, ENDS, history, layout)


@pytest.mark.parametrize("kind", ["table", "stream"])
@thorough
@given(history=histories, layout=layouts)
def test_all_leaves_together_random_history_equal_a_run_from_scratch(flow, kind, history, layout):
    check(flow, kind, REVERSIBLE | ENDS | WHOLE, history, layout)


@pytest.mark.parametrize("kind", ["table", "stream"])
@thorough
@given(history=histories, layout=layouts)
def test_top_k_alone_random_history_equals_a_run_from_scratch(flow, kind, history, layout):
    check(flow, kind, {name: WHOLE[name] for name in ("top", "by")}, history, layout)


@pytest.mark.parametrize("kind", ["table", "stream"])
@thorough
@given(
    history=st.lists(
        st.lists(
            st.tuples(
                st.sampled_from("abcd"),
                st.fixed_dictionaries({"g": st.just("A"), "x": st.just(1), "f": special}),
                st.integers(0, 5),
            ),
            min_size=2,
            max_size=5,
        ),
        min_size=3,
        max_size=5,
    ),
    layout=layouts,
)
def test_floats_with_nan_and_infinities_equal_a_run_from_scratch(flow, kind, history, layout):
    names = ("sf", "mf", "vf", "df")
    both = {**{name: REVERSIBLE[name] for name in names}, "flo": ENDS["flo"], "fhi": ENDS["fhi"], "by": WHOLE["by"]}
    check(flow, kind, both, history, layout)


def one(flow: Any, kind: str, schema: dict[str, Any], **aggregates: pl.Expr) -> Any:
    service = es.Service("s")
    feeder = getattr(service, kind)("in", key="id", schema={"id": str, **schema})
    return flow(aggregate, feeder.group_by(g=pl.lit("g")).agg(**aggregates))


@pytest.mark.parametrize("kind", ["table", "stream"])
def test_mean_and_deviation_of_decimals_round_the_exact_result_once(flow, kind):
    run = one(flow, kind, {"d": Decimal}, m=col("d").mean(), v=col("d").var(), s=col("d").std())
    numbers = [
        Decimal("0.1"),
        Decimal("0.2"),
        Decimal("-9007199254740993.3"),
        Decimal("12345678901234567890.123456789"),
    ]
    for number, value in enumerate(numbers):
        run.send((str(number), {"d": value}, number))
    (result,) = run.table.values()
    exact = sum(map(Fraction, numbers)) / len(numbers)
    variance = sum((Fraction(value) - exact) ** 2 for value in numbers) / (len(numbers) - 1)
    assert result == {"g": "g", "m": float(exact), "v": float(variance), "s": nearest_root(variance)}


@pytest.mark.parametrize("kind", ["table", "stream"])
@pytest.mark.parametrize("values", [[1e308, 1.7e308, 0.0, 1.0], [5e-324, 0.0], [2.0**53, 3.0, -1e-300], [0.1] * 10])
def test_mean_of_floats_is_the_float_nearest_to_the_exact_mean(flow, kind, values):
    run = one(flow, kind, {"f": float}, m=col("f").mean(), s=col("f").std())
    for number, value in enumerate(values):
        run.send((str(number), {"f": value}, number))
    (result,) = run.table.values()
    assert result == {"g": "g", "m": exact_mean(values), "s": exact_variance(values, 1, nearest_root)}


@pytest.mark.parametrize("kind", ["table", "stream"])
def test_sum_of_other_numbers_keeps_every_digit(flow, kind):
    schema = {"d": Decimal, "t": timedelta, "b": bool}
    run = one(flow, kind, schema, d=col("d").sum(), t=col("t").sum(), b=col("b").sum(), m=col("d").mean())
    rows = [
        {"d": Decimal("0.1"), "t": timedelta(days=1, microseconds=1), "b": True},
        {"d": Decimal("0.2"), "t": timedelta(hours=1), "b": False},
        {"d": Decimal("12345678901234567890.3"), "t": timedelta(0), "b": True},
    ]
    for number, row in enumerate(rows):
        run.send((str(number), row, number))
    (result,) = run.table.values()
    assert result["d"] == Decimal("12345678901234567890.6")
    assert (result["t"], result["b"]) == (timedelta(days=1, hours=1, microseconds=1), 2)
    if kind == "table":
        run.send(("2", None, 9))
        (result,) = run.table.values()
        assert (result["d"], result["b"]) == (Decimal("0.3"), 1)


@pytest.mark.parametrize("kind", ["table", "stream"])
def test_extremes_of_texts_times_and_bytes_keep_their_type(flow, kind):
    schema = {"s": str, "d": date, "w": datetime, "y": bytes, "b": bool}
    found = {f"{name}_{end}": getattr(col(name), end)() for name in schema for end in ("min", "max", "first", "last")}
    run = one(flow, kind, schema, **found)
    early = {"s": "a", "d": date(2024, 1, 1), "w": datetime(2024, 1, 1, tzinfo=UTC), "y": b"a", "b": False}
    late = {"s": "b", "d": date(2025, 1, 1), "w": datetime(2025, 1, 1, tzinfo=UTC), "y": b"b", "b": True}
    run.send(("1", late, 1), ("2", early, 2))
    (result,) = run.table.values()
    for name in schema:
        assert [result[f"{name}_{end}"] for end in ("min", "max", "first", "last")] == [
            early[name],
            late[name],
            late[name],
            early[name],
        ]


def test_lists_and_structs_are_collected_and_counted(flow):
    run = one(flow, "table", {"v": list[int]}, c=es.collect("v"), u=col("v").n_unique(), f=col("v").first())
    run.send(("1", {"v": [1]}, 1), ("2", {"v": [1]}, 2), ("3", {"v": []}, 3))
    run.send(("1", None, 4))
    (result,) = run.table.values()
    assert (result["c"], result["u"], result["f"]) == ([[1], []], 2, [1])


def test_minimum_lost_to_a_retraction_is_found_among_the_rest(flow):
    run = one(flow, "table", {"x": int}, lo=col("x").min(), hi=col("x").max())
    run.send(*((str(number), {"x": number}, number) for number in range(2000)))
    run.pages[0].reset_counts()
    run.send(("1000", None, 3000))
    assert run.table[b"g"] == {"g": "g", "lo": 0, "hi": 1999}
    touched = run.pages[0].gets
    run.send(("0", None, 3001))
    assert run.table[b"g"]["lo"] == 1
    assert run.pages[0].gets - touched > touched


def test_group_without_contributions_is_deleted_and_begins_anew(flow):
    run = one(flow, "table", {"x": int}, n=es.count(), s=col("x").sum())
    run.send(("1", {"x": 5}, 1))
    gone = run.send(("1", None, 7))
    assert gone.select("$op", "$ts", "s").rows() == [(-1, 7, 5)]
    run.send(("2", {"x": 1}, 2))
    assert run.table[b"g"] == {"g": "g", "n": 1, "s": 1}
    assert run.times[b"g"] == 2


def test_unchanged_result_yields_nothing_unless_moves_matter(flow):
    run = one(flow, "table", {"x": int}, s=col("x").sum())
    run.send(("1", {"x": 5}, 1), ("2", {"x": 4}, 1))
    assert run.send(("1", {"x": 4}, 2), ("2", {"x": 5}, 2)).is_empty()


def test_row_without_a_group_is_dropped_and_counted(flow):
    run = flow(aggregate, source("table").group_by("g").agg(n=es.count()))
    run.send(("1", {"g": None, "x": 1, "f": None}, 1))
    run.send(("1", {"g": "A", "x": 1, "f": None}, 2))
    assert run.values("n") == {"A": 1}
    assert run.ledger.counts == {"dropped.null_key": 1}


def test_expression_that_raises_for_a_row_makes_a_dead_letter_of_it_alone(flow):
    service = es.Service("s")
    feeder = service.table("in", key="id", schema={"id": str, "g": str, "t": str})
    run = flow(aggregate, feeder.group_by("g").agg(s=col("t").cast(pl.Int64).sum(), n=es.count()), 2, 2)
    run.send(*((str(n), {"g": "A", "t": "x" if n == 3 else str(n)}, n) for n in range(6)))
    assert run.values("s") == {"A": 12}
    assert run.ledger.letters()["$off"].to_list() == [3]
    run.send(("3", {"g": "A", "t": "3"}, 9))
    assert run.values("s") == {"A": 15}
    assert run.values("n") == {"A": 6}


def test_integer_sum_beyond_64_bits_names_its_group(flow):
    run = one(flow, "stream", {"x": int}, s=col("x").sum(), m=col("x").mean())
    run.send(("1", {"x": 2**62}, 1))
    with pytest.raises(NumberOverflowError, match="group 'g'"):
        run.send(("1", {"x": 2**62}, 1))


def test_decimal_sum_beyond_38_digits_is_a_named_error(flow):
    run = one(flow, "stream", {"x": Decimal}, s=col("x").sum())
    run.send(("1", {"x": Decimal(9) * 10**19}, 1))
    with pytest.raises(NumberOverflowError, match="group 'g' does not fit into 38 digits"):
        run.send(("1", {"x": Decimal(9) * 10**19}, 1))


def test_result_that_cannot_be_calculated_names_its_group(flow):
    run = one(flow, "stream", {"x": int}, s=col("x").sum().cast(pl.Int8))
    run.send(("1", {"x": 100}, 1))
    with pytest.raises(RecordError, match="group 'g'"):
        run.send(("1", {"x": 100}, 1))


@pytest.mark.parametrize(
    "aggregate_call",
    [
        col("s").sum(),
        col("v").min(),
        col("v").max(),
        col("s").mean(),
        col("t").mean(),
        col("d").sum(),
        es.top_k("v", 1),
    ],
)
def test_aggregate_of_a_type_that_has_none_is_refused_when_it_is_built(aggregate_call):
    feeder = es.Service("s").stream(
        "in", key="id", schema={"id": str, "s": str, "v": list[int], "t": timedelta, "d": date}
    )
    with pytest.raises(UnsupportedError, match="there is no"):
        feeder.group_by("id").agg(x=aggregate_call)


def test_top_k_of_a_stream_keeps_no_more_than_can_matter(flow):
    run = one(flow, "stream", {"x": int}, top=es.top_k("x", 3))
    for start in range(0, 500, 50):
        run.send(*((str(n), {"x": n * 7919 % 501}, n) for n in range(start, start + 50)))
    assert run.table[b"g"]["top"] == [500, 499, 498]
    assert sum(map(len, run.pages[0].blocks.values())) < 3000


def test_many_groups_over_many_pages_equal_a_plain_group_by(flow):
    run = flow(
        aggregate, source("stream").group_by("g").agg(n=es.count(), s=col("x").sum(), last=col("f").last()), 3, 2
    )
    rows = [{"g": f"group-{n * 7919 % 3001}", "x": n, "f": n / 7} for n in range(9000)]
    for start in range(0, 9000, 3000):
        run.send(*((str(n), rows[n], n % 50) for n in range(start, start + 3000)))
    frame = pl.DataFrame(rows).with_columns(ts=pl.int_range(9000) % 50, off=pl.int_range(9000)).sort("ts", "off")
    plain = frame.group_by("g").agg(n=pl.len(), s=pl.col("x").sum(), last=pl.col("f").last())
    assert {row["g"]: row for row in run.table.values()} == {row["g"]: row for row in plain.to_dicts()}
