"""Records that cannot be decoded: an error that names them, or a count that says how many were left out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from everstate.errors import DecodeError

if TYPE_CHECKING:
    import polars as pl

#: So many are named; a topic read with a wrong schema has nothing else.
_NAMED: Final = 5


@dataclass
class BadRecords:
    """Gathers what cannot be decoded.

    Args:
        topic: Where the records are.
        skip: Leave them out and count them, instead of stopping.
        hint: What to do about them.
    """

    topic: str
    skip: bool
    hint: str
    count: int = 0
    _named: list[str] = field(default_factory=list)

    def add(self, bad: pl.DataFrame) -> None:
        """Take note of some."""
        self.count += bad.height
        for partition, offset, reason in bad.head(_NAMED - len(self._named)).iter_rows():
            self._named.append(f"partition {partition}, offset {offset}: {reason}")

    def check(self) -> None:
        """Stop if there are some, and they are not to be left out.

        Raises:
            DecodeError: It names them.
        """
        if self.count and not self.skip:
            raise DecodeError(f"{self.told()} cannot be decoded. {self.named()}", hint=self.hint)

    def told(self) -> str:
        """How many there are."""
        return f"{self.count:,} record{'' if self.count == 1 else 's'} of topic {self.topic!r}"

    def named(self) -> str:
        """The first of them, with the reasons."""
        more = "" if self.count <= len(self._named) else f"; and {self.count - len(self._named):,} more"
        return "; ".join(self._named) + more
