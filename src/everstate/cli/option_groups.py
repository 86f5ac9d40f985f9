"""Options that several commands share: a group of them is a dataclass, and one parameter of each command."""

from __future__ import annotations

import inspect
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, cast, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Callable

    from everstate.generations.deploy.options import RunOptions


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """A command that has, in the place of each group among its parameters, the options of that group.

    Args:
        command: A function; a parameter of it whose type is a dataclass is a group, and each field is an option.
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    options: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        options += _options(groups[name]) if name in groups else [parameter.replace(annotation=hints[name])]

    @wraps(command)
    def called(**given: object) -> None:
        made = {
            name: cast("type", group)(**{field.name: given.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**given, **made)

    # What Typer looks at.
    called.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]  # any function may have one
    called.__annotations__ = {option.name: option.annotation for option in options}
    return called


def _options(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
        for field in fields(group)
    ]


def asked(*groups: Any) -> RunOptions:
    """What was asked for with these groups; an option that was left out is none, so that a setting can say it."""
    found = {field.name: getattr(group, field.name) for group in groups for field in fields(group)}
    return cast("RunOptions", {name: value for name, value in found.items() if value is not None})
