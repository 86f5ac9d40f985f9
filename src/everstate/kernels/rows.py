"""The one shape of data between kernels: rows with an operation, a key, a time and a position.

A table change travels as up to two rows of the same key: the old value with `$op` = -1 and the new one with `$op` = +1.
Stateless operations treat both alike, which is why `map` and `filter` on a table need no state of their own.
"""

from __future__ import annotations

from typing import Final

import polars as pl

KEY: Final = "$key"
OP: Final = "$op"
TS: Final = "$ts"
TOPIC: Final = "$topic"
PART: Final = "$part"
OFF: Final = "$off"
STREAM_TIME: Final = "$st"
CONTRIBUTION: Final = "$ck"

#: True where a record deletes the row of its key in a table.
TOMBSTONE: Final = "$tombstone"

#: How many contributions a stored group has.
COUNT: Final = "$n"

#: Columns that every rows frame has, with their types.
SYSTEM: Final[dict[str, pl.DataType]] = {
    KEY: pl.Binary(),
    OP: pl.Int8(),
    TS: pl.Int64(),
    TOPIC: pl.UInt16(),
    PART: pl.Int32(),
    OFF: pl.Int64(),
    STREAM_TIME: pl.Int64(),
}

#: Where a row comes from; `first`, `last`, `collect` and ties go by these, in this order.
ORDER: Final = (TS, TOPIC, PART, OFF)

#: What is stored of a row beside its columns, with their types.
PLACE: Final[dict[str, pl.DataType]] = {name: SYSTEM[name] for name in (KEY, *ORDER)}

#: The year 9000: from then on, a time is none. A window that is open then could end in a year that cannot be written.
AFTER_ALL: Final = 221_845_392_000_000


def user_columns(frame: pl.DataFrame) -> list[str]:
    """The columns of a rows frame that belong to the user."""
    return [name for name in frame.columns if not name.startswith("$")]


def all_distinct(frame: pl.DataFrame) -> bool:
    """Whether no row comes twice.

    Rows of different hashes are different, and hashes are compared ten times as fast; where two are equal, the rows
    themselves decide.

    Example:
        >>> all_distinct(pl.DataFrame({"a": [1, 1], "b": [2, 3]})), all_distinct(pl.DataFrame({"a": [1, 1]}))
        (True, False)
    """
    return frame.hash_rows().n_unique() == frame.height or frame.n_unique() == frame.height


def empty(columns: dict[str, pl.DataType]) -> pl.DataFrame:
    """A rows frame without rows, with these user columns."""
    return pl.DataFrame(schema={**SYSTEM, **columns})
