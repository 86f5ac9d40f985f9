"""The transitions of a generation's life, each written to the registry before it is acted on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from everstate.errors import GenerationError
from everstate.generations.deploy import cutover, migration
from everstate.generations.deploy.outputs import PreparedOutput, prepared, write_identity
from everstate.generations.generation import Generation, OutputGenerations, Status, own_topics
from everstate.generations.registry import event, now_ms
from everstate.generations.state.past import beginning
from everstate.generations.state.topic_marks import output_marks, require_same_topics, topic_marks
from everstate.log.crash import crash_point
from everstate.plan.actions import Estimate, Recalculate, Restore
from everstate.plan.categories import Category
from everstate.plan.steps import Convert

if TYPE_CHECKING:
    from everstate.generations.deploy.planning import Planned
    from everstate.generations.deploy.site import Site
    from everstate.log.descriptions import Lease
    from everstate.plan.actions import Action
    from everstate.plan.steps import Preparation


def write(
    site: Site, versions: OutputGenerations, generation: Generation, status: Status, why: str = "", **changes: object
) -> OutputGenerations:
    """Record that a generation has got to a status."""
    moved = generation.to(status, now_ms=now_ms(), **changes)
    after = versions.having(moved, event(moved, why))
    site.registry.write(after, [site.leases.building()], step=str(status))
    return after


def begin(planned: Planned, output: str, site: Site) -> None:
    """The first generation of an output that has never published: active from its first batch on."""
    versions = site.registry.read(output)
    generation = _new(planned, planned.plan.action(output), versions, site)
    site.registry.write(versions.having(generation), both(site), step="planned")
    code = _made(planned, output, generation, site)
    active = generation.to(Status.ACTIVE, now_ms=now_ms(), was_active=True, code=code)
    site.registry.write(versions.having(active, event(active, "first deployment")), both(site), step="active")


def plan_generation(planned: Planned, action: Action, step: Preparation, site: Site) -> Generation:
    """The generation that a step prepares: a new one, one that is half built, or one that was active before."""
    versions = site.registry.read(action.output)
    number, migrates = step.resumes, isinstance(step, Convert)
    if number is not None:
        generation = versions.numbered(number)
        if generation is None:
            raise GenerationError(f"output {action.output!r} has no generation {number}")
        marks = output_marks(generation, planned.units[action.output], site.log)
        return _stored(write(site, versions, generation, Status.RECALCULATING, **marks), number)
    generation = _new(planned, action, versions, site, migrates=migrates)
    why = causes(action)
    site.registry.write(
        versions.having(generation, event(generation, f"{why} {_instead(action)}".strip())),
        [site.leases.building()],
        step="planned",
    )
    code = _made(planned, action.output, generation, site, of=versions.active if migrates else None)
    versions = write(site, site.registry.read(action.output), generation, Status.RECALCULATING, code=code)
    return _stored(versions, generation.number)


def causes(action: Action) -> str:
    """Why it is done, for the audit record: what the fingerprint missed is named as such."""
    return " ".join(
        f"{found.category}: {found.cause}" if found.category is Category.MISSED else found.cause
        for found in action.differences
    )


def _instead(action: Action) -> str:
    return action.instead if isinstance(action, Recalculate) else ""


def recalculation(action: Action, why: str, *, stream: bool) -> Recalculate:
    """What is done in the place of a migration that cannot be."""
    return Recalculate(
        output=action.output,
        fingerprint=action.fingerprint,
        active=action.active,
        differences=action.differences,
        sources=action.sources,
        ordered=action.ordered,
        estimate=Estimate(action.records),
        stream=stream,
        instead=why,
    )


def _archived_code(planned: Planned, generation: Generation, site: Site, output: str) -> str:
    return site.executor.archive(output, generation, planned.units[output])


def _stored(versions: OutputGenerations, number: int) -> Generation:
    generation = versions.numbered(number)
    if generation is None:
        raise GenerationError(f"output {versions.output!r} has no generation {number}")
    return generation


def _new(
    planned: Planned, action: Action, versions: OutputGenerations, site: Site, *, migrates: bool = False
) -> Generation:
    output = action.output
    unit, described = planned.units[output], planned.prints[output]
    active = versions.active
    now = now_ms()
    initial, missing = beginning(site.log, unit.service, site.home, described, unit.topics)
    rate = 0.0
    if migrates and active is not None:
        initial, missing, rate = active.initial, active.missing, active.rate
    return Generation(
        number=versions.next_number,
        status=Status.PLANNED,
        fingerprint=described.fingerprint,
        description=described.to_json(),
        shards=site.settings.shards or (active.shards if active is not None else site.executor.cores()),
        initial=initial,
        missing=missing,
        code="",
        policy=planned.policy,
        rate=rate,
        missed=next((found.node for found in action.differences if found.category is Category.MISSED), ""),
        **topic_marks(unit, site.log),
        created_ms=now,
        changed_ms=now,
    )


def _made(planned: Planned, output: str, generation: Generation, site: Site, *, of: Generation | None = None) -> str:
    """Make the folder of a generation that the registry knows: what is in one of a number that it does not know may go.

    Args:
        planned: The plan.
        output: Whose generation it is.
        generation: Which.
        site: Where.
        of: The one whose state it begins with; None if it begins with none.

    Returns:
        The digest of its code.
    """
    folder = site.folder(output, generation)
    if folder.exists():
        folder.delete()  # the registry may be older than the state, after it was restored from a copy
    write_identity(folder, generation)
    folder.write_sources(planned.notes(output).to_document())
    if of is not None:
        migration.note(site, output, generation, of)
    return _archived_code(planned, generation, site, output)


def archived(output: str, site: Site) -> PreparedOutput | None:
    """The active generation of an output with the code that it was deployed with."""
    generation = site.registry.read(output).active
    if generation is None:
        return None
    unit = site.code(output, generation)
    require_same_topics(generation, (*unit.topics, output), site.log)
    return prepared(unit, generation, site)


def publish(planned: Planned, action: Action, number: int, site: Site) -> dict[str, int]:
    """The cutover of a generation that has caught up; then what is kept too long goes.

    Returns:
        How many keys were new, changed, stale and unchanged.
    """
    versions = site.registry.read(action.output)
    why = causes(action) or "requested"
    if isinstance(action, Restore) and action.asked:
        why = f"rolled back: {why}"
    _, comparison = cutover.publish(
        site.comparisons,
        site.log,
        planned.units[action.output],
        versions,
        _stored(versions, number),
        leases=both(site),
        why=why,
    )
    tidy(action.output, site)
    return comparison.table.counts


def both(site: Site) -> tuple[Lease, ...]:
    """The leases that a cutover needs."""
    return (site.leases.publishing(), site.leases.building())


def carry_on(planned: Planned, action: Action, site: Site) -> None:
    """The active generation goes on with new code on the state that it has."""
    versions = site.registry.read(action.output)
    active = versions.active
    if active is None:
        raise GenerationError(f"output {action.output!r} has no active generation")
    described = planned.prints[action.output]
    changed = replace(
        active,
        fingerprint=described.fingerprint,
        description=described.to_json(),
        policy=planned.policy,
        code=_archived_code(planned, active, site, action.output),
        changed_ms=now_ms(),
    )
    write_identity(site.folder(action.output, changed), changed)
    site.folder(action.output, changed).write_sources(planned.notes(action.output).to_document())
    why = causes(action)
    site.registry.write(versions.having(changed, event(changed, f"continued: {why}")), both(site), step="active")


def retire(output: str, site: Site, *, keep_topic: bool) -> None:
    """An output that is no longer declared: its keys get tombstones, unless the topic is to stay as it is."""
    versions = site.registry.read(output)
    cutover.retire(site.log, site.registry.service, versions, leases=both(site), keep_topic=keep_topic)
    tidy(output, site)


def discard(output: str, number: int, site: Site, why: str = "") -> OutputGenerations:
    """Give a generation up that is being built: first the registry, then its state.

    One that was active before is retired again, and keeps its state.
    """
    versions = site.registry.read(output)
    generation = versions.numbered(number)
    if generation is None:
        return versions
    if generation.was_active:
        return write(site, versions, generation, Status.RETIRED, why)
    write(site, versions, generation, Status.DISCARDED, why)
    tidy(output, site)
    return site.registry.read(output)


def tidy(output: str, site: Site) -> None:
    """Delete the state of generations that nobody needs: discarded ones, and more retired ones than are kept."""
    versions = site.registry.read(output)
    for generation in versions.retired[site.settings.retain_generations :]:
        versions = write(site, versions, generation, Status.DISCARDED)
    for generation in versions.generations:
        if generation.status is Status.DISCARDED:
            _delete(output, generation, site)
            versions = versions.without(generation.number)
            site.registry.write(versions, [site.leases.building()], step="forgotten")
    _sweep(output, site)


def _sweep(output: str, site: Site) -> None:
    """Delete what is there of generations that no longer exist, and topics whose content has been published.

    A process that was replaced wakes up with what it was about to do: it writes a batch into a folder that is gone by
    then, or makes topics again. Numbers are not used twice, so nobody else can be at work on any of it. A cutover drops
    the topics of the generation that it makes the active one; not every log can do that in the same step.

    The registry is read after the topics, and a topic goes only if it is still the one that was there before: this may
    itself be such a process, and the active generation a retired one by now, with a topic of its own again.
    """
    own = own_topics(site.registry.service, output, site.log.topics(internal=True))
    ids = site.log.topic_ids(list(own))
    versions = site.registry.read(output)
    gone = versions.forgotten
    site.executor.sweep(output, gone)
    published = None if versions.active is None else versions.active.number
    # While a cutover is under way, the active generation's topic may be the copy that it will keep.
    settled = not any(generation.status is Status.PUBLISHING for generation in versions.generations)
    for topic, number in own.items():
        if number in gone or (number == published and settled):
            site.log.delete_topic(topic, only=ids[topic])


def _delete(output: str, generation: Generation, site: Site) -> None:
    """In an order that can be repeated."""
    own = own_topics(site.registry.service, output, site.log.topics(internal=True))
    for topic in (topic for topic, number in own.items() if number == generation.number):
        site.log.delete_topic(topic)
    crash_point("generation.delete.topics_gone")
    site.folder(output, generation).delete()
    crash_point("generation.delete.state_gone")
