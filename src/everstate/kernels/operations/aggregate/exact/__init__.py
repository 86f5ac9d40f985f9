"""Sums, means and variances that do not depend on the order, the cut or the retractions of their rows.

An accumulator is a handful of `Int64` columns that share a prefix. They add up as integers:

    batch = frame.with_columns(float_limbs(frame["price"], frame["$op"], "price"))
    batch = batch.group_by("$key").agg(cs.starts_with("price.").sum())
    state = normalise(merge([state, batch], by=["$key"]), "price")
    state.select("$key", float_total(state, "price").alias("sum"))

Nothing is rounded before the last line, and there it is rounded once, to the nearest float.
"""

from everstate.kernels.operations.aggregate.exact.floats import float_limbs, float_mean, float_squares, float_total
from everstate.kernels.operations.aggregate.exact.integers import (
    first_overflow,
    int_mean,
    int_parts,
    int_squares,
    int_total,
)
from everstate.kernels.operations.aggregate.exact.limbs import merge, normalise
from everstate.kernels.operations.aggregate.exact.variance import float_variance, int_variance

__all__ = [
    "first_overflow",
    "float_limbs",
    "float_mean",
    "float_squares",
    "float_total",
    "float_variance",
    "int_mean",
    "int_parts",
    "int_squares",
    "int_total",
    "int_variance",
    "merge",
    "normalise",
]
