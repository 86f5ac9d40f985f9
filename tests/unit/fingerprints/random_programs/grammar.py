"""A random program: definitions of a list of kinds, filled with random values, spread over three modules."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.unit.fingerprints.random_programs import values
from tests.unit.fingerprints.random_programs.classes import CLASSES
from tests.unit.fingerprints.random_programs.functions import FUNCTIONS

if TYPE_CHECKING:
    from random import Random

#: Where names come from; a module imports those that it uses.
IMPORTS = {
    **{
        name: f"import {name}"
        for name in (
            "array", "collections", "contextlib", "copy", "dataclasses", "decimal", "enum", "fractions", "functools",
            "inspect", "ipaddress", "itertools", "math", "operator", "pathlib", "re", "string", "types", "typing",
            "uuid", "zoneinfo",
        )
    },
    **{name: f"from abc import {name}" for name in ("ABC", "abstractmethod")},
    **{name: f"from dataclasses import {name}" for name in ("dataclass", "field")},
    **{name: f"from functools import {name}" for name in ("partial", "partialmethod", "reduce", "singledispatch")},
    **{name: f"from operator import {name}" for name in ("attrgetter", "itemgetter", "methodcaller")},
    "Decimal": "from decimal import Decimal",
    "dt": "import datetime as dt",
    "np": "import numpy as np",
    "wraps": "from functools import wraps",
}  # fmt: skip
WORDS = ("red", "blue", "a", "B", "x y", "", "zulu", "0", "{}", "lot", "é")
#: Modules, and those that they may use.
MODULES: dict[str, tuple[str, ...]] = {"far": (), "near": ("far",), "main": ("far", "near")}
_OWN = re.compile(r"§([FGHCDT])")
_MARK = re.compile(r"§([A-Z(])")


@dataclass
class Program:
    """A program that is being written.

    Attributes:
        random: Where every choice comes from.
        bodies: Definitions by module; `main` has the function that a service is given.
        calls: What the main function returns.
        numeric: Functions from a number to a number, by module.
        module: Where definitions go.
    """

    random: Random
    bodies: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in MODULES})
    calls: list[str] = field(default_factory=list)
    numeric: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in MODULES})
    module: str = "main"
    _count: int = 0

    def define(self, kind: str) -> None:
        """Add a definition of a kind, and a call of it."""
        self.module = self.random.choice(list(MODULES))
        self._count += 1
        name = f"f{self._count}"
        text = _OWN.sub(lambda mark: f"{mark[1].lower()}{self._count}", kind)
        self.bodies[self.module].append(self.filled(text).strip("\n"))
        self.calls.append(f"{self.reached(name)}(x)")
        if kind.lstrip().startswith("# number"):
            self.numeric[self.module].append(name)

    def reached(self, name: str) -> str:
        """A function as the main module calls it."""
        if self.module == "main":
            return name
        if self.random.random() < 0.5:
            return f"{self.module}.{name}"
        self.bodies["main"].append(f"from PACKAGE.{self.module} import {name}")
        return name

    def filled(self, text: str, depth: int = 2) -> str:
        """A text with its marks filled in."""

        found, rest = "", text
        while mark := _MARK.search(rest):
            found, rest = found + rest[: mark.start()], rest[mark.end() :]
            if mark[1] == "(":
                choices, rest = _choices(rest)
                found += self.filled(self.random.choice(choices), depth)
            else:
                found += self._leaf(mark[1], depth)
        return found + rest

    def _leaf(self, mark: str, depth: int) -> str:
        match mark:
            case "N":
                return str(self.random.choice((1, 2, 3, 4, 5, 7)))
            case "W":
                return repr(self.random.choice(WORDS))
            case "V":
                return values.value(self, depth)
            case "L":
                return values.look(self, "v")
            case "I":
                return self.inner()
        message = f"there is no mark {mark}"
        raise ValueError(message)

    def inner(self) -> str:
        """An expression of x that gives a number."""
        known = self.numeric[self.module]
        if known and self.random.random() < 0.3:
            return f"{self.random.choice(known)}(x)"
        forms = (
            "x", "x + §N", "x * §N - §N", "(x - §N) * §N", "x % (§N + 1)", "max(x, §N)", "abs(x - §N)",
            "(x if x > §N else §N)", "-x", "x // §N",
        )  # fmt: skip
        return self.filled(self.random.choice(forms))

    def texts(self) -> dict[str, str]:
        """The modules, in which PACKAGE is the name of their package."""
        main = f"def main(row):\n    x = row['x']\n    return [{', '.join(self.calls)}]"
        found = {}
        for name, body in self.bodies.items():
            parts = [*body, *([main] if name == "main" else ())]
            used = set(re.findall(r"\w+", " ".join(parts)))
            ours = [f"from PACKAGE import {other}" for other in MODULES[name] if other in used]
            imports = [line for bound, line in IMPORTS.items() if bound in used]
            found[name] = "\n\n".join(["\n".join([*imports, *ours]), *parts]) + "\n"
        return found


def _choices(text: str) -> tuple[list[str], str]:
    """What stands between bars up to the closing parenthesis, and what follows it."""
    found, depth = [""], 1
    for place, letter in enumerate(text):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0:
            return found, text[place + 1 :]
        if letter == "|" and depth == 1:
            found.append("")
        else:
            found[-1] += letter
    message = f"there is no end to {text}"
    raise ValueError(message)


def program(random: Random, size: int) -> dict[str, str]:
    """A random program of some definitions."""
    made = Program(random)
    for _ in range(size):
        made.define(random.choice(random.choice((FUNCTIONS, CLASSES))))
    return made.texts()
