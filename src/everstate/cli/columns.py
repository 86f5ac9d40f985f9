"""Aligned columns: readable on a terminal, and still one line a row in a pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def aligned(header: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """The header and the rows as lines; numbers to the right, text to the left.

    Example:
        >>> for line in aligned(["TOPIC", "RECORDS"], [["orders", 12]]):
        ...     print(line)
        TOPIC   RECORDS
        orders       12
    """
    table = [list(header), *[[str(cell) for cell in row] for row in rows]]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    numeric = [bool(rows) and all(isinstance(row[column], int) for row in rows) for column in range(len(header))]
    for row in table:
        cells = [
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(row, widths, numeric, strict=True)
        ]
        yield "  ".join(cells).rstrip()


def at_most(exact: int | None, most: int) -> int | str:
    """A number of records for a column; where nobody counts them, how many there are at the most.

    Example:
        >>> at_most(7, 9), at_most(None, 9)
        (7, 'at most 9')
    """
    return f"at most {most}" if exact is None else exact


def size(count: int) -> str:
    """A number of bytes for people.

    Example:
        >>> size(5_300_000)
        '5.3 MB'
    """
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"
