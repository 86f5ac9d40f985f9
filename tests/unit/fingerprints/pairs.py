"""Pairs of programs whose results differ: what a fingerprint must tell apart, or refuse."""

from __future__ import annotations

import copy
import importlib.util
import itertools
import linecache
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Literal, TypeAlias

from everstate.errors import FingerprintError
from everstate.fingerprints.reach import Reach
from everstate.fingerprints.tree import digest

#: The place in a program where its two versions differ.
PLACE = "HERE"
EDITS = Path(__file__).parent / "edits"
ROW = {"a": 3, "b": "text", "c": [1, 2], "d": 2.5}

Outcome: TypeAlias = Literal["seen", "refused", "missed", "same"]
_numbers = itertools.count()


def module(folder: Path, text: str, name: str = "pair") -> ModuleType:
    """A program as a module of its own; both versions of a pair have the same name, as after an edit."""
    file = folder / f"{next(_numbers)}" / f"{name}.py"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made
    linecache.checkcache(str(file))
    spec.loader.exec_module(made)
    return made


def fingerprint(found: ModuleType, name: str = "helper") -> str:
    """The digest of a function with all that it reaches."""
    sys.modules[found.__name__] = found
    reach = Reach(None)
    tree = reach.tree(getattr(found, name))
    return digest([tree, sorted(reach.packages.items())], keywords=None if reach.spreads else reach.keywords)


def seen(made: ModuleType, name: str = "helper") -> str | None:
    """The fingerprint of a function; None if it is refused."""
    try:
        return fingerprint(made, name)
    except FingerprintError as error:
        assert error.hint  # noqa: PT017 - to be refused is one of two outcomes
        return None


def result(made: ModuleType, name: str = "helper", look: str = "repr(x)") -> str:
    """What a function gives, or how it fails.

    Args:
        made: Its module.
        name: Its name.
        look: An expression that shows what of its result `x` counts.
    """
    sys.modules[made.__name__] = made
    try:
        return repr(eval(look, {**vars(made), "x": getattr(made, name)(copy.deepcopy(ROW))}))
    except Exception as error:  # noqa: BLE001 - how it fails is a result as well
        return f"{type(error).__name__}: {error}"


def outcome(one: ModuleType, other: ModuleType, name: str = "helper", look: str = "repr(x)") -> Outcome:
    """What becomes of an edit; "same" if both versions give the same results, so that it is no edit at all."""
    before, after = seen(one, name), seen(other, name)
    if before is None or after is None:
        return "refused"
    if result(one, name, look) == result(other, name, look):
        return "same"
    return "seen" if before != after else "missed"


@dataclass(frozen=True)
class Edit:
    """A program with a place in it, and what stands there before and after."""

    text: str
    before: str
    after: str

    def modules(self, folder: Path, head: str = "") -> tuple[ModuleType, ModuleType]:
        """The program before and after."""
        assert PLACE in self.text
        one, other = (head + self.text.replace(PLACE, found) for found in (self.before, self.after))
        return module(folder, one), module(folder, other)


def edits(name: str) -> dict[str, Edit]:
    """The edits of a file in the folder `edits`, by their titles.

    A title stands after `==`, below it a program, at its end two lines that begin with `--`.
    """
    found: dict[str, Edit] = {}
    for part in re.split(r"^== ", (EDITS / f"{name}.txt").read_text(), flags=re.MULTILINE)[1:]:
        title, _, body = part.partition("\n")
        text, before, after = body.strip("\n").split("\n--")
        assert title not in found, title
        found[title] = Edit(text + "\n", before[1:], after[1:].strip("\n"))
    return found
