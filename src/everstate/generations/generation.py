"""One version of an output, and the versions that an output has had.

Both are values: a step of the life cycle makes a new one, which the registry stores before anything acts on it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from everstate.errors import GenerationError
from everstate.schema.topic_names import INTERNAL, dead_letter_topic
from everstate.topology.nodes import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from everstate.log.archive.archive import Gaps
    from everstate.log.descriptions import Vector
    from everstate.topology.nodes import Side
    from everstate.topology.unit import Unit


class Status(StrEnum):
    """Where a generation is in its life."""

    PLANNED = "planned"
    RECALCULATING = "recalculating"
    READY = "ready"
    PUBLISHING = "publishing"
    ACTIVE = "active"
    RETIRED = "retired"
    DISCARDED = "discarded"


#: Being built: its query writes to topics of its own.
BUILDING: Final = frozenset({Status.PLANNED, Status.RECALCULATING, Status.READY, Status.PUBLISHING})
#: Which step may follow which. A step may be repeated, and whatever is being built may be given up or begin again.
_FOLLOWS: Final[dict[Status, frozenset[Status]]] = {
    Status.PLANNED: frozenset({Status.RECALCULATING, Status.ACTIVE, Status.DISCARDED}),
    Status.RECALCULATING: frozenset({Status.READY, Status.PUBLISHING, Status.DISCARDED, Status.RETIRED}),
    Status.READY: frozenset({Status.RECALCULATING, Status.PUBLISHING, Status.DISCARDED, Status.RETIRED}),
    Status.PUBLISHING: frozenset({Status.RECALCULATING, Status.ACTIVE, Status.DISCARDED, Status.RETIRED}),
    Status.ACTIVE: frozenset({Status.RETIRED, Status.DISCARDED}),
    Status.RETIRED: frozenset({Status.RECALCULATING, Status.DISCARDED}),
    Status.DISCARDED: frozenset(),
}


@dataclass(frozen=True, kw_only=True)
class Generation:
    """One version of an output.

    Attributes:
        number: Counts the versions of the output, from 1.
        status: Where it is in its life.
        fingerprint: Of the output that it runs.
        description: The output's `UnitPrint` as JSON.
        shards: How many shards its state has.
        initial: Where in its sources it began.
        code: Digest of the archived output in its state folder.
        policy: What happens to records that cannot be processed.
        was_active: It has been on the topic before, so its table is kept with it.
        missing: What its sources had lost when it was planned, and it does without.
        rate: Records a second of its recalculation; 0 if it is not known.
        topics: Ids of the topics that it reads and writes, by name, when it was made; empty where they were not noted.
        begins: Where the output's topic began then, by partition.
        missed: The step whose change led to it although the fingerprint had not seen it; empty for any other reason.
        created_ms: When it was planned.
        changed_ms: When its status changed last.
    """

    number: int
    status: Status
    fingerprint: str
    description: str
    shards: int
    initial: Vector
    code: str
    policy: str
    was_active: bool = False
    missing: Gaps = field(default_factory=dict)
    rate: float = 0.0
    topics: dict[str, str] = field(default_factory=dict)
    begins: dict[int, int] = field(default_factory=dict)
    missed: str = ""
    created_ms: int = 0
    changed_ms: int = 0

    @property
    def name(self) -> str:
        """As commits and record headers call it."""
        return str(self.number)

    def to(self, status: Status, *, now_ms: int, **changes: Any) -> Generation:
        """The same generation one step on.

        Raises:
            GenerationError: If that step does not follow.
        """
        if status is not self.status and status not in _FOLLOWS[self.status]:
            raise GenerationError(f"generation {self.number} is {self.status} and cannot become {status}")
        return replace(self, status=status, changed_ms=now_ms, **changes)


@dataclass(frozen=True, kw_only=True)
class Event:
    """An entry of the audit record.

    Attributes:
        at_ms: When.
        generation: Which generation.
        what: The status that it got.
        who: User, host and process.
        why: The differences that led to it, or the command.
        counts: Keys that a cutover wrote: new, changed, stale; and those it left alone.
    """

    at_ms: int
    generation: int
    what: str
    who: str
    why: str = ""
    counts: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class OutputGenerations:
    """The generations of one output, oldest first.

    Attributes:
        output: Its topic.
        generations: Those that were not deleted.
        next_number: Of the next generation; numbers are never used again.
        audit: What has happened lately, oldest first.
        archived: How much happened before that; see `Registry.audit`.
    """

    output: str
    generations: tuple[Generation, ...] = ()
    next_number: int = 1
    audit: tuple[Event, ...] = ()
    archived: int = 0

    @property
    def active(self) -> Generation | None:
        """The generation whose results are on the topic."""
        return next((g for g in self.generations if g.status is Status.ACTIVE), None)

    @property
    def building(self) -> Generation | None:
        """The generation that is being built."""
        return next((g for g in self.generations if g.status in BUILDING), None)

    @property
    def retired(self) -> tuple[Generation, ...]:
        """Earlier ones whose state is kept, the youngest first."""
        kept = [g for g in self.generations if g.status is Status.RETIRED]
        return tuple(sorted(kept, key=lambda g: g.changed_ms, reverse=True))

    @property
    def forgotten(self) -> frozenset[int]:
        """The numbers of generations that there were: nobody uses one again."""
        return frozenset(range(1, self.next_number)) - {g.number for g in self.generations}

    def numbered(self, number: int) -> Generation | None:
        """The generation of that number."""
        return next((g for g in self.generations if g.number == number), None)

    def having(self, generation: Generation, *events: Event) -> OutputGenerations:
        """With a new or changed generation."""
        others = [g for g in self.generations if g.number != generation.number]
        generations = tuple(sorted([*others, generation], key=lambda g: g.number))
        following = max(self.next_number, generation.number + 1)
        return replace(self, generations=generations, next_number=following, audit=(*self.audit, *events))

    def without(self, number: int) -> OutputGenerations:
        """With a generation forgotten, after its state has been deleted."""
        return replace(self, generations=tuple(g for g in self.generations if g.number != number))


def own_topic(service: str, output: str, generation: Generation) -> str:
    """The topic that holds a generation's table while the generation is not the active one.

    Names have a limit, so service and output enter as a digest.
    """
    return f"{_own_prefix(service, output)}{generation.number}"


def own_dead_letters(service: str, output: str, generation: Generation) -> str:
    """The same for its dead letters."""
    return dead_letter_topic(own_topic(service, output, generation))


def own_side(service: str, output: str, generation: Generation, side: Side) -> str:
    """The same for a further topic of the output that holds a table; empty for a stream, whose records stand."""
    if side.kind is not Kind.TABLE:
        return ""
    return f"{own_topic(service, output, generation)}.{hashlib.sha256(side.topic.encode()).hexdigest()[:16]}"


def own_of(unit: Unit, generation: Generation) -> tuple[str, ...]:
    """All topics that a generation keeps for itself."""
    service, output = unit.service, unit.output.topic
    sides = [own_side(service, output, generation, side) for side in unit.sides]
    own = (own_topic(service, output, generation), own_dead_letters(service, output, generation), *sides)
    return tuple(topic for topic in own if topic)


def own_topics(service: str, output: str, topics: Iterable[str]) -> dict[str, int]:
    """Those of some topics that an output's generations keep for themselves, with the number of the generation."""
    prefix = _own_prefix(service, output)
    numbers = {topic: topic.removeprefix(prefix).partition(".")[0] for topic in topics if topic.startswith(prefix)}
    return {topic: int(number) for topic, number in numbers.items() if number.isdecimal()}


def _own_prefix(service: str, output: str) -> str:
    digest = hashlib.sha256(f"{service}\0{output}".encode()).hexdigest()[:16]
    return f"{INTERNAL}{digest}."


def build_lease(service: str) -> str:
    """The lease of whoever builds new generations of a service."""
    return f"{service}:build"
