"""A program loaded, run and printed: what it gives, and what its fingerprint is."""

from __future__ import annotations

import itertools
import signal
import sys
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

import everstate as es
from everstate.errors import EverstateError, FingerprintError
from everstate.fingerprints import print_unit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: What the main function is given.
ROWS = (-3, 0, 1, 2, 5, 12)
#: A program that takes longer, on the processor, does not end.
_SECONDS = 0.5
PACKAGE = "tried"
_numbers = itertools.count()


@dataclass(frozen=True)
class Trial:
    """What became of a program.

    Attributes:
        results: What it gave for each row; None if it cannot be loaded or run.
        fingerprint: Empty if it was refused.
        refusal: Why.
    """

    results: tuple[str, ...] | None
    fingerprint: str = ""
    refusal: str = ""


def tried(folder: Path, texts: dict[str, str]) -> Trial:
    """Write a program, load it, take its fingerprint, run it."""
    with _loaded(folder / str(next(_numbers)), texts) as main:
        if not callable(main):
            return Trial(None)
        try:
            fingerprint, refusal = fingerprint_of(main), ""
        except FingerprintError as error:
            fingerprint, refusal = "", error.message
        except EverstateError:
            return Trial(None)  # nobody can deploy it
        return Trial(_results(main), fingerprint, refusal)


def fingerprint_of(main: Any) -> str:
    """The fingerprint of a service that maps a stream by a function."""
    app = es.Service("pairs")
    app.stream("in", schema={"x": int}).map(main, schema={"v": str}).to("out")
    (unit,) = app.units()
    return print_unit(unit, policy="skip", settings={}).fingerprint


@contextmanager
def _loaded(folder: Path, texts: dict[str, str]) -> Iterator[Any]:
    """The main function of a program; None if an edit has left one that is none, which nobody deploys."""
    folder.mkdir(parents=True)
    package = sys.modules[PACKAGE] = ModuleType(PACKAGE)
    package.__path__ = [str(folder)]
    try:
        with _quiet():
            for name, text in texts.items():
                setattr(package, name, _module(folder / f"{name}.py", text))
        main = getattr(sys.modules[f"{PACKAGE}.main"], "main", None)
    except Exception:  # noqa: BLE001 - whatever it is, it does not load
        main = None
    try:
        yield main
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
            del sys.modules[name]


def _module(file: Path, text: str) -> ModuleType:
    text = text.replace("PACKAGE", PACKAGE)
    file.write_text(text)
    name = f"{PACKAGE}.{file.stem}"
    module = sys.modules[name] = ModuleType(name)
    module.__file__, module.__package__ = str(file), PACKAGE
    exec(compile(text, str(file), "exec", dont_inherit=True), module.__dict__)
    return module


def _results(main: Any) -> tuple[str, ...] | None:
    try:
        with _quiet():
            return tuple(_result(main, row) for row in ROWS)
    except TimeoutError:
        return None


def _result(main: Any, row: int) -> str:
    try:
        return shown(main({"x": row}))
    except TimeoutError:
        raise
    except Exception as error:  # noqa: BLE001 - what it raises is a result like any other
        return f"{type(error).__name__}: {error}"


def shown(result: Any) -> str:
    """A result with the types of plain things in it; others by what they say of themselves."""
    if isinstance(result, (list, tuple)) and type(result) in (list, tuple):
        return f"{type(result).__name__}({', '.join(map(shown, result))})"
    if type(result) is dict:
        return f"dict({', '.join(f'{shown(key)}: {shown(value)}' for key, value in result.items())})"
    return f"{type(result).__name__}:{result!r}"


@contextmanager
def _quiet() -> Iterator[None]:
    """Programs warn of nothing and end, even when an edit has made a loop of them."""

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, _SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
