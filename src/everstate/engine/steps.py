"""The steps of a generation's life, each written to the registry before it is acted on."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from everstate.engine import migration
from everstate.engine.code import archive, restored
from everstate.engine.outputs import PreparedOutput, generation_folder, prepared, write_identity
from everstate.engine.past import beginning
from everstate.engine.topic_marks import output_marks, require_same_topics, topic_marks
from everstate.generations import cutover
from everstate.generations.generation import Generation, History, Status, own_dead_letters, own_topic
from everstate.generations.registry import event, now_ms
from everstate.log.crash import crash_point
from everstate.plan.actions import Begin, Estimate, Migrate, Recalculate, Restore
from everstate.plan.categories import Category
from everstate.topology.errors import GenerationError

if TYPE_CHECKING:
    from pathlib import Path

    from everstate.engine.leases import Leases
    from everstate.engine.planning import Planned
    from everstate.engine.settings import Settings
    from everstate.generations.comparison import Comparisons
    from everstate.generations.registry import Registry
    from everstate.log.protocol import Lease, Log
    from everstate.plan.actions import Action, Retire


@dataclass(frozen=True, kw_only=True)
class Context:
    """What a step acts on."""

    log: Log
    registry: Registry
    leases: Leases
    home: Path
    settings: Settings
    comparisons: Comparisons


def write(
    context: Context, history: History, generation: Generation, status: Status, why: str = "", **changes: object
) -> History:
    """Record that a generation has got to a status."""
    moved = generation.to(status, now_ms=now_ms(), **changes)
    after = history.having(moved, event(moved, why))
    context.registry.write(after, [context.leases.building()], step=str(status))
    return after


def begin(planned: Planned, output: str, context: Context) -> None:
    """The first generation of an output that has never published: active from its first batch on."""
    history = context.registry.read(output)
    action = planned.plan.action(output)
    generation = _new(planned, action, history, context)
    active = generation.to(Status.ACTIVE, now_ms=now_ms(), open_from=0, was_active=True)
    context.registry.write(
        history.having(active, event(active, "first deployment")), [context.leases.publishing()], step="active"
    )


def plan_generation(planned: Planned, action: Action, context: Context) -> Generation:
    """The generation that an action builds: a new one, one that is half built, or one that was active before."""
    history = context.registry.read(action.output)
    if action.discards is not None:
        history = discard(action.output, action.discards, context)
    number = _goes_on_with(action)
    migrates = isinstance(action, Migrate)
    if number is not None:
        generation = history.numbered(number)
        if generation is None:
            raise GenerationError(f"output {action.output!r} has no generation {number}")
        marks = output_marks(generation, planned.units[action.output], context.log)
        return _stored(write(context, history, generation, Status.RECALCULATING, **marks), number)
    generation = _new(planned, action, history, context, migrates=migrates)
    why = causes(action)
    context.registry.write(
        history.having(generation, event(generation, f"{why} {_instead(action)}".strip())),
        [context.leases.building()],
        step="planned",
    )
    history = write(context, context.registry.read(action.output), generation, Status.RECALCULATING)
    return _stored(history, generation.number)


def causes(action: Action) -> str:
    """Why it is done, for the audit record: what the fingerprint missed is named as such."""
    return "; ".join(
        f"{found.category}: {found.cause}" if found.category is Category.MISSED else found.cause
        for found in action.differences
    )


def _goes_on_with(action: Action) -> int | None:
    if isinstance(action, Restore):
        return action.generation
    return action.resumes if isinstance(action, (Begin, Recalculate, Migrate)) else None


def _instead(action: Action) -> str:
    return action.instead if isinstance(action, Recalculate) else ""


def recalculation(action: Action, why: str) -> Recalculate:
    """What is done in the place of a migration that cannot be."""
    return Recalculate(
        output=action.output,
        fingerprint=action.fingerprint,
        active=action.active,
        differences=action.differences,
        sources=action.sources,
        ordered=action.ordered,
        estimate=Estimate(action.records),
        instead=why,
    )


def _archived_code(planned: Planned, generation: Generation, context: Context, output: str) -> str:
    return archive(generation_folder(context.home, output, generation), planned.units[output])


def _stored(history: History, number: int) -> Generation:
    generation = history.numbered(number)
    if generation is None:
        raise GenerationError(f"output {history.output!r} has no generation {number}")
    return generation


def _new(planned: Planned, action: Action, history: History, context: Context, *, migrates: bool = False) -> Generation:
    output = action.output
    unit, described = planned.units[output], planned.prints[output]
    active = history.active
    kept = active.shards if active is not None else context.settings.first_shards
    now = now_ms()
    initial, missing = beginning(context.log, unit.service, context.home, described, unit.topics)
    rate = 0.0
    if migrates and active is not None:
        initial, missing, rate = active.initial, active.missing, active.rate
    generation = Generation(
        number=history.next_number,
        status=Status.PLANNED,
        fingerprint=described.fingerprint,
        description=described.to_json(),
        shards=context.settings.shards or kept,
        initial=initial,
        missing=missing,
        code="",
        policy=planned.policy,
        rate=rate,
        missed=next((found.node for found in action.differences if found.category is Category.MISSED), ""),
        **topic_marks(unit, context.log),
        created_ms=now,
        changed_ms=now,
    )
    folder = generation_folder(context.home, output, generation)
    if folder.path.exists():
        # A process died after it had made the folder and before the registry knew of the generation.
        shutil.rmtree(folder.path)
    write_identity(folder, generation)
    if migrates and active is not None:
        migration.note(context, output, generation, active)
    return replace(generation, code=archive(folder, unit))


def archived(planned: Planned, output: str, context: Context) -> PreparedOutput | None:
    """The active generation of an output with the code that it was deployed with."""
    generation = context.registry.read(output).active
    if generation is None:
        return None
    unit = restored(generation_folder(context.home, output, generation), generation)
    require_same_topics(generation, (*unit.topics, output), context.log)
    return prepared(unit, generation, context.log, context.home, planned.levels.get(output, 0))


def publish(planned: Planned, action: Action, number: int, context: Context) -> dict[str, int]:
    """The cutover of a generation that has caught up; then what is kept too long goes.

    Returns:
        How many keys were new, changed, stale and unchanged.
    """
    history = context.registry.read(action.output)
    why = causes(action) or "asked for"
    if isinstance(action, Restore) and action.asked:
        why = f"rolled back: {why}"
    _, comparison = cutover.publish(
        context.comparisons,
        context.log,
        planned.units[action.output],
        history,
        _stored(history, number),
        leases=both(context),
        why=why,
    )
    tidy(action.output, context)
    return comparison.table.counts


def both(context: Context) -> tuple[Lease, ...]:
    """The leases that a cutover needs."""
    return (context.leases.publishing(), context.leases.building())


def carry_on(planned: Planned, action: Action, context: Context) -> None:
    """The active generation goes on with new code on the state that it has."""
    history = context.registry.read(action.output)
    active = history.active
    if active is None:
        raise GenerationError(f"output {action.output!r} has no active generation")
    described = planned.prints[action.output]
    changed = replace(
        active,
        fingerprint=described.fingerprint,
        description=described.to_json(),
        policy=planned.policy,
        code=_archived_code(planned, active, context, action.output),
        changed_ms=now_ms(),
    )
    write_identity(generation_folder(context.home, action.output, changed), changed)
    why = causes(action)
    context.registry.write(history.having(changed, event(changed, f"continued: {why}")), both(context), step="active")


def retire(action: Retire, context: Context) -> None:
    """An output that is no longer declared: its keys get tombstones, unless the topic is to stay as it is."""
    history = context.registry.read(action.output)
    if action.discards is not None:
        history = discard(action.output, action.discards, context)
    if history.active is not None:
        cutover.retire(
            context.log, context.registry.service, history, leases=both(context), keep_topic=action.keep_topic
        )
    tidy(action.output, context)


def discard(output: str, number: int, context: Context, why: str = "") -> History:
    """Give a generation up that is being built: first the registry, then its state.

    One that was active before is retired again, and keeps its state.
    """
    history = context.registry.read(output)
    generation = history.numbered(number)
    if generation is None:
        return history
    if generation.was_active:
        return write(context, history, generation, Status.RETIRED, why)
    write(context, history, generation, Status.DISCARDED, why)
    tidy(output, context)
    return context.registry.read(output)


def tidy(output: str, context: Context) -> None:
    """Delete the state of generations that nobody needs: discarded ones, and more retired ones than are kept."""
    history = context.registry.read(output)
    for generation in history.retired[context.settings.retain_generations :]:
        history = write(context, history, generation, Status.DISCARDED)
    for generation in history.generations:
        if generation.status is Status.DISCARDED:
            _delete(output, generation, context)
            history = history.without(generation.number)
            context.registry.write(history, [context.leases.building()], step="forgotten")


def _delete(output: str, generation: Generation, context: Context) -> None:
    """In an order that can be repeated."""
    service = context.registry.service
    for topic in (own_topic(service, output, generation), own_dead_letters(service, output, generation)):
        if context.log.has_topic(topic):
            context.log.delete_topic(topic)
    crash_point("generation.delete.topics_gone")
    shutil.rmtree(generation_folder(context.home, output, generation).path, ignore_errors=True)
    crash_point("generation.delete.state_gone")
