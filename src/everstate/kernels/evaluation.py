"""What an output makes of some records, as a digest of each of its steps.

Two versions whose digests differ calculate something else, whatever their code looks like; the first step that differs
is where. Rows are digested as Python shows them, since Polars' own hashes differ between its versions.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from everstate.fingerprints.declarations import declaration_of
from everstate.kernels.pages.page_store import MemoryPages
from everstate.kernels.parcel import DEAD_LETTERS, OUT, RECORDS, SIDES
from everstate.kernels.pipeline import ShardStages, ingested, run_stages
from everstate.kernels.rows import KEY, OFF, OP, PART, TOPIC, TS, user_columns
from everstate.topology.functions import Function
from everstate.topology.names import node_names
from everstate.topology.nodes import Kind
from everstate.topology.unit import silenced

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

    from everstate.kernels.parcel import Parcel
    from everstate.kernels.pipeline import Admission, Piece
    from everstate.topology.nodes import Node
    from everstate.topology.unit import Unit


@dataclass(frozen=True)
class Evaluation:
    """What came out.

    Attributes:
        steps: The digest of what each step has given, by name in topological order; the last is the output's.
        batches: How many micro-batches were processed.
    """

    steps: dict[str, str]
    batches: int


class StepDigests:
    """Watches the steps of an output, micro-batch after micro-batch.

    Args:
        unit: The output.
    """

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        shown = [number for number, node in enumerate(unit.nodes) if not node.traits.passes]
        names = node_names(unit)
        self._names = {number: names[number] for number in shown}
        self._last = len(unit.nodes) - 1
        self._digests = {number: hashlib.sha256() for number in shown}
        self._rows: dict[int, list[str]] = {}
        self.batches = 0

    def copy(self, unit: Unit | None = None) -> StepDigests:
        """The same digests between two micro-batches; what one sees from now on does not show in the other.

        Args:
            unit: The output as it is from now on: of the same steps, but perhaps with other side effects among them.
        """
        other = StepDigests(unit or self._unit)
        other.batches = self.batches
        mine = {self._names[number]: digest for number, digest in self._digests.items()}
        other._digests = {number: mine[name].copy() for number, name in other._names.items()}
        return other

    def witness(self, number: int, rows: pl.DataFrame) -> None:
        """Take notice of the rows that a step gives."""
        if rows.height and number in self._names:
            columns = [name for name in (KEY, OP, TS) if name in rows.columns]
            shown = rows.select(*columns, *user_columns(rows)).iter_rows()
            self._rows.setdefault(number, []).extend(map(repr, shown))

    def end_batch(self, leaving: Sequence[Parcel]) -> None:
        """Close a micro-batch with what leaves the unit.

        Of dead letters only the records count: their reasons name lines of code, which may move.
        """
        out = self._rows.setdefault(self._last, [])
        for parcel in leaving:
            if parcel.stage == OUT and parcel.port == RECORDS:
                out += map(repr, parcel.frame.select("key", "value", "ts").iter_rows())
            elif parcel.stage == OUT and parcel.port >= SIDES:
                side = self._unit.sides[parcel.port - SIDES]
                if side.kind is Kind.STREAM:  # a table by position has letters, whose reasons name lines of code
                    out += (f"{side.topic} {row!r}" for row in parcel.frame.select("key", "value", "ts").iter_rows())
            elif parcel.stage == OUT and parcel.port == DEAD_LETTERS:
                out += map(repr, parcel.frame.select(TOPIC, PART, OFF).unique().iter_rows())
        for number, rows in self._rows.items():
            self._digests[number].update(f"{self.batches}{sorted(rows)}".encode())
        self._rows.clear()
        self.batches += 1

    def found(self) -> Evaluation:
        """The digests so far."""
        return Evaluation({self._names[n]: digest.hexdigest() for n, digest in self._digests.items()}, self.batches)


def evaluated(
    unit: Unit,
    batches: Sequence[Sequence[Piece]],
    *,
    policy: str = "dead-letter",
    shards: int = 1,
    seconds: float | None = None,
    admit: Admission | None = None,
) -> Evaluation:
    """Process micro-batches from empty state, without side effects.

    Args:
        unit: The output.
        batches: The records.
        policy: What happens to those that cannot be processed: one of them must not hide what becomes of the others.
        shards: On how many shards.
        seconds: No further micro-batch is begun after so much work, or ten times as long: a busy machine must not be
            taken for a slow output, nor one that waits for a quick one. None for no limit.
        admit: As for `run_stages`.

    Raises:
        Exception: Whatever stops an output for good, such as a sum that does not fit its type.
    """
    unit = silenced(unit)
    digests = StepDigests(unit)
    every = [ShardStages(unit, MemoryPages(), policy=policy, share=(number, shards)) for number in range(shards)]
    worked, began = time.process_time(), time.monotonic()
    for batch in _aware(unit, batches):
        spent = max(time.process_time() - worked, (time.monotonic() - began) / 10)
        if seconds is not None and spent > seconds:
            break
        pieces = [piece for piece in batch if piece[0] in unit.topics]
        parcels = ingested(unit, pieces, policy, digests.witness)
        stages = range(1, unit.depth + 1)
        digests.end_batch(run_stages(every, stages, parcels, witness=digests.witness, admit=admit))
    return digests.found()


def _aware(unit: Unit, batches: Sequence[Sequence[Piece]]) -> Iterator[list[Piece]]:
    """The batches, of which the first names all partitions where the unit goes by time: it waits for each of them."""
    places = {(topic, partition): records.clear() for batch in batches for topic, partition, records in batch}
    quiet = [(*place, nothing) for place, nothing in sorted(places.items(), key=lambda item: item[0])]
    for number, batch in enumerate(batches):
        yield [*batch, *(quiet if unit.hears_all and not number else [])]


def unsettled(unit: Unit, one: Evaluation, other: Evaluation) -> list[str]:
    """Steps whose results are no evidence, with all that depend on them, in topological order.

    They gave different results for the same records, or the user has declared that they depend on time or chance.
    """
    names, found = node_names(unit), set[int]()
    for number, (node, name) in enumerate(zip(unit.nodes, names, strict=True)):
        declared = [declaration_of(function.call) for function in _functions(node)]
        told = any(said.clock or said.random for said in declared if said is not None)
        differs = one.steps.get(name) != other.steps.get(name)
        if told or differs or any(edge.source in found for edge in unit.into(number)):
            found.add(number)
    return [names[number] for number in sorted(found)]


def asks_outside(unit: Unit) -> bool:
    """Whether a step would ask somebody over the network each time that a sample is evaluated."""
    calls = [function.call for node in unit.nodes for function in _functions(node)]
    return any(said.network for said in map(declaration_of, calls) if said is not None)


def _functions(node: Node) -> list[Function]:
    values = [getattr(node, field.name) for field in fields(node)]
    return [value for value in values if isinstance(value, Function)]
