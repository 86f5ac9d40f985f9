"""Records as typed rows with what is known of each beside its columns: for whoever looks at topics from outside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.kernels.records.decode import decode_records
from everstate.kernels.rows import OFF, TOMBSTONE, TS

if TYPE_CHECKING:
    from everstate.formats.descriptions import Format
    from everstate.schema.keys import KeySpec
    from everstate.schema.schema import Schema
    from everstate.schema.types import DataType

TIMESTAMP: Final = "$timestamp"
PARTITION: Final = "$partition"
OFFSET: Final = "$offset"
DELETED: Final = "$deleted"
#: What is known of a record beside its columns. No column of a schema begins like this.
METADATA: Final[dict[str, pl.DataType]] = {
    TIMESTAMP: pl.Datetime("ms", "UTC"),
    PARTITION: pl.Int32(),
    OFFSET: pl.Int64(),
    DELETED: pl.Boolean(),
}
#: Places and reasons of records that cannot be decoded.
BAD: Final[dict[str, pl.DataType]] = {"partition": pl.Int32(), "offset": pl.Int64(), "reason": pl.String()}
PLACE: Final = "$place"


@dataclass(frozen=True)
class Rows:
    """Records after decoding.

    Attributes:
        frame: In the records' order: the user's columns, then those of `METADATA`. A tombstone is a row with its key.
        bad: Those that cannot be decoded, as `BAD` describes them.
    """

    frame: pl.DataFrame
    bad: pl.DataFrame


@dataclass(frozen=True)
class DeclaredForm:
    """Strict decoding by a schema: as a service decodes the topic.

    Attributes:
        key: The key's columns.
        schema: The value's columns, which may repeat those of the key.
        format: The value's format.
    """

    key: KeySpec
    schema: Schema
    format: Format

    @property
    def types(self) -> dict[str, DataType]:
        """The user's columns, those of the key first."""
        keys = dict(zip(self.key.names, self.key.types, strict=True))
        return {**keys, **{field.name: field.type for field in self.schema.fields if field.name not in keys}}

    @property
    def keys(self) -> tuple[str, ...]:
        """Those of them that are the key."""
        return self.key.names

    def rows(self, records: pl.DataFrame) -> Rows:
        """The rows of a records frame."""
        placed = records.select("key", "value", "ts", "offset", pl.col("partition").alias(PARTITION))
        placed = placed.with_row_index(PLACE)
        gone = placed["value"].is_null()
        decoded = [
            decode_records(part, key=self.key, schema=self.schema, fmt=self.format, table=deleted)
            for part, deleted in ((placed.filter(~gone), False), (placed.filter(gone), True))
            if part.height
        ]
        columns = {name: type_.polars for name, type_ in self.types.items()}
        rows = [
            part.rows.select(
                *(pl.col(name).cast(kind) for name, kind in columns.items()),
                pl.col(TS).cast(METADATA[TIMESTAMP]).alias(TIMESTAMP),
                PARTITION,
                pl.col(OFF).alias(OFFSET),
                pl.col(TOMBSTONE).alias(DELETED),
                PLACE,
            )
            for part in decoded
        ]
        bad = [part.bad.select(pl.col(PARTITION).alias("partition"), "offset", "reason") for part in decoded]
        whole = pl.concat([pl.DataFrame(schema={**columns, **METADATA, PLACE: pl.UInt32()}), *rows]).sort(PLACE)
        return Rows(whole.drop(PLACE), pl.concat([pl.DataFrame(schema=BAD), *bad]))
