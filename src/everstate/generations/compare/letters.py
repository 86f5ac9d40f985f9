"""What a cutover writes to a dead-letter topic."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from everstate.fingerprints.earlier import step_operation
from everstate.generations.compare.difference import difference
from everstate.topology.nodes import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from everstate.generations.compare.difference import Difference
    from everstate.topology.unit import Unit

#: Where a reason says that a function has failed.
_PLACE: Final = re.compile(r" \((?:.*:\d+ )?in [^ ()]+\)$")


def letter_difference(
    letters: pl.DataFrame, topic: pl.DataFrame, unit: Unit, latest: Callable[[str], pl.DataFrame]
) -> Difference:
    """Compare the dead letters of a generation with those on their topic.

    That a step stands on another line now is no news. Nor is a letter about a record of a table that has been
    superseded: nothing depends on it any more. A recalculation meets such records where the schema of a topic has
    changed, at the latest when an output reads another one of its service that was changed together with it.

    Args:
        letters: key, value and ts of the letters that there should be.
        topic: key, value, ts and partition of those that there are.
        unit: The output.
        latest: Gives the last records of a topic, with partition and offset.
    """
    news = letters.join(topic.select("key"), on="key", how="anti", maintain_order="left")
    superseded = _superseded(news, unit, latest)
    wanted = letters.filter(~pl.col("key").is_in(superseded)) if superseded else letters
    return difference(wanted, topic, meaning=_placeless)


def _superseded(letters: pl.DataFrame, unit: Unit, latest: Callable[[str], pl.DataFrame]) -> list[bytes]:
    """Keys of letters about records of tables that are not the last of their key."""
    streams = {source.topic for source in unit.sources if source.kind is Kind.STREAM}
    about: dict[str, dict[tuple[int, int], bytes]] = {}
    for key, value in letters.select("key", "value").iter_rows():
        letter = json.loads(value)
        if letter["topic"] not in streams and letter["key"] is not None and letter["value"] is not None:
            about.setdefault(letter["topic"], {})[letter["partition"], letter["offset"]] = key
    found: list[bytes] = []
    for name, places in about.items():
        last = set(latest(name).select("partition", "offset").iter_rows())
        found += [key for place, key in places.items() if place not in last]
    return found


def _placeless(letter: Any) -> Any:
    """A dead letter without the user's file and line, the name of a function and what else a step is called by."""
    reason, step = (
        _PLACE.sub("", str(letter.get("reason"))),
        step_operation(str(letter.get("step")), letter.get("topic")),
    )
    return {**letter, "step": step, "reason": reason}
