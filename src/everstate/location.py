"""Where in the user's code something was written."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

_PACKAGE = f"{Path(__file__).resolve().parent.parent}{os.sep}"


@dataclass(frozen=True)
class Location:
    """A file and a line.

    Example:
        >>> str(Location("orders.py", 12))
        'orders.py:12'
    """

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def caller() -> Location | None:
    """The innermost line on the stack that is not Everstate's own."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - looks at the stack without reading every source file
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_PACKAGE):
            return Location(file, frame.f_lineno)
        frame = frame.f_back
    return None
