"""The columns of records that nobody has described, from the records themselves.

Every value is looked at, so the columns do not depend on which record came first. Numbers of both kinds are floats; a
column of several types, or of integers beyond 64 bits, is text: the JSON of each value. Records that are not objects
among objects are bad; where none is an object, the column is `value`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import polars as pl

from everstate.kernels.records import json_lines, utf8
from everstate.kernels.records.decode import decode_values
from everstate.kernels.records.python_rows import to_frame
from everstate.kernels.records.typed_rows import BAD, DELETED, METADATA, OFFSET, PARTITION, PLACE, TIMESTAMP, Rows
from everstate.reading import shapes
from everstate.reading.shapes import NOTHING, Shape, Signature
from everstate.schema.schema import SCALAR_COLUMN, Schema
from everstate.schema.types import BYTES, TEXT, DataType, Field

KEY: Final = "key"
#: Where the values have a field `key` of their own.
OTHER_KEY: Final = "$key"


@dataclass
class Inference:
    """Gathers what the records of a topic look like."""

    _objects: dict[str, Shape] = field(default_factory=dict)
    _others: Shape = NOTHING
    _found: set[str] = field(default_factory=set)
    _binary_keys: bool = False
    _seen: set[Signature] = field(default_factory=set)

    def add(self, records: pl.DataFrame) -> None:
        """Look at some records."""
        keys = records["key"]
        self._binary_keys = self._binary_keys or utf8.text(keys).null_count() > keys.null_count()
        values = utf8.text(records["value"].drop_nulls())
        if values.null_count():
            self._found.add("binary")
        values = values.drop_nulls()
        usable = json_lines.usable(values)
        together = shapes.of_objects(values.filter(usable))
        if together is not None:
            self._found.add("object")
            self._objects = shapes.merged_fields(self._objects, together)
        for text in values if together is None else values.filter(~usable):
            self._add(text)

    def _add(self, text: str) -> None:
        try:
            value = shapes.parsed(text)
        except (ValueError, RecursionError):
            self._found.add("text")
            return
        signature = shapes.signature(value)
        if signature in self._seen:
            return
        self._seen.add(signature)
        if isinstance(value, dict):
            self._found.add("object")
            fields = {name: shapes.of_value(part) for name, part in value.items()}
            self._objects = shapes.merged_fields(self._objects, fields)
        else:
            self._found.add("json")
            self._others = shapes.merged(self._others, shapes.of_value(value))

    def form(self) -> InferredForm:
        """How to read what was looked at."""
        if "object" in self._found:
            key = OTHER_KEY if KEY in self._objects else KEY
            settled = {name: shapes.settled(shape) for name, shape in self._objects.items()}
            return InferredForm(settled, "json", key=key, binary_keys=self._binary_keys)
        if not self._found:
            return InferredForm({}, "json", key=KEY, binary_keys=self._binary_keys)
        bare = shapes.settled(self._others)
        if self._found == {"json"} and not shapes.has_mixed(bare):
            return InferredForm({SCALAR_COLUMN: bare}, "json", key=KEY, binary_keys=self._binary_keys, scalar=True)
        kind = "bytes" if "binary" in self._found else "string"
        return InferredForm({SCALAR_COLUMN: kind}, kind, key=KEY, binary_keys=self._binary_keys, scalar=True)


@dataclass(frozen=True)
class InferredForm:
    """How records are read that nobody has described.

    Attributes:
        shapes: Of the value's columns.
        format: The value's format.
        key: The name of the key's column.
        binary_keys: Keys are not all text.
        scalar: The value is no object.
    """

    shapes: dict[str, Shape]
    format: str
    key: str
    binary_keys: bool
    scalar: bool = False

    @property
    def types(self) -> dict[str, DataType]:
        """The user's columns, those of the key first."""
        values = {field.name: field.type for field in self.schema.fields}
        return {self.key: BYTES if self.binary_keys else TEXT, **values}

    @property
    def keys(self) -> tuple[str, ...]:
        """Those of them that are the key."""
        return (self.key,)

    @property
    def schema(self) -> Schema:
        """The value's columns."""
        if self.format == "bytes":
            return Schema((Field(SCALAR_COLUMN, BYTES, nullable=True),), scalar=True)
        fields = [Field(_shown(name), shapes.type_of(shape), nullable=True) for name, shape in self.shapes.items()]
        return Schema(tuple(fields), scalar=self.scalar)

    def rows(self, records: pl.DataFrame) -> Rows:
        """The rows of a records frame."""
        placed = records.with_row_index(PLACE)
        filled = placed.filter(pl.col("value").is_not_null())
        values, bad = self._values(filled)
        found = placed.join(values, on=PLACE, how="left", maintain_order="left")
        if bad.height:
            found = found.join(bad, on=PLACE, how="anti", maintain_order="left")
        key = pl.col("key") if self.binary_keys else pl.col("key").cast(pl.String)
        frame = found.select(
            key.alias(self.key),
            *(pl.col(_hidden(name)).alias(name) for name in self.schema.names),
            pl.col("ts").cast(METADATA[TIMESTAMP]).alias(TIMESTAMP),
            pl.col("partition").alias(PARTITION),
            pl.col("offset").alias(OFFSET),
            pl.col("value").is_null().alias(DELETED),
        )
        letters = bad.join(placed, on=PLACE, how="left").sort(PLACE).select(list(BAD))
        return Rows(frame, letters)

    def _values(self, filled: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The value's columns by place, under names that no column of a record has; and the bad ones by place."""
        schema, places = self.schema, filled[PLACE]
        if not schema.fields or any(_is_special(name, shape) for name, shape in self.shapes.items()):
            decoded, bad = self._one_by_one(filled["value"], schema)
        else:
            found = decode_values(filled["value"], schema, self.format)
            decoded, bad = found.frame, found.bad
        named = {name: _hidden(name) for name in schema.names}
        values = decoded.with_columns(places.gather(decoded["$index"]).alias(PLACE)).drop("$index").rename(named)
        return values, bad.with_columns(places.gather(bad["$index"]).alias(PLACE)).drop("$index")

    def _one_by_one(self, values: pl.Series, schema: Schema) -> tuple[pl.DataFrame, pl.DataFrame]:
        rows, good, reasons, bad = [], [], [], []
        for place, data in enumerate(values):
            try:
                parsed = shapes.parsed(data)
            except (ValueError, RecursionError):
                parsed = None
            if isinstance(parsed, dict):
                rows.append(
                    {_shown(name): shapes.fitted(parsed.get(name), shape) for name, shape in self.shapes.items()}
                )
                good.append(place)
            else:
                bad.append(place)
                reasons.append("it is not a JSON object, as others in this topic are")
        index = pl.Series("$index", good, dtype=pl.UInt32)
        frame = to_frame(rows, schema).with_columns(index) if schema.fields else pl.DataFrame([index])
        kinds = {"$index": pl.UInt32(), "reason": pl.String()}
        return frame, pl.DataFrame({"$index": bad, "reason": reasons}, schema=kinds)


def _hidden(name: str) -> str:
    return f"$value.{name}"


def _shown(name: str) -> str:
    """A field's column: names that begin with `$` are those of metadata."""
    return f"value.{name}" if name.startswith("$") else name


def _is_special(name: str, shape: Shape) -> bool:
    """Whether a column is not what a schema reads from the field of its name."""
    return name.startswith("$") or shapes.has_mixed(shape)
