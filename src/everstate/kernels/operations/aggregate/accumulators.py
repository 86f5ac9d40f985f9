"""Accumulators: what is kept of a group for each aggregate call, as columns that merge.

A leaf's columns start with the leaf's own (`$a0`):

| leaf | columns | merge |
|---|---|---|
| `len` | none: it is the group's `$n` | |
| `count` | `.n` | sum |
| `sum` | an exact sum: limbs for floats and decimals, two parts for integers | sum |
| `mean` | an exact sum, `.n` | sum |
| `var`, `std` | an exact sum, that of the squares (`.sq`), `.n` | sum |
| `min`, `max` | `.v` | minimum, maximum |
| `first`, `last` | `.v`, and where it stood (`$first$ts`, ...), for all such leaves once | the earlier, the later |

The other leaves keep contributions instead: see `contributions.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.errors import NumberOverflowError
from everstate.kernels.operations.aggregate import decimals, exact
from everstate.kernels.rows import COUNT
from everstate.topology.aggregates import INCREMENTAL, REVERSIBLE, Leaf
from everstate.topology.nodes import Kind
from everstate.topology.nodes.node import feeders_first

if TYPE_CHECKING:
    from everstate.topology.nodes import Aggregate

_SUMMED = frozenset({"sum", "mean", "var", "std"})
_SQUARED = frozenset({"var", "std"})
_COUNTED = frozenset({"count", "mean", "var", "std"})
#: By how numbers are added up: what splits them, and their squares, into columns that add up exactly.
_SPLITS: Final = {
    "decimal": (decimals.decimal_limbs, decimals.decimal_squares),
    "float": (exact.float_limbs, exact.float_squares),
    "integer": (exact.int_parts, exact.int_squares),
}


@dataclass(frozen=True, eq=False)
class Accumulator:
    """One leaf with the type of its input.

    Attributes:
        leaf: The aggregate call.
        dtype: The type of its input; Null for `es.count()`.
        by_dtype: The type of the ordering expression of `top_k(by=)`.
    """

    leaf: Leaf
    dtype: pl.DataType
    by_dtype: pl.DataType | None = None

    @property
    def family(self) -> str:
        """How its numbers are added up."""
        if isinstance(self.dtype, pl.Decimal):
            return "decimal"
        return "float" if self.dtype.is_float() else "integer"

    @property
    def total(self) -> str:
        """Prefix of the sum."""
        return self.leaf.column

    @property
    def squares(self) -> str:
        """Prefix of the sum of squares."""
        return f"{self.leaf.column}.sq"

    @property
    def counted(self) -> str:
        """The number of values that are not null."""
        return f"{self.leaf.column}.n"

    @property
    def value(self) -> str:
        """The extreme, or the first or last value."""
        return f"{self.leaf.column}.v"

    @property
    def exact_prefixes(self) -> list[str]:
        """Prefixes of the exact sums that it has."""
        if self.leaf.kind not in _SUMMED:
            return []
        return [self.total, self.squares] if self.leaf.kind in _SQUARED else [self.total]

    @property
    def inputs(self) -> list[pl.Expr]:
        """The expressions of its input columns."""
        found = []
        if self.leaf.input is not None:
            found.append(self._unsigned_zeros(self.leaf.input).alias(self.leaf.input_column))
        if self.leaf.by is not None:
            found.append(self.leaf.by.alias(self.leaf.by_column))
        return found

    def addends(self, values: pl.Series, sign: pl.Series | None) -> list[pl.Series]:
        """Columns that add up to the leaf's sums over any rows.

        Args:
            values: The inputs.
            sign: +1 and -1; None if there are only additions.
        """
        columns: list[pl.Series] = []
        if self.leaf.kind in _COUNTED:
            present = values.is_not_null().cast(pl.Int64)
            columns.append((present if sign is None else present * sign.cast(pl.Int64)).alias(self.counted))
        if self.leaf.kind not in _SUMMED:
            return columns
        split, squared = _SPLITS[self.family]
        columns += split(self._numbers(values), sign, self.total)
        if self.leaf.kind in _SQUARED:
            columns += squared(self._numbers(values), sign, self.squares)
        return columns

    def result(self, groups: pl.DataFrame) -> pl.Series:
        """The leaf's value for each group."""
        kind, column = self.leaf.kind, self.leaf.column
        if kind == "len":
            return groups[COUNT].alias(column)
        if kind == "count":
            return groups[self.counted].alias(column)
        if kind in {"min", "max", "first", "last"}:
            return groups[self.value].alias(column)
        if kind == "sum":
            return self._sum(groups).alias(column)
        return (self._mean(groups) if kind == "mean" else self._variance(groups)).alias(column)

    def _unsigned_zeros(self, values: pl.Expr) -> pl.Expr:
        """The two zeros of a float are equal, so which of them is the minimum would depend on the order of rows."""
        if not (self.dtype.is_float() and self.leaf.kind in {"min", "max", "median", "quantile"}):
            return values
        # Adding zero would do, but Polars leaves that out.
        return pl.when(values == 0).then(pl.lit(0.0, self.dtype)).otherwise(values)

    def _numbers(self, values: pl.Series) -> pl.Series:
        if self.family == "decimal":
            return values
        if self.family == "float":
            return values.cast(pl.Float64)
        return values if values.dtype.is_integer() else values.cast(pl.Int64)

    def _mean(self, groups: pl.DataFrame) -> pl.Series:
        if isinstance(self.dtype, pl.Decimal):
            return decimals.decimal_mean(groups, self.counted, self.total, self.dtype.scale)
        mean = exact.float_mean if self.family == "float" else exact.int_mean
        return mean(groups, self.counted, self.total)

    def _variance(self, groups: pl.DataFrame) -> pl.Series:
        columns = (self.counted, self.total, self.squares, self.leaf.ddof)
        root = self.leaf.kind == "std"
        if isinstance(self.dtype, pl.Decimal):
            return decimals.decimal_variance(groups, *columns, scale=self.dtype.scale, root=root)
        variance = exact.float_variance if self.family == "float" else exact.int_variance
        return variance(groups, *columns, root=root)

    def _sum(self, groups: pl.DataFrame) -> pl.Series:
        if isinstance(self.dtype, pl.Decimal):
            return decimals.decimal_total(groups, self.total, self.dtype.scale)
        if self.family == "float":
            return exact.float_total(groups, self.total)
        row = exact.first_overflow(groups, self.total)
        if row is not None:
            key = groups["$key"][row]
            raise NumberOverflowError(
                f"the sum of the group {key.decode(errors='replace')!r} does not fit into 64 bits",
                hint="Sum as floats: col(...).cast(float).sum(), or sum over smaller groups.",
            )
        total = exact.int_total(groups, self.total)
        return total.cast(self.dtype) if isinstance(self.dtype, pl.Duration) else total


@dataclass(frozen=True, eq=False)
class AggregatePlan:
    """How the leaves of a node are kept.

    Attributes:
        accumulators: All leaves.
        retracts: The input is a table, so contributions may be taken back.
        placed: A group has the position of its last contribution that is still there.
        shared: Rows may share a position and come in different micro-batches, so values decide between them.
    """

    accumulators: tuple[Accumulator, ...]
    retracts: bool
    placed: bool = False
    shared: bool = False

    @classmethod
    @lru_cache(maxsize=256)
    def of(cls, node: Aggregate, *, ordered: bool = False) -> AggregatePlan:
        """The plan of a node.

        The highest position a group has ever had is enough for its time, but on a table it depends on which changes
        came in one batch. Where an operation that follows orders groups by their position, it must not: then the last
        contribution is kept track of, as for `last`.

        Args:
            node: The node.
            ordered: Such an operation follows.
        """
        feeder = node.inputs[0]
        frame = pl.DataFrame(schema=feeder.schema.polars)
        accumulators = [
            Accumulator(
                leaf,
                pl.Null() if leaf.input is None else frame.select(leaf.input).dtypes[0],
                None if leaf.by is None else frame.select(leaf.by).dtypes[0],
            )
            for leaf in node.leaves
        ]
        placed = ordered and feeder.kind is Kind.TABLE
        if placed:
            accumulators.append(Accumulator(Leaf("last", f"$a{len(accumulators)}", pl.lit(value=True)), pl.Boolean()))
        retracts = feeder.kind is Kind.TABLE
        shared = not retracts and any(before.shares_positions for before in feeders_first(feeder))
        return cls(tuple(accumulators), retracts, placed, shared)

    @property
    def merging(self) -> list[Accumulator]:
        """Those with an accumulator in the group's row."""
        return [a for a in self.accumulators if a.leaf.kind in INCREMENTAL]

    @property
    def holistic(self) -> list[Accumulator]:
        """Those that need all contributions of a group."""
        return [a for a in self.accumulators if a.leaf.kind not in INCREMENTAL]

    @property
    def kept(self) -> list[Accumulator]:
        """Those whose inputs are kept by contribution."""
        enough = REVERSIBLE if self.retracts else INCREMENTAL
        return [a for a in self.accumulators if a.leaf.kind not in enough]

    def tied(self, *kinds: str) -> list[str]:
        """The inputs of the leaves of some kinds, where values decide between rows of one position."""
        leaves = self.of_kind(*kinds) if kinds else self.kept
        inputs = (expression for a in leaves for expression in a.inputs)
        return list(dict.fromkeys(e.meta.output_name() for e in inputs)) if self.shared else []

    def of_kind(self, *kinds: str) -> list[Accumulator]:
        """The leaves of some kinds."""
        return [a for a in self.accumulators if a.leaf.kind in kinds]

    @property
    def exact_prefixes(self) -> list[str]:
        """Prefixes of all exact sums."""
        return [prefix for a in self.accumulators for prefix in a.exact_prefixes]
