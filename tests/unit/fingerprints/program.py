"""A small program that reaches its functions in many ways, to be edited by tests."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from everstate.fingerprints import print_unit
from everstate.fingerprints.prints import UnitPrint

SERVICE = '''
"""A shop."""
import functools

import everstate as es
from everstate import col

from shop import rules
from shop.models import Bonus, Cart, Level, Point, Scale, Shifted
from shop.rules import price as priced

app = es.Service("shop")
LIMIT = app.config("limit", 250)
FACTORS = {"a": 1, "b": [2, 3]}
NAMES = {"x", "y", "z"}
POINT = Point(1, 2)


def above(limit):
    return lambda row: row["amount"] > limit


def logged(fn):
    @functools.wraps(fn)
    def wrapper(row):
        result = fn(row)
        return result if result is not None else {"total": 0.0}

    return wrapper


@logged
def decorated(row):
    return {"total": row["amount"] * 1.5}


@functools.singledispatch
def described(value):
    return 0.0


@described.register
def described_number(value: float):
    return value + 8


@functools.lru_cache(maxsize=10)
def cached(value):
    return value * 12


def dispatched(row):
    from shop.late import shift

    return {"total": described(row["total"]) + cached(2) + shift(row["total"])}


def total(row, rate=2, *, extra=5):
    """What a row costs."""
    # The heart of it.
    amount: float = row["amount"]
    if amount > 10 and row["status"] != "void":
        amount = amount * rate + extra
    return {"total": priced(amount) + rules.fee(amount), "kind": f"{row['status']}-{amount:.2f}"}


def scaled(row):
    names = [name for name in sorted(NAMES) if name > "w"]
    return {"total": row["total"] + FACTORS["a"] + len(names) + POINT.x, "kind": row["kind"]}


def kept(row):
    return Cart(row["total"]).worth() > 3 and Level.HIGH.value > row["total"] - 1000


orders = app.table("orders", key="id", schema={"id": str, "customer": str, "amount": float, "status": str})
(
    orders.filter(col("status") != "void")
    .filter(above(7))
    .filter(lambda row: row["amount"] > LIMIT, )
    .filter(functools.partial(rules.between, low=1, high=99))
    .filter(Bonus(4).wins)
    .filter(Shifted(3))
    .with_columns(amount=col("amount") * 2.0)
    .map(total, schema={"total": float, "kind": str})
    .map(scaled, schema={"total": float, "kind": str})
    .filter(kept)
    .filter(lambda row: Scale.of(2)(row["total"]) > 0)
    .group_by("kind")
    .agg(sum=col("total").sum(), mean=col("total").mean() + 1, n=es.count())
    .to("totals")
)
(
    orders.group_by("customer")
    .aggregate(lambda: {"n": 0}, lambda a, row: {"n": a["n"] + 1}, lambda a, row: {"n": a["n"] - 1}, schema={"n": int})
    .to("counts")
)
orders.map(decorated, schema={"total": float}).map(dispatched, schema={"total": float}).to("lines")
'''

RULES = '''
"""Rules."""
from shop import tax

SHARE = 0.25


def price(amount):
    return tax.gross(amount) * SHARE


def fee(amount):
    return min(amount, tax.Rates.FLAT)


def between(row, low, high):
    return low <= row["amount"] <= high or tax.open_end(row)
'''

TAX = '''
"""Taxes."""
import math

from .deep import base_rate


class Rates:
    FLAT = 3
    OTHER = 9


def gross(amount):
    return math.floor(amount) * (1 + base_rate())


def open_end(row):
    def inner(value):
        return value is None

    return inner(row["amount"])
'''

DEEP = '''
"""Far away."""
RATE = 0.19


def base_rate():
    return even(4) and RATE


def even(n):
    return True if n == 0 else odd(n - 1)


def odd(n):
    return False if n == 0 else even(n - 1)
'''

MODELS = '''
"""Classes."""
import enum
from dataclasses import dataclass, field

from shop.deep import RATE


class Level(enum.Enum):
    LOW = 1
    HIGH = 1000


@dataclass(frozen=True)
class Point:
    x: int
    y: int = 0
    tags: list = field(default_factory=list)


class Base:
    margin = 2

    def add(self, value):
        return value + self.margin


class Cart(Base):
    def __init__(self, value):
        self.value = value

    def worth(self):
        return self.add(self.value) * self.share

    @property
    def share(self):
        return RATE + 1


class Bonus:
    __slots__ = ("least",)

    def __init__(self, least):
        self.least = least

    def wins(self, row):
        return row["amount"] >= self.least


class Shifted:
    def __init__(self, by):
        self.by = by

    def __call__(self, row):
        return row["amount"] + self.by > 0


class Scale:
    def __init__(self, factor):
        self.factor = factor

    @classmethod
    def of(cls, factor):
        return cls(factor)

    @staticmethod
    def sign():
        return 1

    def __call__(self, value):
        return value * self.factor * self.sign()
'''

LATE = '''
"""Imported late."""


def shift(value):
    match value:
        case 0 | None:
            return 0
        case float() as number if number > 5:
            return number
    return -1
'''

PROGRAM = {
    "__init__": "",
    "service": SERVICE,
    "rules": RULES,
    "tax": TAX,
    "deep": DEEP,
    "models": MODELS,
    "late": LATE,
}


def edited(*edits: tuple[str, str, str]) -> dict[str, str]:
    """The program with texts replaced in modules."""
    program = dict(PROGRAM)
    for module, old, new in edits:
        assert old in program[module], f"{old!r} is not in {module}"
        program[module] = program[module].replace(old, new)
    return program


def loaded(folder: Path, program: dict[str, str], module: str = "shop.service"):
    """The module of a program that is written to a folder and imported from there."""
    top = module.partition(".")[0]
    for name, text in program.items():
        file = folder.joinpath(top, *name.split(".")).with_suffix(".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    for name in [name for name in sys.modules if name.partition(".")[0] == top]:
        del sys.modules[name]
    importlib.invalidate_caches()
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(module)
    finally:
        sys.path.remove(str(folder))


def prints(folder: Path, program: dict[str, str]) -> dict[str, UnitPrint]:
    """The prints of a program's outputs, by topic."""
    app = loaded(folder, program).app
    units = {unit.output.topic: unit for unit in app.units()}
    return {topic: print_unit(unit, policy=app.on_error, settings=app.settings) for topic, unit in units.items()}


def fingerprints(folder: Path, program: dict[str, str]) -> dict[str, str]:
    """The fingerprints of a program's outputs, by topic."""
    return {topic: found.fingerprint for topic, found in prints(folder, program).items()}
