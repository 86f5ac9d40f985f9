"""What functions reach in less common ways is seen, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from everstate.fingerprints import print_unit
from tests.unit.fingerprints.program import loaded

SERVICE = """
import everstate as es
{before}

app = es.Service("s")
app.table("in", schema={{"a": str}}).filter(lambda row: helper(row)).to("out")
"""


def fingerprint(folder: Path, before: str) -> str:
    app = loaded(folder, {"__init__": "", "service": SERVICE.format(before=before)}).app
    return print_unit(app.units()[0], policy="dead-letter", settings={}).fingerprint


#: Code with a place for 1 or 2.
DIFFERENT = {
    "parameters that change places": """
def called(a, {0}=3, {1}=5):
    return a * {0} + {1}
def helper(row):
    return called(1, limit=4)
""",
    "parameters that a row is spread over": """
def called({0}, {1}):
    return {0} - {1}
def helper(row):
    return called(**row)
""",
    "names that a function looks at": """
def helper(row):
    {0} = 1
    return locals()
""",
}
NUMBERED = {
    "attribute of a function": "def helper(row):\n    return helper.x\nhelper.x = {}",
    "method that was replaced": "class A:\n    pass\nA.f = lambda self: {}\ndef helper(row):\n    return A().f()",
    "method by super": (
        "class B:\n    def f(self, row):\n        return {}\n"
        "class A(B):\n    def f(self, row):\n        return super().f(row)\nhelper = A().f"
    ),
    "method by another method": (
        "class A:\n    def f(self):\n        return self.g()\n    def g(self):\n        return {}\n"
        "def helper(row):\n    return A().f()"
    ),
    "special method": "class A:\n    def __len__(self):\n        return {}\ndef helper(row):\n    return len(A())",
    "descriptor": (
        "class D:\n    def __init__(self, v):\n        self.v = v\n"
        "    def __get__(self, o, t):\n        return self.v\n"
        "class A:\n    x = D({})\ndef helper(row):\n    return A().x"
    ),
    "setter": (
        "class A:\n    @property\n    def x(self):\n        return 1\n    @x.setter\n    def x(self, v):\n"
        "        self.y = v + {}\ndef helper(row):\n    A().x = 1"
    ),
    "partial method": (
        "import functools\nclass A:\n    def f(self, x):\n        return x\n    g = functools.partialmethod(f, {})\n"
        "def helper(row):\n    return A().g()"
    ),
    "class attribute that is no plain value": "class A:\n    x = {{1: {}}}\ndef helper(row):\n    return A.x",
    "class inside a function": "def helper(row):\n    class A:\n        x = {}\n    return A.x",
    "lambda in a list": "F = [lambda x: x, lambda x: x + {}]\ndef helper(row):\n    return F[1](1)",
    "lambda of a loop": "F = [(lambda x, n=n: x + n) for n in (0, {})]\ndef helper(row):\n    return F",
    "context manager": (
        "from contextlib import contextmanager\n@contextmanager\ndef ctx():\n    yield {}\n"
        "def helper(row):\n    with ctx() as c:\n        return c"
    ),
    "generator": "def made():\n    yield {}\ndef helper(row):\n    return list(made())",
    "global that is written": "N = {}\ndef helper(row):\n    global N\n    if N is None:\n        N = 1\n    return N",
    "bound method of a dict": "helper = {{'a': {}}}.get",
    "item of a row": "import operator\nhelper = operator.itemgetter('a{}')",
    "list of a class of its own": "class L(list):\n    pass\nX = L([{}])\ndef helper(row):\n    return X",
    "array": "import numpy as np\nA = np.array([0, {}])\ndef helper(row):\n    return A[1]",
    "frame": "import polars as pl\nF = pl.DataFrame({{'a': [{}]}})\ndef helper(row):\n    return F",
    "expression": "F = es.col('a') > {}\ndef helper(row):\n    return F",
    "function in a package": "import numpy as np\nf = np.vectorize(lambda x: x + {})\ndef helper(r):\n    return f(2)",
    "abstract class": (
        "import abc\nclass A(abc.ABC):\n    @abc.abstractmethod\n    def f(self): ...\n"
        "class B(A):\n    def f(self):\n        return {}\ndef helper(row):\n    return B().f()"
    ),
    "metaclass": (
        "class M(type):\n    def f(cls):\n        return {}\nclass A(metaclass=M):\n    pass\n"
        "def helper(row):\n    return A.f()"
    ),
    "named tuple": (
        "from typing import NamedTuple\nclass P(NamedTuple):\n    x: int = {}\ndef helper(row):\n    return P().x"
    ),
    "pattern": "import re\nW = re.compile('a{{{}}}')\ndef helper(row):\n    return W.match(row['a'])",
    "own decorator with an argument": (
        "import functools\ndef times(n):\n    def deco(fn):\n        @functools.wraps(fn)\n        def call(row):\n"
        "            return fn(row) * n\n        return call\n    return deco\n"
        "@times({})\ndef helper(row):\n    return 1"
    ),
}
SAME = {
    "parameter that nobody names": (
        "def called(a, limit=3):\n    return a * limit\ndef helper(row):\n    return called(1, 4)",
        "def called(b, most=3):\n    return b * most\ndef helper(row):\n    return called(1, 4)",
    ),
    "Optional and None": (
        "import typing\nfrom dataclasses import *\n@dataclass\nclass A:\n    x: typing.Optional[int]\nhelper = A",
        "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: None | int\nhelper = A",
    ),
    "import of everything": (
        "from math import *\ndef helper(row):\n    return floor(2)",
        "import math as m\ndef helper(row):\n    return m.floor(2)",
    ),
    "import inside": (
        "def helper(row):\n    import math\n    return math.floor(2)",
        "from math import floor\ndef helper(row):\n    return floor(2)",
    ),
    "function of a package": (
        "import numpy as np\ndef helper(row):\n    return np.sqrt(2)",
        "from numpy import sqrt\ndef helper(row):\n    return sqrt(2)",
    ),
    "annotation of a plain class": (
        "class A:\n    x: int = 1\ndef helper(row):\n    return A()",
        "class A:\n    x: str = 1\ndef helper(row):\n    return A()",
    ),
}
MODEL = """
from pydantic import BaseModel, Field, field_validator, validate_call
class M(BaseModel):
    a: {kind}
    b: int = Field(default=1, gt={least})
    @field_validator("a", mode="{mode}")
    @classmethod
    def check(cls, v):
        return v or {other}
@validate_call
def checked(x: {argument}):
    return x
def helper(row):
    return checked(M(**row))
"""
PLAIN = {"kind": "int", "least": 0, "mode": "before", "other": 1, "argument": "int"}
OTHER = {"kind": "str", "least": 1, "mode": "after", "other": 2, "argument": "str"}


@pytest.mark.parametrize("code", DIFFERENT.values(), ids=DIFFERENT)
def test_names_that_something_goes_by_are_seen(code, tmp_path: Path) -> None:
    one, other = ("limit", "other"), ("other", "limit")
    assert fingerprint(tmp_path / "1", code.format(*one)) != fingerprint(tmp_path / "2", code.format(*other))


@pytest.mark.parametrize("code", NUMBERED.values(), ids=NUMBERED)
def test_value_that_is_reached_is_seen(code, tmp_path: Path) -> None:
    first, second = (fingerprint(tmp_path / str(number), code.format(number)) for number in (1, 2))
    assert first != second
    assert first == fingerprint(tmp_path / "3", code.format(1))


@pytest.mark.parametrize(("one", "other"), SAME.values(), ids=SAME)
def test_same_meaning_in_other_words_is_the_same(one, other, tmp_path: Path) -> None:
    assert fingerprint(tmp_path / "1", one) == fingerprint(tmp_path / "2", other)


@pytest.mark.parametrize(("name", "value"), OTHER.items(), ids=OTHER)
def test_pydantic_model_and_checked_call_are_seen(name, value, tmp_path: Path) -> None:
    pytest.importorskip("pydantic")
    before = fingerprint(tmp_path / "1", MODEL.format(**PLAIN))
    assert before == fingerprint(tmp_path / "2", MODEL.format(**PLAIN))
    assert before != fingerprint(tmp_path / "3", MODEL.format(**{**PLAIN, name: value}))
