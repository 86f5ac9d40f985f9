"""What the shell offers when the user presses Tab."""

from __future__ import annotations

from everstate.errors import EverstateError
from everstate.project.project_file import current


def service_names(incomplete: str) -> list[str]:
    """The services of the project; files are offered by the shell itself if there are none."""
    try:
        return [name for name in current().services if name.startswith(incomplete)]
    except EverstateError:
        return []  # a mistake in the file is told when a command is run
