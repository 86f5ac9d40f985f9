"""Numbers of a fixed width, as the serialisers that come with Kafka write them, many at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from everstate.schema.record_values import NUMBERS
from everstate.schema.schema import SCALAR_COLUMN

if TYPE_CHECKING:
    from everstate.schema.schema import Schema

_NUMPY: Final = {"int16": ">i2", "int32": ">i4", "int64": ">i8", "float32": ">f4", "float64": ">f8"}


def read(values: pl.Series, schema: Schema) -> tuple[pl.DataFrame, pl.Series]:
    """Read values.

    Returns:
        The frame of those that have the right length, with the place of each in `$index`; and the places of the others.
    """
    type_ = schema.fields[0].type
    numbers, fits = column(values, type_.name)
    frame = numbers.cast(type_.polars).alias(SCALAR_COLUMN)
    index = fits.arg_true().cast(pl.UInt32).alias("$index")
    return pl.DataFrame([frame, index]), (~fits).arg_true().cast(pl.UInt32)


def column(values: pl.Series, type_name: str) -> tuple[pl.Series, pl.Series]:
    """The numbers of the values that have the right length; and which ones these are: true or false, never null."""
    fits = (values.bin.size() == NUMBERS[type_name].size).fill_null(value=False)
    numbers: Any = np.frombuffer(b"".join(values.filter(fits)), dtype=_NUMPY[type_name])
    return pl.Series(numbers.astype(numbers.dtype.newbyteorder("="))), fits


def write(values: pl.Series, type_name: str) -> pl.Series:
    """The values of a column; null where it is null."""
    size = NUMBERS[type_name].size
    content = values.drop_nulls().to_numpy().astype(_NUMPY[type_name]).tobytes()
    parts = [content[start : start + size] for start in range(0, len(content), size)]
    written = pl.Series("value", parts, dtype=pl.Binary)
    if not values.null_count():
        return written
    nothing = pl.Series("value", [None], dtype=pl.Binary).new_from_index(0, len(values))
    return nothing.scatter(values.is_not_null().arg_true(), written)
