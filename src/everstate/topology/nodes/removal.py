"""What the tombstone service does with a topic: it removes the keys that have been quiet for a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from everstate.schema.durations import milliseconds
from everstate.topology.nodes.node import Kind, Node, Side
from everstate.topology.traits import Need, Traits


@dataclass(frozen=True, eq=False, kw_only=True)
class Removal(Node):
    """Removes the keys of a table's topic that have been quiet for a time, whoever writes the topic.

    Its rows are the removals. The tombstones go to the topic itself, each into the partition of the record that it
    removes.

    Attributes:
        topic: The topic.
        after: How long a key is quiet before it is removed.
        clock: Which clock says so: "event" is the stream time of the topic, "wall" the recorded clock.
    """

    operation: ClassVar[str] = "tombstone"
    command: ClassVar[str] = "tombstone"
    traits: ClassVar[Traits] = Traits(
        on_shard=True,
        keeps_state=True,
        timed=True,
        clocked=True,
        clocked_by_tables=True,
        supersedes=True,
        need=Need.LATEST,
    )
    labelled: ClassVar[frozenset[str]] = frozenset({"after", "clock"})
    topic: str
    after: str
    clock: str

    @property
    def sides(self) -> tuple[Side, ...]:
        """The topic itself: what was removed stays removed."""
        return (Side(self.topic, Kind.STREAM),)

    @property
    def timed(self) -> bool:
        """By the clock that was chosen."""
        return self.clock == "event"

    @property
    def clocked(self) -> bool:
        """By the other one."""
        return self.clock == "wall"

    @property
    def tick_ms(self) -> int:
        """A hundred times while a key may be quiet, from each second to each minute: a week needs no look a second."""
        return min(60_000, max(1000, self.after_ms // 100))

    @cached_property
    def after_ms(self) -> int:
        """In milliseconds."""
        return milliseconds(self.after)
