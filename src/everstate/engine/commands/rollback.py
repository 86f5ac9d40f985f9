"""Going back to a generation that is still kept: without a replay, and without the file that it was deployed from.

Its archived code catches up from its own checkpoint, closed, and takes over like any other version.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Unpack

from everstate.engine.signals import stopping_on_signals
from everstate.engine.spark_run import SparkRun
from everstate.errors import ConfigurationError, GenerationError, LeaseHeldError, StateError
from everstate.fingerprints import print_unit
from everstate.fingerprints.noted import Notes
from everstate.fingerprints.prints import UnitPrint
from everstate.generations.deploy import transitions
from everstate.generations.deploy.outputs import levels
from everstate.generations.deploy.planning import Planned, resumable_unit
from everstate.generations.generation import BUILDING, Status
from everstate.log import vectors
from everstate.plan.actions import Estimate, Plan, Reading, Restore
from everstate.plan.differences import differences
from everstate.plan.explaining import explained

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everstate.dsl.service import Service
    from everstate.generations.deploy.options import RunOptions
    from everstate.generations.deploy.run import Run
    from everstate.generations.deploy.site import Site
    from everstate.generations.generation import Generation, OutputGenerations
    from everstate.plan.differences import Difference
    from everstate.topology.unit import Unit


@dataclass(frozen=True, kw_only=True)
class Restored:
    """An output that has gone back.

    Attributes:
        output: The output's topic.
        generation: Number of the generation that is active now.
        replaced: Number of the one that was.
        counts: What was written: keys that were new, changed and stale; and those left alone.
        in_file: The service's file holds this version, so the next run continues with it.
    """

    output: str
    generation: int
    replaced: int | None
    counts: dict[str, int] = field(default_factory=dict)
    in_file: bool = False


def plan_rollback(
    service: Service, outputs: Sequence[str] = (), *, to: int | None = None, **given: Unpack[RunOptions]
) -> Plan:
    """What a rollback would do; changes nothing.

    Args:
        service: The service.
        outputs: Which outputs; may be left out if only one has something to go back to.
        to: Number of the generation; by default the one that was active last.
        given: As for `SparkRun`.

    Raises:
        GenerationError: If there is no generation to go back to, or its state is gone.
        ConfigurationError: If it is not clear which output is meant.
    """
    with SparkRun(service, **given) as run:
        return _plan(run, outputs, to).plan


def roll_back(
    service: Service, outputs: Sequence[str] = (), *, to: int | None = None, **given: Unpack[RunOptions]
) -> list[Restored]:
    """Go back to a retained generation, and end when it is the active one. A process that publishes is replaced.

    Args:
        service: The service; its outputs need not be those of the generation.
        outputs: As for `plan_rollback`.
        to: As for `plan_rollback`.
        given: As for `SparkRun`.

    Raises:
        GenerationError: As for `plan_rollback`.
        ApprovalNeededError: If it would remove much.
        KeyboardInterrupt: If it was stopped before the cutover.
    """
    run = SparkRun(service, **given)
    with stopping_on_signals(run.ending.stopping), run:
        _plan(run, outputs, to)  # before anyone is replaced
        _take_building(run.site)
        planned = _plan(run, outputs, to)
        with run.carrying_out(planned, runs=False) as rollout:
            if not rollout.replace():
                raise KeyboardInterrupt
        return [_restored(run, action) for action in planned.plan.actions if isinstance(action, Restore)]


def _plan(run: Run, outputs: Sequence[str], to: int | None) -> Planned:
    site = run.site
    generations = site.registry.generations()
    targets = {output: _target(generations[output], to) for output in _chosen(generations, outputs, to)}
    units = {output: _unit(output, generation, site) for output, generation in targets.items()}
    order = levels(list(units.values()))
    actions = tuple(_action(generations[output], targets[output], units[output], site) for output in order)
    return Planned(
        plan=Plan(run.service.name, actions, run.wishes.options(None)),
        units={output: units[output] for output in order},
        prints={output: UnitPrint.from_json(targets[output].description) for output in order},
        generations=generations,
        policy=run.service.on_error,
    )


def _chosen(generations: dict[str, OutputGenerations], outputs: Sequence[str], to: int | None) -> list[str]:
    possible = sorted(output for output, versions in generations.items() if _kept(versions))
    for output in outputs:
        if output not in generations:
            raise GenerationError(
                f"there is no output {output!r}", hint=f"There are: {', '.join(generations) or 'none'}."
            )
        if output not in possible:
            raise GenerationError(
                f"output {output!r} has no generation to go back to",
                hint="Run the earlier version of the file: it is recalculated. EVERSTATE_RETAIN_GENERATIONS says how "
                "many generations keep their state.",
            )
    chosen = list(outputs) or possible
    if not chosen:
        raise GenerationError(
            "no output has a generation to go back to", hint="Run the earlier version of the file: it is recalculated."
        )
    if len(chosen) > 1 and (not outputs or to is not None):
        which = "one of them" if to is not None else "the ones you want"
        raise ConfigurationError(f"several outputs can go back: {', '.join(chosen)}", hint=f"Name {which}.")
    return chosen


def _kept(versions: OutputGenerations) -> list[Generation]:
    """What an output can go back to, the youngest first; a rollback that was interrupted comes before all."""
    if versions.active is None:
        return []  # it is no longer declared: only a version that declares it again brings it back
    building = [g for g in versions.generations if g.status in BUILDING and g.was_active]
    return [*building, *versions.retired]


def _target(versions: OutputGenerations, to: int | None) -> Generation:
    kept = _kept(versions)
    found = kept[0] if to is None else next((generation for generation in kept if generation.number == to), None)
    if found is None:
        numbers = ", ".join(str(generation.number) for generation in kept)
        raise GenerationError(
            f"output {versions.output!r} cannot go back to generation {to}", hint=f"It can go back to: {numbers}."
        )
    return found


def _unit(output: str, generation: Generation, site: Site) -> Unit:
    try:
        return resumable_unit(output, generation, site)
    except StateError as error:
        raise GenerationError(
            f"output {output!r} cannot go back to generation {generation.number}: {error.message}",
            hint="Run the earlier version of the file: it is recalculated from its sources.",
        ) from error


def _action(versions: OutputGenerations, target: Generation, unit: Unit, site: Site) -> Restore:
    active, building = versions.active, versions.building
    last = site.log.last_commit(unit.service, versions.output, target.name)
    stands = last.end if last is not None else target.initial
    starts, ends = site.log.begin_offsets(unit.topics), site.log.end_offsets(unit.topics)
    sources = tuple(
        Reading(
            topic,
            records=vectors.lag({topic: stands.get(topic, {})}, {topic: ends[topic]}),
            start=starts[topic],
            end=ends[topic],
        )
        for topic in unit.topics
    )
    return Restore(
        output=versions.output,
        fingerprint=target.fingerprint,
        active=active.number if active is not None else None,
        differences=_differences(active, target, versions.output, site),
        sources=sources,
        discards=building.number if building is not None and building.number != target.number else None,
        generation=target.number,
        estimate=Estimate(sum(source.records for source in sources), target.rate or None),
        asked=True,
    )


def _differences(active: Generation | None, target: Generation, output: str, site: Site) -> tuple[Difference, ...]:
    """What the way back changes, in the user's own text, which both generations have kept."""
    after = UnitPrint.from_json(target.description)
    if active is None:
        return differences(None, after)
    before = UnitPrint.from_json(active.description)
    kept = [site.folder(output, generation).read_sources() for generation in (active, target)]
    was, now = (None if known is None else Notes.from_document(known) for known in kept)
    return explained(differences(before, after), (before, after), (was, now))


def _take_building(site: Site) -> None:
    """A version that is being deployed is given up, as when another one is deployed."""
    try:
        site.leases.take_building()
    except LeaseHeldError:
        if site.leases.take_building_over():
            # The process that was replaced may wake up: nobody continues from the checkpoint that it writes to.
            for output, versions in site.registry.generations().items():
                if versions.building is not None:
                    transitions.discard(output, versions.building.number, site, "another process is rolling back")


def _restored(run: Run, action: Restore) -> Restored:
    versions = run.site.registry.read(action.output)
    events = [e for e in versions.audit if e.generation == action.generation and e.what == Status.ACTIVE]
    service = run.service
    fingerprints = {
        unit.output.topic: print_unit(unit, policy=service.on_error, settings=service.configuration).fingerprint
        for unit in service.units()
    }
    return Restored(
        output=action.output,
        generation=action.generation,
        replaced=action.active,
        counts=events[-1].counts if events else {},
        in_file=fingerprints.get(action.output) == action.fingerprint,
    )
