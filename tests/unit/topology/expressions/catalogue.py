"""Calls of every public function of Polars that makes an expression, and the columns that they are tried on.

Each line is one call, as a user writes it; `rows` holds what works row by row, `refused` all the rest. What is in
neither has been looked at by nobody: the test of the catalogue names it. Run this file to write the golden file of the
Polars at hand, so that its verdicts are held for other versions too.
"""

from __future__ import annotations

import ast
import datetime as dt
import inspect
import json
import math
import random
import sys
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import polars.selectors as cs

GOLDEN = Path(__file__).parent / "golden"

NAMESPACES = ("arr", "bin", "cat", "dt", "ext", "list", "map", "name", "str", "struct")


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Functions of `pl` that read, write, combine frames or set something: none gives an expression.
NOT_EXPRESSIONS = _names(
    "CredentialProviderFunction CredentialProviderFunctionReturn align_frames build_info collect_all "
    "collect_all_async concat defer delete_iceberg disable_string_cache enable_string_cache escape_regex "
    "explain_all from_arrow from_dataframe from_dict from_dicts from_numpy from_pandas from_records from_repr "
    "from_torch get_extension_type get_index_type json_normalize merge_sorted read_avro read_clipboard read_csv "
    "read_database read_database_uri read_delta read_excel read_ipc read_ipc_schema read_ipc_stream read_json "
    "read_lines read_ndjson read_ods read_parquet read_parquet_metadata read_parquet_schema "
    "register_extension_type scan_arrow_c_stream scan_csv scan_delta scan_external_reader scan_iceberg scan_ipc "
    "scan_lance scan_lines scan_ndjson scan_parquet scan_pyarrow_dataset select set_random_seed show_versions sql "
    "thread_pool_size union unregister_extension_type using_string_cache wrap_df wrap_s"
)
#: Methods of an expression that take it apart or pass it on, and give no other kind of node.
NOT_NODES = frozenset({"deserialize", "pipe", "meta", *NAMESPACES})

SCHEMA: dict[str, pl.DataType] = {
    "i": pl.Int64(),
    "j": pl.Int64(),
    "n": pl.Int64(),
    "f": pl.Float64(),
    "g": pl.Float64(),
    "s": pl.String(),
    "p": pl.String(),
    "num": pl.String(),
    "day": pl.String(),
    "js": pl.String(),
    "b": pl.Boolean(),
    "c": pl.Boolean(),
    "y": pl.Binary(),
    "d": pl.Date(),
    "e": pl.Date(),
    "z": pl.Datetime("us", "UTC"),
    "w": pl.Datetime("us"),
    "u": pl.Duration("us"),
    "m": pl.Time(),
    "l": pl.List(pl.Int64()),
    "k": pl.List(pl.Int64()),
    "lf": pl.List(pl.Float64()),
    "ls": pl.List(pl.String()),
    "lb": pl.List(pl.Boolean()),
    "st": pl.Struct({"x": pl.Int64(), "y": pl.String(), "h": pl.Float64()}),
    "a": pl.Array(pl.Int64(), 3),
    "ab": pl.Array(pl.Boolean(), 3),
    "q": pl.Decimal(20, 2),
    "en": pl.Enum(["low", "mid", "high"]),
}


def rows_frame(height: int, seed: int) -> pl.DataFrame:
    """Random rows of all types, some of them null."""
    chance = random.Random(seed)
    columns = {name: [_value(name, chance) for _ in range(height)] for name in SCHEMA}
    return pl.DataFrame(columns, schema=SCHEMA)


def _value(name: str, chance: random.Random) -> Any:
    if chance.random() < 0.08:
        return None
    makers: dict[str, Any] = {
        "i": lambda: chance.randint(-50, 50),
        "j": lambda: chance.choice([-7, 1, 2, 3, 10**12]),
        "n": lambda: chance.randint(0, 3),
        "f": lambda: chance.choice([chance.uniform(-9, 9), chance.uniform(0, 1e-3), 0.1, -0.0, math.inf, math.nan]),
        "g": lambda: chance.choice([chance.uniform(0.1, 9), 1e300, 3.0, 7.0]),
        "s": lambda: "".join(chance.choice("abc Zé1,") for _ in range(chance.randint(0, 8))),
        "p": lambda: chance.choice(["a", "b", "ab", "c"]),
        "num": lambda: str(chance.randint(0, 99)),
        "day": lambda: f"{chance.randint(1990, 2030)}-{chance.randint(1, 12):02}-{chance.randint(1, 12):02}",
        "js": lambda: json.dumps({"x": chance.randint(0, 9), "y": chance.choice("ab")}),
        "b": lambda: chance.random() < 0.5,
        "c": lambda: chance.random() < 0.5,
        "y": lambda: bytes(chance.choice(b"ab\x00\xff") for _ in range(8)),
        "d": lambda: dt.date(2024, 1, 1) + dt.timedelta(days=chance.randint(0, 800)),
        "e": lambda: dt.date(2026, 6, 1) + dt.timedelta(days=chance.randint(0, 20)),
        "z": lambda: dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=chance.randint(0, 10**8)),
        "w": lambda: dt.datetime(2024, 1, 1) + dt.timedelta(seconds=chance.randint(0, 10**8)),  # noqa: DTZ001
        "u": lambda: dt.timedelta(microseconds=chance.randint(-(10**10), 10**10)),
        "m": lambda: dt.time(chance.randint(0, 23), chance.randint(0, 59)),
        "l": lambda: [chance.randint(-5, 5) for _ in range(chance.randint(0, 5))],
        "k": lambda: [chance.randint(-5, 5) for _ in range(chance.randint(0, 5))],
        "lf": lambda: [chance.uniform(-3, 3) for _ in range(chance.choice([0, 1, 1, 2, 40]))],
        "ls": lambda: [chance.choice(["a", "b", "c", "é"]) for _ in range(chance.randint(0, 4))],
        "lb": lambda: [chance.random() < 0.5 for _ in range(chance.randint(0, 3))],
        "st": lambda: {"x": chance.randint(0, 9), "y": chance.choice("ab"), "h": chance.uniform(-1, 1)},
        "a": lambda: [chance.randint(-5, 5) for _ in range(3)],
        "ab": lambda: [chance.random() < 0.5 for _ in range(3)],
        "q": lambda: Decimal(chance.randint(-10000, 10000)) / 100,
        "en": lambda: chance.choice(["low", "mid", "high"]),
    }
    return makers[name]()


def built(call: str) -> pl.Expr:
    """The expression that a line of the catalogue writes."""
    scope = {"pl": pl, "cs": cs, "dt": dt, "Decimal": Decimal, "math": math}
    scope |= {name: pl.col(name) for name in SCHEMA}
    with warnings.catch_warnings():
        # Deprecated functions and those of other versions are refused or accepted like all others.
        warnings.simplefilter("ignore")
        return eval(call, scope)  # type: ignore[no-any-return]


def lines(name: str) -> list[str]:
    """The calls of one of the catalogue's files, `rows` or `refused`, without comments."""
    text = (Path(__file__).parent / f"{name}.txt").read_text()
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def mentioned(call: str) -> set[str]:
    """The functions that a call uses: `abs`, `str.contains`, `pl.when`."""
    found = set()
    for node in ast.walk(ast.parse(call, mode="eval")):
        if isinstance(node, ast.Attribute):
            owner = node.value
            spaced = isinstance(owner, ast.Attribute) and owner.attr in NAMESPACES
            plain = isinstance(owner, ast.Name) and owner.id == "pl"
            found.add(f"{owner.attr}.{node.attr}" if spaced else f"pl.{node.attr}" if plain else node.attr)
    return found


def public() -> set[str]:
    """All functions of this Polars that make expressions, spelled as `mentioned` does."""
    expression = pl.col("i")
    found = {name for name in dir(pl.Expr) if not name.startswith("_")} - NOT_NODES
    for space in NAMESPACES:
        if hasattr(expression, space):
            found |= {f"{space}.{name}" for name in dir(getattr(expression, space)) if not name.startswith("_")}
    top = {name for name in dir(pl) if callable(getattr(pl, name)) and not name.startswith("_")}
    return found | {
        f"pl.{name}" for name in top - NOT_EXPRESSIONS if not inspect.isclass(getattr(pl, name)) or name == "col"
    }


def written() -> dict[str, Any]:
    """The JSON that the Polars at hand writes of each call; calls that it does not know are left out."""
    found = {}
    for call in [*lines("rows"), *lines("refused")]:
        try:
            found[call] = json.loads(built(call).meta.serialize(format="json"))
        except (AttributeError, TypeError, ValueError, pl.exceptions.PolarsError):
            continue
    return found


if __name__ == "__main__":
    texts = (f"{json.dumps(call)}: {json.dumps(tree)}" for call, tree in written().items())
    (GOLDEN / f"polars-{pl.__version__}.json").write_text("{\n" + ",\n".join(texts) + "\n}\n")
    sys.stdout.write(f"{pl.__version__}\n")
