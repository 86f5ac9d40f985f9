"""What a service says when it has stopped: what is committed, and how to go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from everstate.generations.generation import build_lease
from everstate.log import vectors
from everstate.plan.words import counted, listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from everstate.engine.board import Line
    from everstate.errors import TakenOverError
    from everstate.log.descriptions import Vector

#: A topic with more partitions is told in one line as from the lowest to the highest offset.
_MOST_PARTITIONS: Final = 4


def stopped(lines: Sequence[Line], building: Mapping[str, int], again: str) -> Iterator[str]:
    """What is said after a stop that someone asked for.

    Args:
        lines: What the outputs have done in this run.
        building: By output, the generation that was being built.
        again: The command that goes on; empty where there is none.
    """
    if lines:
        yield "Stopped. Committed in this run:"
    else:
        yield "Stopped before any output had been started: nothing was committed in this run."
    for line in lines:
        done = f"{counted(line.read, 'record')} read, {line.written:,} written" if line.batches else "nothing new"
        yield f"  {line.name} (generation {line.generation}): {done}; {reached(line.position)}"
    for output, generation in building.items():
        yield f"  {output}: generation {generation} was being built; the next run goes on with it"
    yield f"To continue from there: {again}" if again else "The next run continues from there."


def reached(position: Vector) -> str:
    """How far an output has read.

    Example:
        >>> reached({"orders": {0: 1200}, "people": {0: 3, 1: 4}})
        'up to offset 1,200 of orders, up to offsets 3 and 4 of people'
    """
    read = vectors.records(position)
    return ", ".join(f"up to {_offsets(list(ends.values()))} of {topic}" for topic, ends in read.items())


def _offsets(ends: list[int]) -> str:
    if len(ends) == 1:
        return f"offset {ends[0]:,}"
    if len(ends) <= _MOST_PARTITIONS:
        return f"offsets {listed(tuple(f'{end:,}' for end in ends))}"
    return f"offsets between {min(ends):,} and {max(ends):,} in {len(ends)} partitions"


def replaced(error: TakenOverError, service: str, host: str) -> str:
    """What is said when another process was started in the place of this one.

    Args:
        error: The lease that it has taken.
        service: The service.
        host: Where this process runs.
    """
    where = "" if error.host == host else f" on {error.host.partition('/')[0]}"
    if error.lease == build_lease(service):
        return (
            f"Process {error.pid}{where} now deploys service {service} in place of this one, which has stopped. "
            "Whatever it had not yet finished was never published."
        )
    return (
        f"Process {error.pid}{where} now runs service {service} in place of this one, which has stopped. "
        "Nothing is lost: it goes on from the last commit."
    )
