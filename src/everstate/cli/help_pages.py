"""Help pages as this command shows them: an option that takes no value is shown without one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    from collections.abc import Callable


def _as_shown(parameters: list[Any]) -> list[Any]:
    """Typer names the type of every option, `<bool>` for a flag, as if something had to follow it."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


class Command(TyperCommand):
    """A command whose flags are shown as flags."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Its arguments and options."""
        return _as_shown(super().get_params(ctx))


class Group(TyperGroup):
    """Commands under one name, whose own flags are shown as flags."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Its options."""
        return _as_shown(super().get_params(ctx))


class Commands(typer.Typer):
    """Puts commands together, with such help pages."""

    def __init__(self, **options: Any) -> None:
        super().__init__(cls=Group, no_args_is_help=True, **options)

    def command(self, name: str | None = None, **options: Any) -> Callable[[Any], Any]:
        """Add a command."""
        return super().command(name, cls=Command, **options)
