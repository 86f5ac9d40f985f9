"""What a user says of a function that cannot be seen from its code."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from everstate.errors import DefinitionError
from everstate.errors.calls import explained
from everstate.location import Location, caller

if TYPE_CHECKING:
    from collections.abc import Callable

_Callable = TypeVar("_Callable", bound="Callable[..., Any]")

#: Where a function carries its declaration.
DECLARED: Final = "__everstate_declared__"


@dataclass(frozen=True)
class Declaration:
    """What a function reads besides its arguments.

    Attributes:
        clock: The time of day.
        random: Random numbers, or ids that differ each time.
        files: Files and folders; their content belongs to the fingerprint.
        network: What it asks over the network, in words; they belong to the fingerprint.
        environment: Environment variables; their values belong to the fingerprint.
        version: Of everything else about it that cannot be seen; it belongs to the fingerprint.
        pure: Packages, modules or functions that depend on their arguments alone.
        location: Where it was declared.
    """

    clock: bool = False
    random: bool = False
    files: tuple[str, ...] = ()
    network: str = ""
    environment: tuple[str, ...] = ()
    version: str = ""
    pure: tuple[str, ...] = ()
    location: Location | None = None

    @property
    def words(self) -> frozenset[str]:
        """The words of `declare` that are used, but for `pure`."""
        names = ("clock", "random", "files", "network", "environment", "version")
        return frozenset(name for name in names if getattr(self, name))

    def meaning(self) -> list[Any]:
        """What enters the fingerprint.

        Raises:
            DefinitionError: If a declared file is not there.
        """
        files = [self._content(Path(file)) for file in self.files]
        values = [[name, _hash(os.environ.get(name, "").encode()), name in os.environ] for name in self.environment]
        return [self.clock, self.random, files, self.network, values, self.version, sorted(self.pure)]

    def _content(self, path: Path) -> list[str]:
        if path.is_dir():
            inside = sorted(part for part in path.rglob("*") if part.is_file())
            return [text for part in inside for text in (part.relative_to(path).as_posix(), _hash(part.read_bytes()))]
        try:
            return [_hash(path.read_bytes())]
        except OSError as error:
            raise DefinitionError(
                f"the declared file {str(path)!r} cannot be read: {error.strerror}",
                location=self.location,
                hint=f"Paths are relative to the folder in which the service is started, {Path.cwd()}.",
            ) from None


class Declared:
    """A callable that cannot carry a declaration itself, such as one written in C."""

    def __init__(self, call: Callable[..., Any], declaration: Declaration) -> None:
        self.call = call
        self.declaration = declaration
        self.__name__ = getattr(call, "__name__", type(call).__name__)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """What it calls."""
        return self.call(*args, **named)


@explained
def declare(
    *,
    clock: bool = False,
    random: bool = False,
    files: Sequence[str | os.PathLike[str]] = (),
    network: str = "",
    environment: Sequence[str] = (),
    version: str = "",
    pure: Sequence[str] = (),
) -> Callable[[_Callable], _Callable]:
    """Say what a function reads besides its arguments; without it, such a function is refused.

    The declaration becomes part of the output's fingerprint: a file whose content has changed, a different value of an
    environment variable or a different version is a change to the service. Whatever it calls is covered, too.

    Example:
        >>> import everstate as es
        >>> @es.declare(files=["rates.csv"], version="2")
        ... def convert(row):
        ...     return {"euro": row["amount"] * float(open("rates.csv").read())}

    Args:
        clock: It reads the time of day.
        random: It draws random numbers, or makes ids that differ each time.
        files: The files and folders that it reads.
        network: What it uses the network for, in words: change them when the answers change.
        environment: The environment variables that it reads.
        version: The version of what cannot be seen at all, such as a program that it starts, or code without source.
        pure: Packages, modules or functions that are refused although you know that they depend on their arguments
            alone, such as `["scipy.special"]`. The versions of packages are part of the fingerprint anyway.
    """
    location = caller()
    for name, given in {"files": files, "environment": environment, "pure": pure}.items():
        if isinstance(given, (str, bytes, os.PathLike)) or not isinstance(given, Sequence):
            raise DefinitionError(f"{name}= takes a list of names", location=location, hint=f"{name}=[{given!r}]")
    _check_declared({"clock": clock, "random": random}, bool, "True or False", location)
    _check_declared({"network": network, "version": version}, str, "text", location)
    _check_declared(
        {f"files[{place}]": file for place, file in enumerate(files)}, (str, os.PathLike), "a path", location
    )
    _check_declared({f"environment[{place}]": name for place, name in enumerate(environment)}, str, "a name", location)
    declaration = Declaration(
        clock=clock,
        random=random,
        files=tuple(os.fspath(file) for file in files),
        network=network,
        environment=tuple(environment),
        version=version,
        pure=tuple(pure),
        location=location,
    )

    def attach(call: _Callable) -> _Callable:
        try:
            setattr(call, DECLARED, declaration)
        except (AttributeError, TypeError):
            return Declared(call, declaration)  # type: ignore[return-value]  # it is called in the same way
        return call

    return attach


def _check_declared(given: dict[str, Any], kind: Any, noun: str, location: Location | None) -> None:
    for name, value in given.items():
        if not isinstance(value, kind):
            raise DefinitionError(
                f"declare: {name} is of type {type(value).__name__}, not {noun}",
                location=location,
                hint="es.declare(clock=True, files=['rates.csv'], version='2')",
            )


def declaration_of(call: object) -> Declaration | None:
    """What was declared of a function."""
    if isinstance(call, Declared):
        return call.declaration
    found = getattr(call, DECLARED, None)
    return found if isinstance(found, Declaration) else None


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
