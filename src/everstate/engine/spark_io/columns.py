"""The columns of Spark's data frames: which of them are those of a topic, and in which types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from everstate.errors import SchemaError
from everstate.kernels.records.typed_rows import DELETED, METADATA, TIMESTAMP
from everstate.schema.types import BOOL, DATETIME, TypeMistakeError, of_arrow
from everstate.topology.nodes import Kind

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from everstate.kernels.records.typed_rows import DeclaredForm
    from everstate.schema.types import DataType
    from everstate.topology.spark_steps import Feed

#: Spark has no unsigned integers: each becomes the next larger signed one, and the largest a decimal.
_SIGNED: Final[dict[pa.DataType, pa.DataType]] = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}
_METADATA_TYPES: Final = {TIMESTAMP: DATETIME, DELETED: BOOL}


def delivered_schema(form: DeclaredForm) -> tuple[pa.Schema, StructType]:
    """The columns of what is delivered, for Arrow and for Spark."""
    columns = [pa.field(name, _to_spark(type_.arrow)) for name, type_ in form.types.items()]
    kinds: tuple[pa.DataType, ...] = (pa.timestamp("us", "UTC"), pa.int32(), pa.int64(), pa.bool_())
    columns += [pa.field(name, kind) for name, kind in zip(METADATA, kinds, strict=True)]
    schema = pa.schema(columns)
    return schema, from_arrow_schema(schema, prefer_timestamp_ntz=True)


def _to_spark(arrow: pa.DataType) -> pa.DataType:
    """The same type as Spark has it: signed, nullable inside, times in microseconds."""
    if arrow in _SIGNED:
        return _SIGNED[arrow]
    if pa.types.is_timestamp(arrow):
        return pa.timestamp("us", arrow.tz)
    if pa.types.is_duration(arrow):
        return pa.duration("us")
    if pa.types.is_list(arrow):
        return pa.list_(pa.field("element", _to_spark(arrow.value_type)))
    if pa.types.is_map(arrow):
        return pa.map_(pa.string(), _to_spark(arrow.item_type))
    if pa.types.is_struct(arrow):
        return pa.struct([pa.field(field.name, _to_spark(field.type)) for field in arrow])
    return arrow


def fed_columns(given: StructType, feed: Feed, form: DeclaredForm) -> list[str]:
    """Those of a data frame's columns that become records.

    Raises:
        SchemaError: If one is missing, or has a type of which not every value fits.
    """
    found = {field.name: field for field in to_arrow_schema(given, timezone="UTC")}
    wanted: dict[str, DataType] = dict(form.types)
    optional = {field.name for field in form.schema.fields if field.nullable or field.default is not None}
    wanted |= {name: type_ for name, type_ in _METADATA_TYPES.items() if name in found}
    if DELETED in found and feed.kind is not Kind.TABLE:
        raise _unfit(feed, f"has the column {DELETED}, but {feed.topic!r} is a stream", "Only tables have tombstones.")
    for name, type_ in wanted.items():
        if name not in found:
            if name in optional:
                continue
            raise _unfit(
                feed,
                f"gives no column {name!r}",
                f"Its columns are: {', '.join(found) or 'none'}. Rename or add it in the function.",
            )
        try:
            actual = of_arrow(found[name].type)
        except TypeMistakeError as error:
            raise _unfit(feed, f"gives column {name!r} as {found[name].type}", error.hint or "Cast it.") from None
        if not _fits(actual, type_):
            raise _unfit(
                feed,
                f"gives column {name!r} as {actual}, but the source declares {type_}",
                "Cast it in the function: .withColumn(name, col(name).cast(...)), or declare what it is.",
            )
    return [name for name in wanted if name in found]


def _unfit(feed: Feed, what: str, hint: str) -> SchemaError:
    return SchemaError(f"{feed.call} {what}", location=feed.function.location or feed.location, hint=hint)


def _fits(actual: DataType, declared: DataType) -> bool:
    """Whether every value of one type is one of the other."""
    if actual.is_integer and declared.is_integer:
        low, high = declared.bounds
        return low <= actual.bounds[0] and actual.bounds[1] <= high
    if declared.is_float:
        return actual.is_integer or (actual.is_float and declared.name in (actual.name, "float64"))
    if actual.name != declared.name:
        return False
    if actual.name == "datetime":
        return actual.zone == declared.zone
    if actual.name == "decimal":
        whole = (actual.precision or 0) - (actual.scale or 0) <= (declared.precision or 0) - (declared.scale or 0)
        return whole and (actual.scale or 0) <= (declared.scale or 0)
    if actual.name in ("list", "map"):
        return _fits(actual.inner.type, declared.inner.type)
    if actual.name == "struct":
        inside = {field.name: field.type for field in actual.fields}
        return all(field.name in inside and _fits(inside[field.name], field.type) for field in declared.fields)
    return True
