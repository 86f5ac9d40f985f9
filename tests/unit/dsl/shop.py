"""The services, functions and types that the tables of wrong and right calls use."""

from __future__ import annotations

import collections
import functools
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Annotated, Any, Generic, NamedTuple, NewType, TypedDict, TypeVar

import everstate as es

SCHEMA = {"id": str, "customer": str, "amount": float, "tags": list[str]}
OUT = {"total": float}
T = TypeVar("T")


def shop() -> es.Service:
    return es.Service("shop")


def orders(app: es.Service | None = None) -> es.Table:
    return (app or shop()).table("orders", key="id", schema=SCHEMA)


def people(table: es.Table) -> es.Table:
    return table.service.table("people", key="customer", schema={"customer": str, "name": str, "amount": float})


def events(app: es.Service | None = None) -> es.Stream:
    return (app or shop()).stream("events", key="id", schema=SCHEMA)


def numbers() -> es.Stream:
    return shop().stream("numbers", schema=int)


def driver() -> es.testing.Driver:
    app = shop()
    orders(app).filter(es.col("amount") > 0).to("valid")
    return es.testing.Driver(app)


# Functions.


def nothing() -> float:
    return 1.0


def one(row: Any) -> float:
    return 1.0


def two(row: Any, other: Any) -> float:
    return 1.0


def three(row: Any, other: Any, more: Any) -> float:
    return 1.0


def with_default(row: Any, rate: float = 2.0) -> float:
    return rate


def variadic(*rows: Any) -> float:
    return 1.0


def named_only(*, row: Any) -> float:
    return 1.0


def named_too(row: Any, *, rate: float) -> float:
    return rate


async def waiting(row: Any) -> float:
    return 1.0


async def waiting_for_two(row: Any, other: Any) -> float:
    return 1.0


async def flowing(row: Any):
    yield 1.0


def yielding(row: Any):
    yield {"total": 1.0}


def yielding_two(row: Any, other: Any):
    yield 1.0


class Methods:
    def one(self, row: Any) -> float:
        return 1.0

    def two(self, row: Any, other: Any) -> float:
        return 1.0

    async def waiting(self, row: Any) -> float:
        return 1.0

    @staticmethod
    def static(row: Any) -> float:
        return 1.0

    @classmethod
    def made(cls, row: Any) -> float:
        return 1.0


class CallsOne:
    def __call__(self, row: Any) -> float:
        return 1.0


class CallsTwo:
    def __call__(self, row: Any, other: Any) -> float:
        return 1.0


class CallsLater:
    async def __call__(self, row: Any) -> float:
        return 1.0


partial_of_two = functools.partial(two, 5)
partial_of_one = functools.partial(one, 5)
partial_async = functools.partial(waiting_for_two, 5)


# Types.


@dataclass
class Total:
    total: float


@dataclass
class Item:
    name: str
    price: float
    count: int = 1


@dataclass
class Tree:
    name: str
    children: list[Tree] = field(default_factory=list)


@dataclass
class Ping:
    name: str
    pong: Pong | None


@dataclass
class Pong:
    name: str
    ping: Ping | None


class Link(TypedDict):
    name: str
    next: Link


@dataclass
class Unresolved:
    name: NotThere  # noqa: F821


@dataclass
class Box(Generic[T]):
    item: T


@dataclass
class Failing:
    name: str = field(default_factory=lambda: 1 / 0)


@dataclass
class WrongDefault:
    count: int = "none"


@dataclass
class Restless:
    number: int = field(default_factory=iter(range(1000)).__next__)


@dataclass
class Empty:
    pass


class Colour(Enum):
    RED = "red"


class Word(StrEnum):
    A = "a"


class Pair(NamedTuple):
    a: int
    b: int


class Plain:
    pass


class Silent:
    def __repr__(self) -> str:
        raise RuntimeError("it has no text")


class Document(TypedDict, total=False):
    name: str
    size: int


@dataclass
class Nested:
    item: Item
    items: list[Item]
    by_name: dict[str, Item]
    maybe: Item | None = None


@dataclass
class Everything:
    text: str
    whole: int
    number: float
    flag: bool
    data: bytes
    moment: datetime
    day: date
    length: timedelta
    money: Decimal


Identity = NewType("Identity", str)
Meters = Annotated[float, "in metres"]
HOLDS_ITSELF: dict[str, Any] = {"name": str}
HOLDS_ITSELF["inner"] = HOLDS_ITSELF
DEEP: Any = int
for _ in range(2000):
    DEEP = {"a": DEEP}
Queue = collections.deque
Clock = time
