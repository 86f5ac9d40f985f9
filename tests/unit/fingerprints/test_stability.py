"""The same program has the same fingerprint in every process and on every Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.fingerprints.program import PROGRAM, loaded, prints

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = Path(__file__).parent / "golden" / "program.json"

#: Syntax and values of which Python versions have their own idea inside.
MORE = """
import collections
import datetime
import decimal
import enum
import fractions
import functools
import hashlib
import operator
import os.path
import pathlib
import re
import types
import typing
import uuid
import zoneinfo
from dataclasses import KW_ONLY, dataclass, field

import everstate as es

EMPTY = object()
WORD = re.compile(r"a+", re.I)
WHEN = datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)
VALUES = [
    decimal.Decimal("1.50"), fractions.Fraction(1, 3), datetime.date(2024, 1, 1), datetime.timedelta(1, 2),
    uuid.UUID(int=5), pathlib.PurePosixPath("a/b"), range(3), slice(1, None), {1: (2.5, -0.0)}, frozenset({"a", "b"}),
    collections.deque([1], maxlen=2), collections.Counter("aab"), collections.defaultdict(list, a=[1]),
    types.SimpleNamespace(a=1), float("nan"), 1j, b"x", bytearray(b"y"), ..., None, operator.itemgetter("a"),
    collections.namedtuple("Pair", "x y")(1, 2), es.col("a") > 1,
]
CYCLE = [1]
CYCLE.append(CYCLE)


class Colour(enum.Flag):
    RED = enum.auto()
    BLUE = enum.auto()

    def shown(self):
        return self.name


class Pair(typing.NamedTuple):
    left: int
    right: str = "r"


class Shape(typing.Protocol):
    def area(self) -> float: ...


class Options(typing.TypedDict, total=False):
    depth: int


@dataclass(slots=True)
class Box:
    a: int
    _: KW_ONLY
    b: typing.Optional[str] = None
    c: list[int] = field(default_factory=list)

    def area(self) -> float:
        return self.a


class Meta(type):
    def __new__(mcs, name, bases, space):
        return super().__new__(mcs, name, bases, space)


class Made(metaclass=Meta):
    unit: int = 3

    def __init_subclass__(cls, **named):
        super().__init_subclass__(**named)


class Child(Made):
    def __enter__(self):
        return self

    def __exit__(self, *failure):
        return False

    @functools.cached_property
    def cost(self):
        return super().unit


def odd(row, /, *rest, flag=True, **named):
    global LATEST
    try:
        with Child() as child, Child():
            total = sum(value for value in (1, 2, 3) if value not in {2})
    except* ValueError as failures:
        raise RuntimeError("no") from failures
    while total := total - 1:
        if total < -5: break
        continue
    else:
        del child
    head, *tail = [*rest, *map(str, rest)]
    text = f"{total!r:>{8}}" "and" f"{row['a']=}"
    key = lambda pair: (-pair[1], pair[0])
    match row:
        case {"a": [first, *_], **others} if first: return others
        case Box(a=1) | Pair(2): return None
    async def later():
        async for part in named:
            yield await part
    assert text, "never"
    LATEST = sorted(VALUES, key=str)[0]
    return hashlib.sha256(text.encode()).digest() < b"z" and flag and os.path.join("a", "b")[::-1] is not EMPTY


def uses(row):
    values = [VALUES, CYCLE, WHEN, WORD, Colour.RED, Box(1), Pair(1)]
    return [values, Made, Child, Shape, Options, odd(row, 1, flag=False)]


app = es.Service("more")
app.table("in", schema={"a": str}).filter(odd).filter(uses).to("out")
"""


def digests(folder: Path) -> dict[str, dict[str, str]]:
    """The digests of both programs' parts, by output, node and part."""
    more = {"__init__": "", "service": MORE}
    found = {**prints(folder / "program", PROGRAM), **prints(folder / "more", more)}
    return {
        topic: {
            "fingerprint": described.fingerprint,
            **{f"{node.name}: {name}": part.digest for node in described.nodes for name, part in node.parts.items()},
        }
        for topic, described in found.items()
    }


def test_fingerprint_is_that_of_the_golden_file_on_every_python(tmp_path: Path) -> None:
    assert digests(tmp_path) == json.loads(GOLDEN.read_text())


@pytest.mark.parametrize("more", [{}, {"PYTHONNODEBUGRANGES": "1"}, {"PYTHONOPTIMIZE": "2"}], ids=str)
def test_fingerprint_is_the_same_in_every_process(more, tmp_path: Path) -> None:
    program = f"""
import json, sys
from pathlib import Path

sys.path.insert(0, {str(ROOT)!r})
from tests.unit.fingerprints.test_stability import digests

print(json.dumps(digests(Path({str(tmp_path)!r}))))
"""
    seen = [
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
            env={**os.environ, **more, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]
    assert seen[0] == seen[1]
    assert json.loads(seen[0]) == json.loads(GOLDEN.read_text())


def test_program_still_means_what_the_golden_file_was_made_of(tmp_path: Path) -> None:
    assert loaded(tmp_path, PROGRAM).app.settings == {"limit": 250}
