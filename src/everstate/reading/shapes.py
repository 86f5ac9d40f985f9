"""What JSON values look like: shapes, how two of them become one, and the types of columns that hold them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

import pyarrow as pa
import pyarrow.json as pj

from everstate.schema.types import BOOL, FLOAT, INTEGER, TEXT, DataType, Field, list_of, struct_of

if TYPE_CHECKING:
    import polars as pl

#: The name of a kind, `("list", shape of the items)`, or `("object", shapes by field)`.
Shape: TypeAlias = "str | tuple[str, Any]"
Signature: TypeAlias = "str | tuple[Any, ...]"

NOTHING: Final = "null"
#: Values of several kinds: the column holds their JSON.
MIXED: Final = "mixed"
_LIST: Final = "list"
_OBJECT: Final = "object"
_SCALARS: Final = {"bool": BOOL, "int": INTEGER, "float": FLOAT, "text": TEXT, NOTHING: TEXT, MIXED: TEXT}
_NUMBERS: Final = (("int", "float"), ("float", "int"))
#: An integer that may not fit into 64 bits, which Arrow would round.
_LONG_NUMBER: Final = r"[0-9]{19}"


def parsed(text: str | bytes) -> Any:
    """A JSON value.

    Raises:
        ValueError: If it is none.
        RecursionError: If it is nested too deep.
    """
    return json.loads(text, parse_constant=_refuse)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON value")


def of_objects(text: pl.Series) -> dict[str, Shape] | None:
    """The shapes of the fields of JSON objects, all at once; None if they are not all of one kind, or in doubt.

    Args:
        text: Objects that `json_lines.usable` has said yes to.
    """
    if text.is_empty() or text.str.contains(_LONG_NUMBER).any():
        return None
    data = ("\n".join(text) + "\n").encode()
    try:
        table = pj.read_json(
            pa.BufferReader(data),  # type: ignore[arg-type]  # any file-like object is
            read_options=pj.ReadOptions(use_threads=False, block_size=len(data) + 1),
        )
    except (pa.ArrowException, OverflowError):
        return None
    if table.num_rows != len(text) or len(set(table.column_names)) < len(table.column_names):
        return None
    return {name: _of_arrow(kind) for name, kind in zip(table.column_names, table.schema.types, strict=True)}


def _of_arrow(kind: Any) -> Shape:
    if pa.types.is_list(kind):
        return (_LIST, _of_arrow(kind.value_type))
    if pa.types.is_struct(kind):
        return (_OBJECT, {field.name: _of_arrow(field.type) for field in kind})
    if pa.types.is_null(kind):
        return NOTHING
    if pa.types.is_boolean(kind):
        return "bool"
    if pa.types.is_integer(kind):
        return "int"
    # A time is what Arrow makes of text.
    return "float" if pa.types.is_floating(kind) else "text"


def signature(value: Any) -> Signature:
    """Two values of one signature have one shape."""
    if isinstance(value, dict):
        return (_OBJECT, *((name, signature(part)) for name, part in value.items()))
    if isinstance(value, list):
        return (_LIST, *dict.fromkeys(signature(part) for part in value))
    return _scalar(value)


def _scalar(value: Any) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int" if -(1 << 63) <= value < 1 << 63 else MIXED
    return "float" if isinstance(value, float) else "text"


def of_value(value: Any) -> Shape:
    """The shape of one value."""
    if isinstance(value, dict):
        return (_OBJECT, {name: of_value(part) for name, part in value.items()})
    if isinstance(value, list):
        inner: Shape = NOTHING
        for part in value:
            inner = merged(inner, of_value(part))
        return (_LIST, inner)
    return _scalar(value)


def merged(one: Shape, other: Shape) -> Shape:
    """The shape of values of which some are of one shape, some of another."""
    if other in (one, NOTHING):
        return one
    if one == NOTHING:
        return other
    if (one, other) in _NUMBERS:
        return "float"
    if isinstance(one, tuple) and isinstance(other, tuple) and one[0] == other[0]:
        if one[0] == _LIST:
            return (_LIST, merged(one[1], other[1]))
        return (_OBJECT, merged_fields(one[1], other[1]))
    return MIXED


def merged_fields(one: dict[str, Shape], other: dict[str, Shape]) -> dict[str, Shape]:
    """The same for the fields of objects; one that only some have may be null."""
    return {**one, **{name: merged(one.get(name, NOTHING), shape) for name, shape in other.items()}}


def settled(shape: Shape) -> Shape:
    """What a column can have: an object without fields, or with a field of no name, has no type in a frame."""
    if isinstance(shape, str):
        return shape
    if shape[0] == _LIST:
        return (_LIST, settled(shape[1]))
    if not shape[1] or any(not name or "\x00" in name for name in shape[1]):
        return MIXED
    return (_OBJECT, {name: settled(part) for name, part in shape[1].items()})


def has_mixed(shape: Shape) -> bool:
    """Whether something in it is of several kinds."""
    if isinstance(shape, str):
        return shape == MIXED
    return has_mixed(shape[1]) if shape[0] == _LIST else any(map(has_mixed, shape[1].values()))


def type_of(shape: Shape) -> DataType:
    """The type of its column."""
    if isinstance(shape, str):
        return _SCALARS.get(shape, TEXT)
    if shape[0] == _LIST:
        return list_of(type_of(shape[1]), nullable=True)
    return struct_of([Field(name, type_of(part), nullable=True) for name, part in shape[1].items()])


def fitted(value: Any, shape: Shape) -> Any:
    """A value as its column holds it."""
    if value is None:
        return None
    if shape == MIXED:
        return json.dumps(value, ensure_ascii=False)
    if shape == "float":
        return float(value)
    if isinstance(shape, tuple) and shape[0] == _LIST:
        return [fitted(part, shape[1]) for part in value]
    if isinstance(shape, tuple):
        return {name: fitted(value.get(name), part) for name, part in shape[1].items()}
    return value
