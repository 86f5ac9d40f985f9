from __future__ import annotations

import json
from dataclasses import dataclass, field, make_dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import count
from typing import Annotated, Any, NewType, NotRequired, Optional, Required, TypedDict

import polars as pl
import pyarrow as pa
import pytest

from everstate.errors import SchemaError, UnknownColumnError
from everstate.location import Location
from everstate.schema.schema import Field, Schema
from everstate.schema.types import DATETIME, FLOAT, INTEGER, TEXT, list_of, map_of, struct_of

CustomerId = NewType("CustomerId", str)


@dataclass
class Item:
    sku: str
    price: Decimal


@dataclass
class Order:
    order_id: CustomerId
    items: list[Item]
    note: str | None
    labels: dict[str, int | None]


class Address(TypedDict):
    street: str
    floor: NotRequired[int]


class Loose(TypedDict, total=False):
    name: Required[str]
    age: int
    at: Annotated[datetime, "event time"]


ALL = Schema.of(
    {
        "s": str,
        "i": int,
        "f": float,
        "b": bool,
        "y": bytes,
        "t": datetime,
        "d": date,
        "td": timedelta,
        "m": Decimal,
        "l": list[int | None],
        "o": dict[str, list[float]],
        "n": {"x": int, "y": {"z": str | None}},
        "u": pl.UInt8,
        "a": pa.decimal128(10, 2),
        "naive": pl.Datetime("ms"),
    }
)


def test_schema_of_a_dict_keeps_order_types_and_nullability():
    schema = Schema.of({"b": int, "a": Optional[str]})  # noqa: UP045 - the old spelling is the subject
    assert schema.fields == (Field("b", INTEGER), Field("a", TEXT, nullable=True))
    assert schema.names == ("b", "a")
    assert not schema.scalar


def test_schema_of_a_dataclass_resolves_nested_types():
    item = struct_of([Field("sku", TEXT), Schema.of({"price": Decimal}).fields[0]])
    assert Schema.of(Order).fields == (
        Field("order_id", TEXT),
        Field("items", list_of(item)),
        Field("note", TEXT, nullable=True),
        Field("labels", map_of(INTEGER, nullable=True)),
    )


def test_schema_of_a_dataclass_keeps_defaults_and_survives_json():
    @dataclass
    class Filled:
        a: int
        b: int = 5
        c: str | None = None
        d: str | None = "x"
        e: list[Item] = field(default_factory=lambda: [Item("s", Decimal("1.50"))])
        f: datetime = datetime(2024, 5, 1, tzinfo=UTC)

    found = Schema.of(Filled)
    assert [each.default for each in found.fields] == [
        None,
        "5",
        None,
        '"x"',
        '[{"price": "1.5", "sku": "s"}]',
        '"2024-05-01T00:00:00Z"',
    ]
    assert Schema.from_json(json.loads(json.dumps(found.to_json()))) == found
    assert str(found).startswith('{a: integer, b: integer = 5, c: text?, d: text? = "x", ')


def test_schema_of_a_typed_dict_knows_what_may_be_missing():
    assert [(field.name, field.nullable) for field in Schema.of(Address).fields] == [("street", False), ("floor", True)]
    assert Schema.of(Loose).fields == (
        Field("name", TEXT),
        Field("age", INTEGER, nullable=True),
        Field("at", DATETIME, nullable=True),
    )


def test_schema_of_a_scalar_is_one_column_called_value():
    assert Schema.of(float) == Schema((Field("value", FLOAT),), scalar=True)
    assert Schema.of(int | None).fields[0].nullable
    assert Schema.of(list[str]).scalar


def test_schema_of_a_schema_is_itself():
    assert Schema.of(ALL) is ALL


def test_schema_of_its_arrow_schema_is_equal():
    assert Schema.of(ALL.arrow) == ALL


def test_schema_of_an_arrow_schema_keeps_nested_nullability():
    nested = pa.struct([pa.field("x", pa.int64(), nullable=False), pa.field("y", pa.large_string())])
    schema = Schema.of(
        pa.schema([pa.field("o", pa.large_list(pa.field("item", nested, nullable=False)), nullable=False)])
    )
    inner = {"x": int, "y": str | None}
    assert schema == Schema.of({"o": list[inner]})


def test_schema_survives_json_and_may_be_hashed():
    again = Schema.from_json(json.loads(json.dumps(ALL.to_json())))
    assert again == ALL
    assert hash(again) == hash(ALL)
    assert Schema.from_json(Schema.of(int).to_json()).scalar


def test_schema_of_polars_columns_is_nullable_throughout():
    schema = Schema.of_polars(
        {"n": pl.UInt32, "l": pl.List(pl.Struct({"x": pl.Float64})), "d": pl.Datetime("us", "UTC")}
    )
    assert all(field.nullable for field in schema.fields)
    assert schema.field("l").type.inner.type.fields == (Field("x", FLOAT, nullable=True),)
    assert schema.polars == {"n": pl.UInt32, "l": pl.List(pl.Struct({"x": pl.Float64})), "d": pl.Datetime("us", "UTC")}


def test_schema_of_polars_columns_keeps_a_dict_that_was_one_before():
    before = Schema.of({"m": dict[str, int], "x": int})
    after = Schema.of_polars({**before.polars, "x": pl.String()}, like=before)
    assert after.field("m").type == map_of(INTEGER, nullable=True)
    assert after.field("x").type == TEXT


def test_schema_without_columns_passes_over_unknown_ones():
    assert Schema.of({"a": int, "b": int}).without(["a", "z"]).names == ("b",)
    assert Schema.of(int).without(["key"]).scalar


def test_schema_field_that_is_not_there_lists_those_that_are():
    with pytest.raises(UnknownColumnError, match="a, b"):
        Schema.of({"a": int, "b": int}).field("c")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"a": object}, "column 'a': object is not a type"),
        ({"a": "int"}, "column 'a': 'int' is not a type"),
        ({"a": Any}, "is not a type of a column"),
        ({"a": list}, "list is not a type"),
        ({"a": dict[int, str]}, "keys of dict"),
        ({"a": int | str}, "more than one type"),
        ({"a": None}, "None is not a type"),
        ({"a": {"b": set[int]}}, "column 'b': set"),
        ({"a": {}}, "at least one field"),
        ({"a": pl.Categorical}, "Categorical cannot be stored"),
        ({"a": pl.Datetime("ns")}, "precision"),
        ({"a": pa.timestamp("us", "Europe/Berlin")}, "Europe/Berlin"),
        ({"a": pa.decimal128(5, -2)}, "decimal"),
        ({"$a": int}, "Everstate's own"),
        ({"": int}, "empty name"),
        ({1: int}, "must be text"),
        ({}, "no columns"),
        (make_dataclass("D", [("a", int, "x")]), "column 'a': the default 'x' does not fit: expected integer"),
        (make_dataclass("D", [("a", int, None)]), "column 'a': the default None does not fit"),
        (make_dataclass("D", [("a", list[int], field(default_factory=lambda: [1, "x"]))]), "does not fit: field"),
        (make_dataclass("D", [("a", int, field(default_factory=count().__next__))]), "different each time"),
        (complex, "complex is not a type"),
        (None, "None is not a type"),
        (pa.schema([("a", pa.int64()), ("a", pa.int64())]), "twice"),
    ],
    ids=str,
)
def test_schema_with_a_mistake_says_what_and_where(spec, message):
    with pytest.raises(SchemaError, match=message) as caught:
        Schema.of(spec, location=Location("orders.py", 7))
    assert str(caught.value.location) == "orders.py:7"


def test_schema_of_unresolvable_annotations_is_refused():
    @dataclass
    class Lost:
        x: Nowhere  # noqa: F821 - the subject

    with pytest.raises(SchemaError, match="Nowhere"):
        Schema.of(Lost)


def test_schema_of_polars_columns_with_a_type_without_a_place_is_refused():
    with pytest.raises(SchemaError, match="column 'x'"):
        Schema.of_polars({"x": pl.Null})
