"""A preview: what has changed is recalculated in the shadow and compared with the topics.

A short past is recalculated in this process, within seconds, and what was built is given up. A long one is recalculated
on Spark, and what was built is left ready for a run: it would take as long again.

Nothing is published, and a process that runs the active version goes on undisturbed.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Unpack

from everstate.engine.commands.explanation import on_topic, outcome, with_records
from everstate.engine.signals import stopping_on_signals
from everstate.engine.spark_run import SparkRun
from everstate.formats.registry import trying
from everstate.formats.values import register
from everstate.generations.compare.difference import Difference, difference
from everstate.generations.compare.sampling import chosen, sample
from everstate.generations.deploy import transitions
from everstate.generations.deploy.approval import counts
from everstate.generations.in_process.executor import InProcessExecutor
from everstate.plan.actions import Begin, Continue, Recalculate, Retire
from everstate.plan.preview import Counts, DeadRecord, Explanation, Preview

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everstate.dsl.service import Service
    from everstate.generations.deploy.options import RunOptions
    from everstate.generations.deploy.planning import Planned
    from everstate.generations.deploy.rollout import Rollout
    from everstate.generations.deploy.site import Site
    from everstate.log.protocol import Log
    from everstate.plan.actions import Action, Plan

#: Dead letters that are shown.
_DEAD: Final = 5


def plan_service(service: Service, **given: Unpack[RunOptions]) -> Plan:
    """What happens if a service is started now; changes nothing.

    Args:
        service: The service.
        given: As for `SparkRun`.
    """
    with SparkRun(service, **given) as run:
        return run.plan().plan


def preview_service(
    service: Service, *, every: bool = False, key: str | None = None, **given: Unpack[RunOptions]
) -> Plan:
    """Recalculate what has changed without publishing it.

    What took long is left ready, and the next run cuts over to it at once.

    Args:
        service: The service.
        every: Not samples, but all differences, and their whole values.
        key: A key to be explained.
        given: As for `SparkRun`.

    Returns:
        The plan with a preview of each output that has something to be compared with; without one if it is refused.

    Raises:
        LeaseHeldError: If another process builds a new version of the service.
        KeyboardInterrupt: If it was stopped; what has been built is continued next time.
        EverstateError: If an output cannot be recalculated.
    """
    key = None if key is None else on_topic(key)
    run = SparkRun(service, **given)
    with stopping_on_signals(run.ending.stopping), run:
        site, now = run.site, run.plan().plan
        if not now.changes or now.refusals:
            return now
        site.leases.take_building()
        planned = run.plan()
        actions = [action for action in planned.plan.changes if _comparable(action, planned, site.log)]
        if _is_short(actions, run.settings.preview_records):
            with trying():
                previews = _in_process(run, planned, actions, every=every, key=key)
        else:
            # What is built here is kept, so that what it has written needs its number.
            for unit in [planned.units[action.output] for action in actions if action.output in planned.units]:
                register(unit.output.record, unit.output.format)
            with run.carrying_out(planned) as rollout:
                _prepare(rollout, actions)
            previews = tuple(_preview(action, planned, site, every=every, key=key) for action in actions)
        with trying():  # what both versions make of the past is kept nowhere
            previews = tuple(_explained(preview, planned, site, every=every) for preview in previews)
        # As the next run will find it: with the generations that have been prepared.
        return replace(run.plan().plan, previews=previews)


def _prepare(rollout: Rollout, actions: Sequence[Action]) -> None:
    if not rollout.prepare({action.output for action in actions}):
        raise KeyboardInterrupt


def _is_short(actions: Sequence[Action], most: int) -> bool:
    """Whether a preview needs no state that Spark has, and reads so little that Spark's start would take longer."""
    built = [action for action in actions if not isinstance(action, (Retire, Continue))]
    fresh = all(isinstance(action, (Begin, Recalculate)) and action.resumes is None for action in built)
    return fresh and sum(action.records for action in built) <= most


def _in_process(
    run: SparkRun, planned: Planned, actions: Sequence[Action], *, every: bool, key: str | None
) -> tuple[Preview, ...]:
    """Recalculate here and now; what was built is of no use to Spark, and goes."""
    site = run.site
    here = replace(site, executor=InProcessExecutor(site.log, site.home, site.settings))
    try:
        with run.elsewhere(here).rollout(planned, run.progress, lambda: None) as rollout:
            _prepare(rollout, actions)
        found = (_preview(action, planned, here, every=every, key=key) for action in actions)
        return tuple(replace(preview, generation=None, kept=preview.generation is None) for preview in found)
    finally:
        for action in actions:
            building = site.registry.read(action.output).building
            if building is not None:
                transitions.discard(action.output, building.number, here, "a preview that was not to be kept")


def _comparable(action: Action, planned: Planned, log: Log) -> bool:
    """Whether there is something to compare with, and all topics are there: a preview creates none."""
    if not action.publishes or action.hosts:
        return False
    unit = planned.units.get(action.output)
    topics = [action.output] if unit is None else [action.output, *unit.topics]
    return all(log.has_topic(topic) for topic in topics)


def _preview(action: Action, planned: Planned, site: Site, *, every: bool, key: str | None) -> Preview:
    if isinstance(action, Retire):
        return _retired(action, site.log, every=every, key=key)
    unit = planned.units[action.output]
    changing = {other.output for other in planned.plan.actions if other.publishes}
    generation = site.registry.read(action.output).building
    if generation is None:
        explained = None if key is None else Explanation(key=key, change="unchanged")
        return Preview(output=action.output, counts=Counts(), explained=explained)
    comparison = site.comparisons.compare(unit, generation)
    return Preview(
        output=action.output,
        generation=generation.number,
        counts=counts(comparison),
        **_samples(comparison.table, every=every),
        dead=tuple(_dead(value) for _, _, value in comparison.letters.rows("new")[:_DEAD] if value is not None),
        upstream=tuple(topic for topic in unit.topics if topic in changing),
        explained=None if key is None else outcome(key, comparison.table, comparison.present.get(action.output)),
    )


def _retired(action: Retire, log: Log, *, every: bool, key: str | None) -> Preview:
    table = log.latest(action.output).select("key", "value", "ts", "partition")
    going = table if action.keys and not action.keep_topic else table.clear()
    gone = difference(table.clear(), going)
    explained = None if key is None else outcome(key, gone, table)
    return Preview(
        output=action.output, counts=Counts(**gone.counts), **_samples(gone, every=every), explained=explained
    )


def _explained(preview: Preview, planned: Planned, site: Site, *, every: bool) -> Preview:
    """The same with the records that the key is made of, if the past is short enough to be held in memory."""
    known, most = preview.explained, site.settings.preview_records
    if known is None:
        return preview
    action = next(action for action in planned.plan.actions if action.output == preview.output)
    if action.records > most:
        unknown = f"the sources have more than {most:,} records; EVERSTATE_PREVIEW_RECORDS raises the limit"
        return replace(preview, explained=replace(known, unknown=unknown))
    return replace(preview, explained=with_records(known, preview.output, planned, site, every=every))


def _samples(found: Difference, *, every: bool) -> dict[str, Any]:
    if every:
        return {kind: tuple(sample(row, longest=None) for row in found.rows(kind)) for kind in found.parts}
    return {kind: tuple(map(sample, chosen(found.rows(kind)))) for kind in found.parts}


def _dead(letter: bytes) -> DeadRecord:
    known = json.loads(letter)
    return DeadRecord(known["topic"], known["partition"], known["offset"], known["reason"])
