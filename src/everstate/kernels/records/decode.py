"""Records to rows: strict, vectorised, and record by record wherever the vectorised way is in doubt."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import polars as pl

from everstate.errors import DecodeError
from everstate.formats.descriptions import KEYS, Avro, Format, has_fields
from everstate.formats.values import decode_value
from everstate.kernels.records import avro_blocks, json_lines, numbers, python_rows, utf8, wire
from everstate.kernels.records.keys import decode_keys, nowhere
from everstate.kernels.rows import KEY, OFF, TOMBSTONE, TS
from everstate.schema.keys import KeySpec, decode_key
from everstate.schema.schema import Schema
from everstate.schema.types import Field

_INDEX: Final = "$index"
_REASONS: Final = {_INDEX: pl.UInt32(), "reason": pl.String()}
#: Bare JSON values that mean the same wherever they stand, so that they may be put into an object and read with others.
_BARE: Final = r'^(?:"[^"\\\x00-\x1f]*"|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null)$'


@dataclass(frozen=True)
class Decoded:
    """Values after decoding.

    Attributes:
        frame: A row for each good value, in order: the schema's columns, and `$index`, the value's place.
        bad: `$index` and `reason` of each other value, in order.
    """

    frame: pl.DataFrame
    bad: pl.DataFrame


@dataclass(frozen=True)
class DecodedRecords:
    """Records after decoding.

    Attributes:
        rows: In the records' order: `$key`, `$tombstone`, `$ts`, `$off`, the carried columns, then the user's columns:
            those of the key that the schema does not name, and the schema's.
        bad: The carried columns, `offset`, `ts`, `key`, `value` and `reason` of each record for the dead-letter topic.
        dropped: Number of records of a stream without a value.
    """

    rows: pl.DataFrame
    bad: pl.DataFrame
    dropped: int


def decode_values(values: pl.Series, schema: Schema, fmt: Format) -> Decoded:
    """Decodes values, none of which is null."""
    if fmt == KEYS:  # the values are not looked at
        index = pl.int_range(len(values), dtype=pl.UInt32, eager=True).alias(_INDEX)
        return Decoded(pl.DataFrame([index]), pl.DataFrame(schema=_REASONS))
    if fmt == "bytes":
        index = pl.int_range(len(values), dtype=pl.UInt32, eager=True).alias(_INDEX)
        return Decoded(pl.DataFrame([values.alias(schema.names[0]), index]), pl.DataFrame(schema=_REASONS))
    if fmt == "number":
        return _settled(values, *numbers.read(values, schema), schema, fmt)
    if isinstance(fmt, Avro):
        return _settled(values, *avro_blocks.read(values, schema, fmt), schema, fmt)
    text = utf8.text(values)
    if fmt == "string" and schema.fields[0].type.name == "text":
        read = pl.DataFrame([text.alias(schema.names[0])]).with_row_index(_INDEX).drop_nulls()
        read, aside = read.select(schema.names[0], _INDEX), text.is_null().arg_true()
    elif fmt == "json" and all(wire.is_read(field.type) for field in schema.fields):
        read, aside = _read_json(text, schema)
    else:
        return _one_by_one(values, pl.int_range(len(values), dtype=pl.UInt32, eager=True), schema, fmt)
    return _settled(values, read, aside, schema, fmt)


def _settled(values: pl.Series, read: pl.DataFrame, aside: pl.Series, schema: Schema, fmt: Format) -> Decoded:
    """What was read, with what the strict codec makes of the others."""
    if aside.is_empty():
        return Decoded(read, pl.DataFrame(schema=_REASONS))
    slow = _one_by_one(values, aside, schema, fmt)
    return Decoded(pl.concat([read, slow.frame]).sort(_INDEX), slow.bad)


def _read_json(text: pl.Series, schema: Schema) -> tuple[pl.DataFrame, pl.Series]:
    """What the fast path could read, with its places, and the places of the others."""
    if schema.scalar:
        bare = text.str.contains(_BARE).fill_null(value=False)
        text = pl.select(
            pl.when(pl.lit(bare)).then(pl.concat_str(pl.lit('{"value":'), pl.lit(text), pl.lit("}")))
        ).to_series()
    usable = json_lines.usable(text)
    if usable.all():
        return json_lines.parse(text, schema)
    places = usable.arg_true().cast(pl.UInt32)
    read, aside = json_lines.parse(text.filter(usable), schema)
    read = read.with_columns(places.gather(read[_INDEX]).alias(_INDEX))
    rest = pl.concat([places.gather(aside), (~usable).arg_true().cast(pl.UInt32)])
    return read, rest.sort()


def _one_by_one(values: pl.Series, places: pl.Series, schema: Schema, fmt: Format) -> Decoded:
    good, rows, bad, reasons = [], [], [], []
    for place, value in zip(places, values.gather(places), strict=True):
        try:
            rows.append(decode_value(value, schema, fmt))
            good.append(place)
        except DecodeError as error:
            bad.append(place)
            reasons.append(error.message)
    frame = python_rows.to_frame(rows, schema).with_columns(pl.Series(_INDEX, good, dtype=pl.UInt32))
    return Decoded(frame, pl.DataFrame({_INDEX: bad, "reason": reasons}, schema=_REASONS))


def decode_records(records: pl.DataFrame, *, key: KeySpec, schema: Schema, fmt: Format, table: bool) -> DecodedRecords:
    """Decodes records of one source.

    The key's columns are filled from the record's key. A value may repeat them, but if it differs the record is bad;
    where a stream's record has no key, what the value says stands. A record of a table that cannot be used but whose
    key can, deletes the key's row: it is a bad record and a tombstone.

    Args:
        records: `key`, `value`, `ts`, `offset`, and columns to carry along, whose names start with `$`.
        key: The key's columns; where the schema has them too, of the same types.
        schema: The columns of the value.
        fmt: The format of the value.
        table: Whether the source is a table.
    """
    keys, bad_keys = decode_keys(records["key"], key)
    unusable = bad_keys | records["key"].is_null() if table and records["key"].null_count() else bad_keys
    empty = records["value"].is_null() if records["value"].null_count() else nowhere(records.height)
    places = (~unusable & ~empty).arg_true().cast(pl.UInt32)
    whole = len(places) == len(records)
    value_schema = _value_schema(key, schema, fmt)
    decoded = decode_values(records["value"] if whole else records["value"].gather(places), value_schema, fmt)
    frame, bad = decoded.frame, decoded.bad
    if not whole:
        frame = frame.with_columns(places.gather(frame[_INDEX]).alias(_INDEX))
        bad = bad.with_columns(places.gather(bad[_INDEX]).alias(_INDEX))
    if not unusable.is_empty() and unusable.any():
        bad = pl.concat([bad, _bad_keys(records["key"], unusable, key)])
    frame, differing = _with_keys(frame, keys, key)
    bad = pl.concat([bad, differing]).sort(_INDEX) if bad.height or differing.height else bad
    gone = (~unusable & empty).arg_true().cast(pl.UInt32) if table else pl.Series(dtype=pl.UInt32)
    if table and not bad.is_empty():
        usable = bad[_INDEX].filter(~unusable.gather(bad[_INDEX]))
        gone = pl.concat([gone, usable])
    columns = [*(name for name in key.names if name not in schema.names), *schema.names]
    rows = _with_tombstones(frame, gone, keys)[[_INDEX, TOMBSTONE, *columns]]
    return DecodedRecords(
        _placed(records, rows), _letters(records, bad), 0 if table else int((empty & ~unusable).sum())
    )


def _value_schema(key: KeySpec, schema: Schema, fmt: Format) -> Schema:
    """The schema with the key's fields, which a value may have or not."""
    if schema.scalar or not has_fields(fmt):
        return schema
    fields = [
        replace(field, nullable=True, default=None) if field.name in key.names else field for field in schema.fields
    ]
    named = zip(key.names, key.types, strict=True)
    return Schema((*fields, *(Field(name, type_, nullable=True) for name, type_ in named if name not in schema.names)))


def _bad_keys(keys: pl.Series, unusable: pl.Series, spec: KeySpec) -> pl.DataFrame:
    places = unusable.arg_true().cast(pl.UInt32)
    return pl.DataFrame({_INDEX: places, "reason": [_why(key, spec) for key in keys.gather(places)]}, schema=_REASONS)


def _why(key: bytes | None, spec: KeySpec) -> str:
    if key is None:
        return "the record has no key, and this is a table"
    try:
        decode_key(key, spec)
    except DecodeError as error:
        return error.message
    return "the key cannot be decoded"


def _with_keys(frame: pl.DataFrame, keys: dict[str, pl.Series], spec: KeySpec) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Puts the record's key into the key's columns; rows whose value has a different one come out with reasons."""
    differing: pl.DataFrame = pl.DataFrame(schema=_REASONS)
    whole = len(frame) == len(keys[spec.names[0]])
    for name in spec.names:
        told = keys[name] if whole and len(frame) == len(keys[name]) else keys[name].gather(frame[_INDEX])
        if name not in frame.columns or frame[name].null_count() == frame.height:
            frame = frame.with_columns(told.alias(name))
            continue
        said = frame[name]
        differs = (told.is_not_null() & said.is_not_null() & told.ne_missing(said)).fill_null(value=False)
        frame = frame.with_columns(pl.coalesce(pl.lit(told), pl.lit(said)).alias(name))
        if differs.any():
            reasons = [
                f"field {name!r} is {value!r}, the record's key is {other!r}"
                for value, other in zip(said.filter(differs), told.filter(differs), strict=True)
            ]
            places = frame[_INDEX].filter(differs)
            differing = pl.concat([differing, pl.DataFrame({_INDEX: places, "reason": reasons}, schema=_REASONS)])
            frame = frame.filter(~differs)
    return frame, differing


def _with_tombstones(frame: pl.DataFrame, gone: pl.Series, keys: dict[str, pl.Series]) -> pl.DataFrame:
    frame = frame.hstack([nowhere(frame.height).alias(TOMBSTONE)])
    if gone.is_empty():
        return frame
    deleted = pl.DataFrame([gone.alias(_INDEX), *(column.gather(gone).alias(name) for name, column in keys.items())])
    deleted = deleted.with_columns(pl.lit(True).alias(TOMBSTONE))
    return pl.concat([frame, deleted], how="diagonal").sort(_INDEX)


def _placed(records: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Rows with the key, time, offset and carried columns of their records."""
    carried = [name for name in records.columns if name.startswith("$")]
    if len(rows) != len(records):
        records = records[rows[_INDEX]]
    system = [records["ts"].alias(TS), records["offset"].alias(OFF), *(records[name] for name in carried)]
    user = [column for column in rows if column.name not in (_INDEX, TOMBSTONE)]
    return pl.DataFrame([records["key"].alias(KEY), rows[TOMBSTONE], *system, *user])


def _letters(records: pl.DataFrame, bad: pl.DataFrame) -> pl.DataFrame:
    carried = [name for name in records.columns if name.startswith("$")]
    letters = records[[*carried, "offset", "ts", "key", "value"]]
    letters = letters[bad[_INDEX]] if bad.height else letters.clear()
    return letters.hstack([bad["reason"]])
