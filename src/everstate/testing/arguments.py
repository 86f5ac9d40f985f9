"""What calls of the test driver are given, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from everstate.dsl.arguments import shown
from everstate.dsl.service import Service
from everstate.errors import ConfigurationError
from everstate.errors.calls import suggestion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everstate.location import Location


def require_service(service: object, location: Location | None) -> None:
    """Refuse what is no service, such as one of its tables or its name.

    Raises:
        ConfigurationError: If it is none.
    """
    if not isinstance(service, Service):
        raise ConfigurationError(
            f"expected a service, got {shown(service)}", location=location, hint="Pass what es.Service(name) returned."
        )


def output_names(given: object, known: Sequence[str], location: Location | None) -> tuple[str, ...]:
    """Names of outputs, as a user gave them."""
    names = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, (list, tuple, set)) else None
    unknown = [name for name in names or () if name not in known]
    if names is None or unknown:
        what = "is not a list of outputs" if names is None else f"names {shown(unknown[0])}, which is not an output"
        hint = f"{suggestion(unknown[0], known) if unknown else ''}The outputs are: {', '.join(known) or 'none'}."
        raise ConfigurationError(f"recalculate={shown(given)} {what}", location=location, hint=hint)
    return tuple(str(name) for name in names)


def are_headers(given: object) -> bool:
    """Whether something is bytes by name."""
    if not isinstance(given, Mapping):
        return False
    return all(isinstance(name, str) and (value is None or isinstance(value, bytes)) for name, value in given.items())
