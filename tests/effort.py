"""How much random tests go through: the one place that says so.

`EVERSTATE_EFFORT` is `quick` (a taste of each, `make quick`), `usual` (`make test`), or `full` (`make long`). A test
names its full number; the others are shares of it.
"""

from __future__ import annotations

import math
import os

#: The part of its full number that a test goes through.
SHARES = {"quick": 0.05, "usual": 0.2, "full": 1.0}
LEVEL = os.environ.get("EVERSTATE_EFFORT", "usual")


def examples(full: int, usual: int | None = None, *, level: str = LEVEL) -> int:
    """How many examples a test tries at this level; at least one.

    Args:
        full: In `make long`.
        usual: What the other levels take their shares of; the full number unless that is a long run's.
        level: A key of `SHARES`.
    """
    return full if level == "full" else math.ceil((full if usual is None else usual) * SHARES[level])
