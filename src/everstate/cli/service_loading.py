"""Loading the user's file or module: the service that it defines."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from everstate.cli.service_names import Target, import_file, import_module, is_module
from everstate.dsl.config import OVERRIDES
from everstate.dsl.service import Service
from everstate.errors import ConfigurationError, DefinitionError, EverstateError, secrets
from everstate.fingerprints.outside import origins
from everstate.location import Location
from everstate.project.config_values import read_values
from everstate.project.project_file import SERVICES, current

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType


def load_service(
    target: Path | str | None, *, service: str | None = None, config: Mapping[str, object] | None = None
) -> Service:
    """The service that a Python file or module defines.

    Args:
        target: `package.module`, or a file, with `:name` if several services are defined there; or a name that the
            project's file gives. None for the only service of the project.
        service: Which service, by its own name.
        config: Values for `Service.config`, which come before the environment and the defaults.

    Raises:
        DefinitionError: If it cannot be loaded, or does not define that service.
    """
    found = _target(target)
    module = _load(found, config or {})
    services = {name: value for name, value in vars(module).items() if isinstance(value, Service)}
    if found.attribute is not None:
        return _named(found, module, services)
    return _only(found, services, service)


def service_name(target: Path | str | None) -> str:
    """What to type for a service: what was typed, or the name of the project's only one.

    Raises:
        DefinitionError: If nothing was typed and the project does not have one service.
    """
    if target is not None:
        return str(target)
    project = current()
    names = list(project.services)
    if len(names) == 1:
        return names[0]
    if project.file is None:
        raise DefinitionError(
            "no service is named, and there is no project here",
            hint="Name the service: package.module:app, or its file. In a project, everstate.toml names it: see "
            "everstate init --help",
        )
    listed = f"Say which one: {', '.join(names)}." if names else f"Name it, or add it to [{SERVICES}] there."
    what = "several services" if names else "no service"
    raise DefinitionError(f"no service is named, and {project.place()} names {what}", hint=listed)


def is_left_out(word: str) -> bool:
    """Whether a word is no service, in a project that has one: its name, a file and a module are."""
    services = current().services
    if len(services) != 1 or word in services:
        return False
    try:
        found = Target.of(word)
    except DefinitionError:
        return True
    return found.file is None and found.attribute is None and not is_module(found.place, _folders())


def _target(target: Path | str | None) -> Target:
    """Where a service is; names of the project's file come first."""
    typed = service_name(target)
    project = current()
    written = project.services.get(typed)
    if written is None:
        return Target.of(typed)
    try:
        return Target.of(written, project.folder)
    except DefinitionError as error:
        raise project.refusal(error.message, error.hint or "", SERVICES, typed) from error


def _named(target: Target, module: ModuleType, services: Mapping[str, Service]) -> Service:
    """The service of `:name`: a name in the module, else that of a service."""
    name = target.attribute or ""
    thing: Any = module
    for part in name.split("."):
        thing = getattr(thing, part, None)
    by_name = {one.name: one for one in services.values()}
    found = thing if isinstance(thing, Service) else by_name.get(name)
    if found is None:
        what = "nothing called" if thing is None else "something other than a service called"
        raise DefinitionError(
            f"{target.place} has {what} {name!r}", hint=f"Its services are: {_listed(target, services)}."
        )
    return found


def _only(target: Target, services: Mapping[str, Service], name: str | None) -> Service:
    """The service of this name, or the only one."""
    by_name = {one.name: one for one in services.values()}
    if name is not None:
        if name not in by_name:
            listed = ", ".join(sorted(by_name)) or "none"
            raise DefinitionError(f"{target.place} defines no service {name!r}", hint=f"It defines: {listed}.")
        return by_name[name]
    if not services:
        raise DefinitionError(f"{target.place} defines no service", hint="Define one: app = everstate.Service(NAME)")
    if len({id(one) for one in services.values()}) > 1:
        raise DefinitionError(
            f"{target.place} defines several services: {', '.join(sorted(by_name))}",
            hint=f"Say which one: {_listed(target, services)}.",
        )
    return next(iter(services.values()))


def read_config(file: Path | None, assignments: Sequence[str]) -> dict[str, object]:
    """Configuration values from `--config FILE` (TOML or JSON) and `--set name=value`, which comes first.

    Raises:
        ConfigurationError: If the file cannot be read, or an assignment is not one.
    """
    values = read_values(file) if file is not None else {}
    for assignment in assignments:
        name, sign, value = assignment.partition("=")
        if not sign or not name:
            raise ConfigurationError(
                f"--set {assignment} is not of the form name=value", hint="Write, for instance: --set least=100"
            )
        values[name] = value
    return values


def _load(target: Target, config: Mapping[str, object]) -> ModuleType:
    file = target.file
    if file is not None and not file.is_file():
        what = "is a folder" if file.is_dir() else "does not exist"
        raise DefinitionError(f"{target.place} {what}", hint="Name the Python file that defines the service.")
    token = OVERRIDES.set(config)
    secrets.remember(config)
    try:
        return import_file(file, _folders()) if file is not None else import_module(target.place, _folders())
    except EverstateError:
        raise
    except (Exception, SystemExit) as error:
        raise DefinitionError(
            f"{target.place} cannot be loaded: {type(error).__name__}: {error}",
            location=_place(error),
            hint=_cure(error),
        ) from error
    finally:
        OVERRIDES.reset(token)


def _folders() -> list[Path]:
    """Where modules are searched for: here, as `python -m` does, in the project, and in the folder `src` of each."""
    places = [place for place in (current().folder, Path.cwd()) if place is not None]
    folders = [folder for place in places for folder in (place, place / "src") if folder.is_dir()]
    return list(dict.fromkeys(folders))


def _cure(error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f"Install it, or put {error.name} next to the file: its folder is searched."
    if isinstance(error, ImportError) and "relative import" in str(error):
        return "The file is not in a package: put an empty __init__.py next to it, or import its neighbours by name."
    if isinstance(error, SystemExit):
        return (
            "A service file only defines the service; put code that ends the program under: if __name__ == '__main__':"
        )
    return "Correct the file at this line; to see more, run it with Python itself."


def _place(error: BaseException) -> Location | None:
    """The line of the user's where it went wrong."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return Location(error.filename, error.lineno)
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<") and origins.of_file(frame.filename) == origins.USER
    ]
    return Location(frames[-1].filename, frames[-1].lineno or 0) if frames else None


def _listed(target: Target, services: Mapping[str, Service]) -> str:
    """What to type for each of the services, by the first of its names."""
    first: dict[int, str] = {}
    for name, one in services.items():
        first.setdefault(id(one), f"{target.place}:{name} (service {one.name})")
    return ", ".join(sorted(first.values())) or "none"
