"""How the records of a topic become typed rows: as a service declares them, or as the caller does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, cast

import polars as pl

from everstate.dsl.service import Service
from everstate.errors import ConfigurationError
from everstate.kernels.records.decode import decode_records
from everstate.kernels.rows import OFF, TOMBSTONE, TS
from everstate.schema.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everstate.formats.descriptions import Format
    from everstate.schema.keys import KeySpec
    from everstate.schema.types import DataType
    from everstate.topology.nodes import Output, Routed, Source

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


class Form(Protocol):
    """How records are read."""

    @property
    def types(self) -> dict[str, DataType]:
        """The user's columns, those of the key first."""

    @property
    def keys(self) -> tuple[str, ...]:
        """Those of them that are the key."""

    def rows(self, records: pl.DataFrame) -> Rows:
        """The rows of a records frame."""


def columns_of(form: Form) -> dict[str, pl.DataType]:
    """The user's columns as frames have them."""
    return {name: type_.polars for name, type_ in form.types.items()}


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
        columns = columns_of(self)
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


def declared(topic: str, *, schema: object, key: str | Sequence[str], key_type: object, fmt: Format) -> DeclaredForm:
    """The form that a caller declares, with the arguments of `Service.table`.

    Raises:
        DefinitionError: If they cannot be.
    """
    node = cast("Source", Service("reading").stream(topic, key=key, schema=schema, key_type=key_type, format=fmt).node)
    return DeclaredForm(node.key, node.declared, node.format)


def of_service(service: Service, topic: str) -> DeclaredForm | None:
    """The form in which a service writes a topic, or reads it; None for its dead letters, which say it themselves.

    Where it reads several selections of a topic's columns, all of them are taken.

    Raises:
        ConfigurationError: If it does neither.
    """
    units = service.units()
    for unit in units:
        if topic in unit.routed:
            return _of_node(unit.routed[topic], unit.routed[topic].record)
    if topic in {name for unit in units for name in unit.written if name != unit.output.topic}:
        return None
    for unit in units:
        if unit.output.topic == topic:
            return _of_node(unit.output, unit.output.record)
    readings = [source for unit in units for source in unit.sources if source.topic == topic]
    if not readings:
        known = sorted({name for unit in units for name in (*unit.topics, unit.output.topic, *unit.routed)})
        raise ConfigurationError(
            f"service {service.name!r} neither reads nor writes topic {topic!r}",
            hint=f"Its topics are: {', '.join(known) or 'none'}. Give the columns themselves with schema=, or leave "
            "service= out, and they are inferred.",
        )
    fields = {field.name: field for source in readings for field in source.declared.fields}
    return _of_node(readings[0], Schema(tuple(fields.values()), scalar=readings[0].declared.scalar))


def _of_node(node: Output | Source | Routed, schema: Schema) -> DeclaredForm:
    return DeclaredForm(node.key, schema, node.format)
