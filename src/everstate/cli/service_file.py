"""Loading the user's file: the service that it defines."""

from __future__ import annotations

import importlib.util
import json
import sys
import tomllib
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from everstate.dsl.config import OVERRIDES
from everstate.dsl.service import Service
from everstate.errors import ConfigurationError, DefinitionError, EverstateError, secrets
from everstate.location import Location

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType


def load_service(
    path: Path | str, *, service: str | None = None, config: Mapping[str, object] | None = None
) -> Service:
    """The service that a Python file defines.

    Args:
        path: The file.
        service: Which service, if the file defines several.
        config: Values for `Service.config`, which come before the environment and the defaults.

    Raises:
        DefinitionError: If the file cannot be loaded, or does not define that service.
    """
    module = _load(Path(path), config or {})
    found = {id(value): value for value in vars(module).values() if isinstance(value, Service)}
    services = {item.name: item for item in found.values()}
    if service is not None:
        if service not in services:
            raise DefinitionError(f"{path} defines no service {service!r}", hint=f"It defines: {_listed(services)}.")
        return services[service]
    if len(services) != 1:
        what = "no service" if not services else f"several services: {_listed(services)}"
        hint = "Define one: app = everstate.Service(NAME)" if not services else "Choose one with --service NAME."
        raise DefinitionError(f"{path} defines {what}", hint=hint)
    return next(iter(services.values()))


def read_config(file: Path | None, assignments: Sequence[str]) -> dict[str, object]:
    """Configuration values from `--config FILE` (TOML or JSON) and `--set name=value`, which comes first.

    Raises:
        ConfigurationError: If the file cannot be read, or an assignment is not one.
    """
    values: dict[str, object] = {}
    if file is not None:
        try:
            content = file.read_text(encoding="utf-8")
            document: Any = json.loads(content) if file.suffix == ".json" else tomllib.loads(content)
        except (OSError, ValueError, RecursionError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise ConfigurationError(
                f"the configuration {file} cannot be read: {why}", hint="It must be TOML, or JSON in a file *.json."
            ) from error
        if not isinstance(document, dict):
            raise ConfigurationError(
                f"the configuration {file} is not a table of names and values", hint="Write lines such as: least = 100"
            )
        values.update(document)
    for assignment in assignments:
        name, sign, value = assignment.partition("=")
        if not sign or not name:
            raise ConfigurationError(
                f"--set {assignment} is not of the form name=value", hint="Write, for instance: --set least=100"
            )
        values[name] = value
    return values


def _load(path: Path, config: Mapping[str, object]) -> ModuleType:
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise DefinitionError(f"{path} {what}", hint="Name the Python file that defines the service.")
    spec = importlib.util.spec_from_file_location(_module_name(path), path.resolve())
    if spec is None or spec.loader is None:
        raise DefinitionError(f"{path} is not a Python file", hint="Give it a name that ends in .py.")
    module = importlib.util.module_from_spec(spec)
    # As `python FILE` does, so that the file can import its neighbours; and workers get it by value from here.
    sys.path.insert(0, str(path.resolve().parent))
    sys.modules[spec.name] = module
    token = OVERRIDES.set(config)
    secrets.remember(config)
    try:
        spec.loader.exec_module(module)
    except EverstateError:
        raise
    except (Exception, SystemExit) as error:
        sys.modules.pop(spec.name, None)
        raise DefinitionError(
            f"{path} cannot be loaded: {type(error).__name__}: {error}",
            location=_place(error, path),
            hint=_cure(error),
        ) from error
    finally:
        OVERRIDES.reset(token)
    return module


def _module_name(path: Path) -> str:
    """The file's own name, unless another module has it: a service in `json.py` must not replace Python's."""
    known = sys.modules.get(path.stem)
    taken = known is not None and getattr(known, "__file__", None) != str(path.resolve())
    return f"everstate_service_{path.stem}" if taken else path.stem


def _cure(error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f"Install it, or put {error.name} next to the file: its folder is searched."
    if isinstance(error, SystemExit):
        return "A service file only defines the service; put what ends the program under: if __name__ == '__main__':"
    return "Correct the file at this line; to see more, run it with Python itself."


def _place(error: BaseException, path: Path) -> Location | None:
    """The line of the user's file where it went wrong."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return Location(error.filename, error.lineno)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path.resolve())]
    return Location(frames[-1].filename, frames[-1].lineno or 0) if frames else None


def _listed(services: Mapping[str, Service]) -> str:
    return ", ".join(sorted(services)) or "none"
