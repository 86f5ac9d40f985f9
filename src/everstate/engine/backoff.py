"""How long to wait before something that failed is tried again, and when to give up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: The first wait; each further one is twice as long, up to the longest.
FIRST_S: Final = 1.0
LONGEST_S: Final = 60.0


@dataclass
class Backoff:
    """Failures in a row. A success ends the row: what fails once a week never adds up.

    Attributes:
        most: How many failures in a row are answered with another try.
        failures: How many there were since the last success.

    Example:
        >>> row = Backoff(most=3)
        >>> [row.failed(), row.failed(), row.failed(), row.failed()]
        [1.0, 2.0, 4.0, None]
        >>> row.succeeded()
        >>> row.failed()
        1.0
    """

    most: int
    failures: int = 0

    def failed(self) -> float | None:
        """Count a failure; returns the seconds to wait before the next try, or None if there is none left."""
        if self.failures >= self.most:
            return None
        self.failures += 1
        return float(min(LONGEST_S, FIRST_S * 2 ** min(self.failures - 1, 10)))

    def succeeded(self) -> None:
        """Forget what has failed."""
        self.failures = 0
