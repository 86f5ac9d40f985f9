"""Record keys: from Python values to bytes and back, one key at a time.

| key | bytes |
|---|---|
| text | its UTF-8 |
| integer | decimal text: `42`, `-1` |
| bytes | as they are |
| others | the type's one text: `true`, `0.5`, `2024-05-01`, `2024-05-01T10:00:00Z` |
| several columns | a JSON array of these without spaces: `["eu",42]` |
| integer, of the form "number" | as many bytes as the type says, the highest first |
| windows, if asked for | as Kafka Streams writes them: see `windowed_keys.py` |

Equal keys are equal bytes, so only that form is read back: `01` or ` 1` is not an integer key.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from everstate.errors import DecodeError, RecordError, SchemaError
from everstate.schema import scalars, text_forms
from everstate.schema.record_values import NUMBERS
from everstate.schema.types import DataType, TypeMistakeError, of_polars

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from everstate.location import Location
    from everstate.schema.windowed_keys import WindowedKeys

#: How a key is written: by its text, or as a number of fixed width.
KeyForm: TypeAlias = Literal["text", "number"]
FORMS: Final[tuple[str, ...]] = get_args(KeyForm)
_WIDTHS: Final = ("int16", "int32", "int64")


@dataclass(frozen=True)
class KeySpec:
    """Names and types of the columns that make up a key, and how it is written.

    Attributes:
        names: The columns.
        dtypes: Their types.
        windows: The last two columns are the bounds of a window, and the bytes are those of Kafka Streams.

    Raises:
        SchemaError: If there is none, one is there twice, one has a type that cannot be part of a key, or the key
            cannot be written like this.
    """

    names: tuple[str, ...]
    dtypes: tuple[pl.DataType, ...]
    form: KeyForm = "text"
    windows: WindowedKeys | None = None

    def __post_init__(self) -> None:
        if not self.names or len(self.names) != len(self.dtypes):
            raise SchemaError("a key needs at least one column, and a type for each", hint="Name the column: key='id'")
        for name, type_ in zip(self.names, self.types, strict=True):
            if self.names.count(name) > 1:
                raise SchemaError(f"key column {name!r} appears twice", hint="Name each column once.")
            if type_.is_nested:
                raise SchemaError(
                    f"key column {name!r}: a {type_.name} cannot be part of a key",
                    hint="Take a text, a number or a time inside it, such as col('tags').list.first().",
                )

        if self.form not in FORMS:
            raise SchemaError(
                f"a key cannot be written as {scalars.shown(self.form)}",
                hint='Keys are written as "text" or, if they are whole numbers, as "number".',
            )
        if self.form == "number" and (self.composite or self.types[0].name not in _WIDTHS):
            columns = ", ".join(f"{name}: {type_}" for name, type_ in zip(self.names, self.types, strict=True))
            raise SchemaError(
                f"key_format='number' cannot hold the key ({columns})",
                hint="It is for one column of type int, or one of Arrow's int16 and int32.",
            )

    @staticmethod
    def of(columns: Mapping[str, pl.DataType], *, location: Location | None = None, form: KeyForm = "text") -> KeySpec:
        """The key of these columns.

        Raises:
            SchemaError: As the class says, with the location.
        """
        try:
            return KeySpec(tuple(columns), tuple(columns.values()), form)
        except SchemaError as error:
            raise SchemaError(error.message, location=location, hint=error.hint) from None

    @cached_property
    def types(self) -> tuple[DataType, ...]:
        """The types of the columns."""
        found = []
        for name, dtype in zip(self.names, self.dtypes, strict=True):
            try:
                found.append(of_polars(dtype))
            except TypeMistakeError as mistake:
                raise SchemaError(f"key column {name!r}: {mistake.message}", hint=mistake.hint) from None
        return tuple(found)

    @property
    def composite(self) -> bool:
        """Whether it has several columns."""
        return len(self.names) > 1

    @property
    def width(self) -> str | None:
        """The type of a key that is written as a number of fixed width; None for other keys."""
        return self.types[0].name if self.form == "number" else None

    @cached_property
    def group(self) -> KeySpec:
        """The key without the bounds of the window."""
        return KeySpec(self.names[:-2], self.dtypes[:-2])


def encode_key(value: object, spec: KeySpec) -> bytes:
    """The bytes of a key.

    Args:
        value: The value of a key of one column (a tuple of one is taken too), or a tuple or list of several.
        spec: The key's columns.

    Raises:
        RecordError: If a part is null or of another type.
    """
    parts = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if len(parts) != len(spec.names):
        raise RecordError(
            f"key: expected {len(spec.names)} parts ({', '.join(spec.names)}), got {len(parts)}",
            hint=f"The key is {_form(spec)}.",
        )
    checked = []
    for name, part, type_ in zip(spec.names, parts, spec.types, strict=True):
        try:
            checked.append(scalars.check(part, type_))
        except ValueError as error:
            raise RecordError(f"key {name!r}: {error}", hint=f"The key is {_form(spec)}.") from None
    if spec.windows is not None:
        return encode_key(tuple(checked[:-2]), spec.group) + spec.windows.bounds(*checked[-2:])
    if spec.composite:
        return composite_text(checked, spec).encode()
    if spec.width is not None:
        return NUMBERS[spec.width].pack(checked[0])
    if spec.types[0].name == "bytes":
        return bytes(checked[0])
    return text_forms.to_text(checked[0], spec.types[0]).encode()


def _form(spec: KeySpec) -> str:
    parts = [f"{name}: {type_}" for name, type_ in zip(spec.names, spec.types, strict=True)]
    return f"({', '.join(parts)}), a tuple" if spec.composite else parts[0]


def decode_key(data: bytes, spec: KeySpec) -> tuple[Any, ...]:
    """The values of a key, one for each column.

    Raises:
        DecodeError: If these are not the bytes that `encode_key` writes for any value.
    """
    if spec.windows is not None:
        inner, start, end = spec.windows.split(data)
        return (*decode_key(inner, spec.group), start, end)
    if not spec.composite and spec.types[0].name == "bytes":
        return (data,)
    if spec.width is not None:
        number = NUMBERS[spec.width]
        if len(data) != number.size:
            raise DecodeError(f"key: {len(data)} bytes are no {spec.width}, which has {number.size}")
        return tuple(number.unpack(data))
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise DecodeError("key: it is not valid UTF-8") from None
    if spec.composite:
        return _decode_composite(text, spec)
    try:
        value = text_forms.from_text(text, spec.types[0])
    except ValueError as error:
        raise DecodeError(f"key: {error}") from None
    if text_forms.to_text(value, spec.types[0]) != text:
        raise DecodeError(f"key: {scalars.shown(text)} is written {text_forms.to_text(value, spec.types[0])!r}")
    return (value,)


def composite_text(parts: list[Any], spec: KeySpec) -> str:
    """The JSON array of checked parts; `+ 0.0` makes -0.0 the same key as 0.0, its equal."""
    values = [
        text_forms.to_json(part + 0.0 if type_.is_float else part, type_)
        for part, type_ in zip(parts, spec.types, strict=True)
    ]
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


def _decode_composite(text: str, spec: KeySpec) -> tuple[Any, ...]:
    try:
        parts = json.loads(text)
    except (ValueError, RecursionError):
        raise DecodeError(f"key: {scalars.shown(text)} is not a JSON array") from None
    if not isinstance(parts, list) or len(parts) != len(spec.names):
        raise DecodeError(f"key: {scalars.shown(text)} is not a JSON array of {len(spec.names)} parts")
    values = []
    for name, part, type_ in zip(spec.names, parts, spec.types, strict=True):
        try:
            values.append(text_forms.from_json(part, type_))
        except ValueError as error:
            raise DecodeError(f"key {name!r}: {error}") from None
    if composite_text(values, spec) != text:
        raise DecodeError(f"key: {scalars.shown(text)} is written {composite_text(values, spec)}")
    return tuple(values)
