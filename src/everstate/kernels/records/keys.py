"""Record keys of whole frames; byte for byte what `topology.keys` does to one key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from everstate.errors import DecodeError
from everstate.kernels.records import numbers, utf8, wire
from everstate.schema import text_forms
from everstate.schema.keys import KeySpec, decode_key

if TYPE_CHECKING:
    from everstate.schema.types import DataType

#: What JSON strings must escape, and how `json.dumps` does.
_ESCAPES: Final = {
    '"': '\\"',
    "\\": "\\\\",
    **{chr(code): f"\\u{code:04x}" for code in range(32)},
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\b": "\\b",
    "\f": "\\f",
}
#: From so many moments on, those that come again are written once.
_MANY: Final = 1000
#: How the parts of a composite key look that need no thought; everything else is read one by one.
_STRING: Final = r'"([^"\\]*)"'
_BARE: Final = r"([-0-9a-z]+)"


def encode_keys(frame: pl.DataFrame, spec: KeySpec) -> pl.Series:
    """The keys of rows as bytes; null where a part of the key is null."""
    if spec.windows is not None:
        bounds = zip(*(frame.get_column(name).to_list() for name in spec.names[-2:]), strict=True)
        inner = encode_keys(frame, spec.group).to_list()
        found = [None if key is None else key + spec.windows.bounds(*at) for key, at in zip(inner, bounds, strict=True)]
        return pl.Series("key", found, dtype=pl.Binary)
    if not spec.composite:
        name, type_ = spec.names[0], spec.types[0]
        if type_.name == "bytes":
            return frame.get_column(name)
        if spec.width is not None:
            return numbers.write(frame.get_column(name), spec.width).alias(name)
        return text_of(frame.get_column(name), type_).cast(pl.Binary).alias(name)
    parts = [_json_part(frame.get_column(name), type_) for name, type_ in zip(spec.names, spec.types, strict=True)]
    columns = pl.DataFrame({str(place): part for place, part in enumerate(parts)})
    return columns.select(
        pl.concat_str(pl.lit("["), pl.concat_str(pl.all(), separator=","), pl.lit("]")).cast(pl.Binary)
    ).to_series()


def decode_keys(keys: pl.Series, spec: KeySpec) -> tuple[dict[str, pl.Series], pl.Series]:
    """The columns of keys.

    Returns:
        The key's columns by name, null where the key is null or bad; and where it is bad: true or false, never null.
    """
    if spec.windows is not None:
        columns = pl.DataFrame(schema=dict(zip(spec.names, spec.dtypes, strict=True))).clear(len(keys))
        return _one_by_one(keys, keys.is_not_null().arg_true(), columns, spec)
    if not spec.composite and spec.types[0].name == "bytes":
        return {spec.names[0]: keys.alias(spec.names[0])}, nowhere(len(keys))
    if spec.width is not None:
        return _numbers(keys, spec)
    text = utf8.text(keys)
    plain = not spec.composite and spec.types[0].name == "text"
    if plain and text.null_count() == keys.null_count():
        return {spec.names[0]: text.alias(spec.names[0])}, nowhere(len(keys))
    guessed = pl.DataFrame({name: _guess(text, spec, place) for place, name in enumerate(spec.names)})
    # A key has one spelling, so a guess that is spelt like the key is right.
    known = text.is_not_null() if plain else (encode_keys(guessed, spec) == keys).fill_null(value=False)
    if known.all():
        return guessed.to_dict(), nowhere(len(keys))
    columns = guessed.with_columns(pl.when(known).then(pl.all()).name.keep())
    unknown = (~known & keys.is_not_null()).arg_true()
    if unknown.is_empty():
        return columns.to_dict(), nowhere(len(keys))
    return _one_by_one(keys, unknown, columns, spec)


def _numbers(keys: pl.Series, spec: KeySpec) -> tuple[dict[str, pl.Series], pl.Series]:
    name, type_ = spec.names[0], spec.types[0]
    found, places = numbers.column(keys, type_.name)
    whole = pl.Series(name, [None], dtype=type_.polars).new_from_index(0, len(keys))
    good = keys.is_not_null()
    bad = good & ~places
    return {name: whole.scatter(places.arg_true(), found.cast(type_.polars))}, bad.alias("bad")


def rewritten(keys: pl.Series, spec: KeySpec, other: KeySpec) -> pl.Series:
    """Keys in another form of the same columns."""
    return encode_keys(pl.DataFrame(decode_keys(keys, spec)[0]), other)


def nowhere(rows: int) -> pl.Series:
    """False for each of so many rows."""
    return pl.Series("bad", [False], dtype=pl.Boolean).new_from_index(0, rows)


def text_of(values: pl.Series, type_: DataType) -> pl.Series:
    """The one text of each value; null where it is null."""
    if type_.is_float:
        return _each(values, lambda value: text_forms.to_text(value, type_))
    if type_.name == "duration":
        return values.dt.total_microseconds().cast(pl.String)
    if type_.name in ("bytes", "decimal", "date", "datetime"):
        return pl.select(wire.text(pl.lit(values), type_)).to_series()
    return values.cast(pl.String)


def quoted(text: pl.Series) -> pl.Series:
    """Text as JSON strings; null where it is null."""
    escaped = text.str.replace_many(list(_ESCAPES), list(_ESCAPES.values()))
    return pl.select(pl.concat_str(pl.lit('"'), pl.lit(escaped), pl.lit('"'))).to_series()


def _json_part(values: pl.Series, type_: DataType) -> pl.Series:
    if type_.name == "datetime" and len(values) > _MANY and not values.null_count():
        few = values.unique()
        if len(few) < len(values) // 4:  # the bounds of windows: some moments for very many rows
            return values.replace_strict(few, quoted(text_of(few, type_)), return_dtype=pl.String)
    text = text_of(values, type_)
    if type_.is_integer or type_.name in ("bool", "duration"):
        return text
    if type_.is_float:
        special = text.is_in(list(text_forms.SPECIAL_FLOATS))
        return text.zip_with(~special.fill_null(value=False), quoted(text)) if special.any() else text
    return quoted(text)


def _each(values: pl.Series, written: Any) -> pl.Series:
    texts = [None if value is None else written(value) for value in values]
    return pl.Series(values.name, texts, dtype=pl.String)


def _guess(text: pl.Series, spec: KeySpec, place: int) -> pl.Series:
    """A part of each key as it most likely is; null if nobody knows."""
    type_ = spec.types[place]
    if spec.composite:
        parts = [_BARE if _is_token(each) else _STRING for each in spec.types]
        text = text.str.extract(r"^\[" + ",".join(parts) + r"\]$", place + 1)
    if type_.name == "text":
        return text
    if type_.name == "bool":
        return text.replace_strict(["true", "false"], [True, False], default=None, return_dtype=pl.Boolean)
    if type_.is_integer or type_.is_float:
        return text.cast(type_.polars, strict=False)
    wired = text.cast(pl.Int64, strict=False) if type_.name == "duration" else text
    return pl.select(wire.read(pl.lit(wired), type_)).to_series()


def _is_token(type_: DataType) -> bool:
    return type_.is_integer or type_.is_float or type_.name in ("bool", "duration")


def _one_by_one(
    keys: pl.Series, unknown: pl.Series, columns: pl.DataFrame, spec: KeySpec
) -> tuple[dict[str, pl.Series], pl.Series]:
    places: list[int] = []
    found: list[tuple[Any, ...]] = []
    bad: list[int] = []
    for place, key in zip(unknown, keys.gather(unknown), strict=True):
        try:
            found.append(decode_key(key, spec))
            places.append(place)
        except DecodeError:
            bad.append(place)
    series = {name: columns.get_column(name) for name in spec.names}
    if places:
        for part, (name, type_) in enumerate(zip(spec.names, spec.types, strict=True)):
            values = pl.Series(name, [each[part] for each in found], dtype=type_.polars, strict=True)
            series[name] = series[name].scatter(places, values)
    marks = nowhere(len(keys))
    return series, marks.scatter(bad, True) if bad else marks
