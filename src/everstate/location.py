"""Where in the user's code something was written."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

_PACKAGE = f"{Path(__file__).resolve().parent.parent}{os.sep}"


@dataclass(frozen=True)
class Location:
    """A file and a line.

    Attributes:
        file: The file.
        line: The line.
        end: The line and the column (in bytes of UTF-8) where the call that was made there ends; None if it is not
            known. No part of what a place is: two calls of one line are at one place.

    Example:
        >>> str(Location("orders.py", 12))
        'orders.py:12'
    """

    file: str
    line: int
    end: tuple[int, int] | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def caller() -> Location | None:
    """The innermost line on the stack that is not Everstate's own."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - looks at the stack without reading every source file
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_PACKAGE):
            return Location(file, frame.f_lineno, _end(frame))
        frame = frame.f_back
    return None


def _end(frame: FrameType) -> tuple[int, int] | None:
    """Where the call that a frame is in the middle of ends; None where Python was told to forget such."""
    place = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), None)
    if place is None or place[1] is None or place[3] is None:
        return None
    return place[1], place[3]
