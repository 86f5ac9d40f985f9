"""The cutover: compare a generation's table with its topic, and publish the difference in one step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.errors import DeploymentError
from everstate.fingerprints.prints import UnitPrint
from everstate.generations.compare.difference import difference
from everstate.generations.generation import (
    Generation,
    OutputGenerations,
    Status,
    own_dead_letters,
    own_of,
    own_side,
    own_topic,
)
from everstate.generations.registry import document, event, now_ms, to_json
from everstate.kernels.output import RECORD, places, with_headers
from everstate.log.crash import crash_point
from everstate.log.descriptions import Batch, Commit, Copy, Cutover
from everstate.schema.topic_names import dead_letter_topic
from everstate.topology.nodes import Kind, Side

if TYPE_CHECKING:
    from everstate.generations.compare.comparison import Comparison, Comparisons
    from everstate.generations.compare.difference import Difference
    from everstate.log.descriptions import Lease, Staged
    from everstate.log.protocol import Log
    from everstate.topology.unit import Unit

_NOTHING: Final = pl.DataFrame(schema={**RECORD, "partition": pl.Int32()})
#: How often a cutover is tried on a topic that others write to as well.
_TRIES: Final = 100


def publish(
    comparisons: Comparisons,
    log: Log,
    unit: Unit,
    versions: OutputGenerations,
    generation: Generation,
    *,
    leases: tuple[Lease, ...],
    why: str,
) -> tuple[OutputGenerations, Comparison]:
    """Make a generation the active one: both leases are held, its query has stopped, and it has caught up.

    Returns:
        The output's generations after it, and what was published.
    """
    for _ in range(_TRIES):
        comparison = comparisons.compare(unit, generation)
        after = successor(versions, generation, comparison, why)
        staged = _staged(log, unit, generation, comparison)
        crash_point("cutover.staged")
        service, output = unit.service, unit.output.topic
        request = Cutover(
            commit=_closing(log, service, output, generation, leases[0], staged),
            leases=leases,
            expected=comparison.ends,
            documents={document(output): to_json(after)},
            copies=_copies(log, unit, versions.active, comparison),
            drops=own_of(unit, generation),
        )
        if log.cutover(request, staged) is not None:
            return after, comparison
    raise _restless(unit.output.topic)


def retire(log: Log, service: str, versions: OutputGenerations, *, leases: tuple[Lease, ...], keep_topic: bool) -> None:
    """End an output that is no longer declared; unless its topic is to stay as it is, every key gets a tombstone.

    What a stream has published stands.
    """
    active, output = versions.active, versions.output
    if active is None:
        return
    for _ in range(_TRIES):
        gone = active.to(Status.RETIRED, now_ms=now_ms(), was_active=True)
        present = log.has_topic(output)  # somebody may have deleted it together with the code
        ends = log.end_offsets([output] if present else [])
        removes = present and not keep_topic and UnitPrint.from_json(active.description).kind == "table"
        there = _latest(log, output) if removes else _NOTHING
        left = difference(_NOTHING, there)
        staged = _tombstones(log, service, output, active, left) if left.stale else []
        crash_point("cutover.staged")
        after = versions.having(gone, event(gone, "no longer declared", left.counts))
        commit = _closing(log, service, output, active, leases[0], staged)
        copies = {own_topic(service, output, active): Copy(output, there)} if removes else {}
        request = Cutover(
            commit=commit, leases=leases, expected=ends, documents={document(output): to_json(after)}, copies=copies
        )
        if log.cutover(request, staged) is not None:
            return
    raise _restless(output)


def _tombstones(log: Log, service: str, output: str, generation: Generation, left: Difference) -> list[Staged]:
    return log.stage_all(output, with_headers(left.records, service, generation.name))


def _closing(log: Log, service: str, output: str, generation: Generation, lease: Lease, staged: list[Staged]) -> Commit:
    """The commit of a cutover: the last batch of the generation that it belongs to."""
    last = log.last_commit(service, output, generation.name)
    return Commit.of(
        last.batch if last else Batch("", -1, generation.initial, generation.initial),
        staged,
        lease,
        service=service,
        output=output,
        generation=generation.name,
        kind="cutover",
        ordered=last.ordered if last else True,
    )


def _restless(output: str) -> DeploymentError:
    return DeploymentError(
        f"topic {output!r} keeps changing: another process is writing to it",
        hint="Stop whatever else writes to the topic, then run again.",
    )


def successor(
    versions: OutputGenerations, generation: Generation, comparison: Comparison, why: str
) -> OutputGenerations:
    """The output's generations after the cutover."""
    now = now_ms()
    active = versions.active
    if active is not None:
        retired = active.to(Status.RETIRED, now_ms=now, was_active=True)
        versions = versions.having(retired, event(retired, f"replaced by generation {generation.number}"))
    risen = generation.to(Status.ACTIVE, now_ms=now, was_active=True)
    counts = {**comparison.table.counts, "dead_letters": comparison.letters.new}
    return versions.having(risen, event(risen, why, counts))


def _copies(log: Log, unit: Unit, active: Generation | None, comparison: Comparison) -> dict[str, Copy]:
    """What the generation that is replaced keeps: its table is what is on the topic now."""
    if active is None:
        return {}
    output, letters = unit.output.topic, dead_letter_topic(unit.output.topic)
    copies = {}
    if unit.output.kind is Kind.TABLE:
        copies[own_topic(unit.service, output, active)] = Copy(output, comparison.present[output])
    if letters in comparison.ends:
        copies[own_dead_letters(unit.service, output, active)] = Copy(letters, comparison.present[letters])
    # The new version may not have the further topics of this one; nobody writes to them, since both leases are held.
    for topic, kind in UnitPrint.from_json(active.description).sides.items():
        own = own_side(unit.service, output, active, Side(topic, Kind(kind)))
        if own and log.has_topic(topic):
            copies[own] = Copy(topic, comparison.present[topic] if topic in comparison.present else _latest(log, topic))
    return copies


def _staged(log: Log, unit: Unit, generation: Generation, comparison: Comparison) -> list[Staged]:
    staged: list[Staged] = []
    output = unit.output.topic
    found = {output: comparison.table, dead_letter_topic(output): comparison.letters, **comparison.sides}
    for topic, records in ((topic, found.records) for topic, found in found.items()):
        if records.height:
            partitions = log.describe(topic).config.partitions
            windows = unit.output.windows if topic == output else None
            addressed = records.with_columns(pl.coalesce("partition", places(records["key"], partitions, windows)))
            staged += log.stage_all(topic, with_headers(addressed, unit.service, generation.name))
    return staged


def _latest(log: Log, topic: str) -> pl.DataFrame:
    return log.latest(topic).select("key", "value", "ts", "partition") if log.has_topic(topic) else _NOTHING
