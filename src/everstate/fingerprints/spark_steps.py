"""What a step of Spark's own is, by its meaning.

Its function is there for its effects, so none is refused; and what it calls of installed packages does not count, since
a new version of them is no reason to deliver everything again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from everstate.errors import FingerprintError
from everstate.fingerprints.outside import origins
from everstate.fingerprints.reach import Reach
from everstate.fingerprints.tree import digest

if TYPE_CHECKING:
    from everstate.topology.spark_steps import SparkStep


class _Unjudged(Reach):
    """A walk that only compares."""

    def _check_effects(self) -> None:
        """Whatever it does is what it is for."""


def step_digest(step: SparkStep) -> str:
    """The digest of a step's function with all of the user's code that it reaches.

    Raises:
        FingerprintError: If it holds something whose change could not be noticed.
    """
    reach = _Unjudged(step.function.location or step.location)
    try:
        with origins.of_services([] if step.location is None else [step.location.file]):
            tree = reach.tree(step.function.call)
    except FingerprintError as error:
        raise FingerprintError(f"{step.call}: {error.message}", location=error.location, hint=error.hint) from None
    return digest(tree)
