"""One edit of the user's, in the user's own text: what it was, what it is, and the way from there to a step."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Lines of a difference that are shown.
MOST_LINES: Final = 12
_CONTEXT: Final = 1
_SKIPPED: Final = "..."


@dataclass(frozen=True)
class Edit:
    """Something that the user wrote differently.

    Attributes:
        kind: "constant", "closure", "default", "function", "lambda", "class", "text", "call" or "column".
        name: As people call it: `LATE_MINUTES`, `is_late()`.
        location: The user's file and line, as "file:line"; that of the old version where something was removed.
        old: Its value before, where one line says it.
        new: Its value now.
        diff: Else the lines that differ, each after "-", "+" or a space.
        chain: Through what it reaches the step: the name next to it first.
        step: The call that made the step: `apply(stateful=True)`.
        step_location: Where that call is.
    """

    kind: str
    name: str
    location: str = ""
    old: str | None = None
    new: str | None = None
    diff: tuple[str, ...] = ()
    chain: tuple[str, ...] = ()
    step: str = ""
    step_location: str = ""

    @property
    def identity(self) -> tuple[object, ...]:
        """Equal for one edit that reaches several steps."""
        return self.kind, self.name, self.location, self.old, self.new, self.diff


def diff_lines(old: str, new: str, most: int = MOST_LINES) -> tuple[str, ...]:
    r"""The lines that differ between two texts, as `git diff` has them, with a line around them.

    Example:
        >>> diff_lines("def f(x):\n    return x", "def f(x):\n    return -x")
        (' def f(x):', '-    return x', '+    return -x')
    """
    lines = list(_lines(old.splitlines(), new.splitlines()))
    # What is left out must be worth a line.
    if len(lines) <= most + 1:
        return tuple(lines)
    return (*lines[:most], f"... {len(lines) - most} more lines")


def first_changed(old: str, new: str) -> int:
    r"""How many lines of the new text come before the first that differs.

    Example:
        >>> first_changed("a\nb\nc", "a\nB\nc")
        1
    """
    before, after = old.splitlines(), new.splitlines()
    for opcode, _, _, start, _ in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if opcode != "equal":
            return min(start, max(len(after) - 1, 0))
    return 0


def _lines(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    found = list(difflib.unified_diff(old, new, n=_CONTEXT, lineterm=""))[2:]
    for number, line in enumerate(found):
        if line.startswith("@@"):
            if number:
                yield _SKIPPED
        elif line.strip("+- "):  # an empty line says nothing
            yield line.rstrip()
