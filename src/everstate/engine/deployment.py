"""Bringing a service to its newest version while the active one goes on.

The plan says what happens to each output; this carries it out. Outputs that have not changed run as they are. A
changed one is built beside its active generation, which goes on publishing: in its own process if that lives, else
here, from its archived code. When the new generation has caught up and nothing speaks against it, it takes the place
of the old one.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from everstate.engine import migration, samples, steps
from everstate.engine.build import Build
from everstate.engine.execution import Execution
from everstate.engine.guarding import check_guards
from everstate.engine.outputs import create_own_topics, prepared
from everstate.engine.planning import begins_empty
from everstate.engine.topic_marks import adopted
from everstate.generations.comparison import Comparisons
from everstate.generations.generation import Status
from everstate.plan.actions import Begin, Continue, Migrate, Nothing, Recalculate, Restore, Retire
from everstate.plan.categories import Category
from everstate.topology.errors import EverstateError, GenerationError, MigrationError
from everstate.topology.nodes import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from everstate.engine.leases import Leases
    from everstate.engine.outputs import PreparedOutput
    from everstate.engine.planning import Planned
    from everstate.engine.progress import Progress
    from everstate.engine.settings import Settings
    from everstate.engine.wishes import Wishes
    from everstate.generations.generation import Generation
    from everstate.generations.registry import Registry
    from everstate.log.protocol import Log, Vector
    from everstate.plan.actions import Action

logger = logging.getLogger(__name__)

#: Actions after which another generation is active.
_BUILT: Final = (Recalculate, Restore, Begin, Migrate)
#: Samples are looked after so long after the start, then ever less often.
_TEND_S: Final = 5.0
_TEND_MOST_S: Final = 3600.0


@dataclass
class Roster:
    """What runs at the moment: executions that publish, and generations that are being built."""

    executions: dict[str, Execution] = field(default_factory=dict)
    builds: dict[str, Build] = field(default_factory=dict)


class Deployment:
    """Carries out the plan of one service, then keeps it running.

    Args:
        planned: The plan.
        spark: Gives the session; asked only when a query is started.
        log: The log.
        registry: The service's generations.
        leases: Those of publishing and of building.
        home: The folder of the service's state.
        settings: Operational settings.
        wishes: What was asked for with this run.
        roster: What runs, for whoever shows it.
        checked: Outputs that go on as they are, and whose state has been checked already.
    """

    def __init__(  # noqa: PLR0913 - all that a deployment acts on, each by name
        self,
        planned: Planned,
        *,
        spark: Callable[[], SparkSession],
        log: Log,
        registry: Registry,
        leases: Leases,
        home: Path,
        settings: Settings,
        wishes: Wishes,
        roster: Roster,
        checked: dict[str, PreparedOutput] | None = None,
    ) -> None:
        self._planned = planned
        self._spark = spark
        self._log = log
        self._registry = registry
        self._leases = leases
        self._home = home
        self._settings = settings
        self._wishes = wishes
        self._roster = roster
        self._checked = dict(checked or {})
        self._comparisons = Comparisons(log)
        self._tend_after = _TEND_S
        self._tend_at = time.monotonic() + _TEND_S

    # -- what there is to do ------------------------------------------------------------------------------------------

    def changes(self) -> list[Action]:
        """Actions that need a generation to be built or an output to be taken away."""
        return [action for action in self._planned.plan.actions if self._needs_building(action)]

    def _needs_building(self, action: Action) -> bool:
        if isinstance(action, Begin):
            return not self._is_fresh(action)
        return isinstance(action, (*_BUILT, Continue, Retire))

    def _is_fresh(self, action: Action) -> bool:
        return begins_empty(action, self._planned.plan.service, self._log)

    # -- hosting ------------------------------------------------------------------------------------------------------

    def host(self, *, once: bool) -> list[Execution]:
        """Executions of everything that publishes now: outputs that have not changed, and first generations.

        Unless everything is only drained, the active generations of outputs that have changed belong to it as well.
        """
        found = []
        for action in self._planned.plan.actions:
            output = self._active_output(action, once=once)
            if output is not None:
                found.append(self._execution(output))
        return found

    def _active_output(self, action: Action, *, once: bool) -> PreparedOutput | None:
        if isinstance(action, Nothing):
            known = self._checked.pop(action.output, None)
            return self._own(action.output) if known is None else replace(known, generation=self._active(action.output))
        if isinstance(action, Begin) and self._is_fresh(action):
            steps.begin(self._planned, action.output, self._context())
            return self._own(action.output)
        if once:
            return None
        return self._archived(action)

    def _own(self, output: str) -> PreparedOutput:
        """The active generation with the code of this version, which means the same."""
        unit, generation = self._planned.units[output], self._active(output)
        return prepared(unit, generation, self._log, self._home, self._planned.levels[output])

    def _active(self, output: str) -> Generation:
        """The active generation; from now on it knows all its topics."""
        history = self._registry.read(output)
        if history.active is None:
            raise GenerationError(f"output {output!r} has no active generation")
        generation = adopted(history.active, self._planned.units[output], self._log)
        if generation is not history.active:
            self._registry.write(history.having(generation), [self._leases.publishing()], step="active")
        return generation

    def _archived(self, action: Action) -> PreparedOutput | None:
        """The active generation with its own code; None if it cannot be run."""
        try:
            return steps.archived(self._planned, action.output, self._context())
        except EverstateError as error:
            logger.warning("Output %s is silent until its new generation is ready: %s", action.output, error)
            return None

    def _execution(self, output: PreparedOutput) -> Execution:
        self._keep_sample(output)
        return Execution(self._spark, output, self._log, self._leases.publishing(), self._settings)

    def tend(self) -> None:
        """Now and then: samples of what runs, as its topics grow; a service may have begun with empty ones."""
        now = time.monotonic()
        if now < self._tend_at:
            return
        self._tend_after = min(2 * self._tend_after, _TEND_MOST_S)
        self._tend_at = now + self._tend_after
        for execution in list(self._roster.executions.values()):
            self._keep_sample(execution.output)

    def _keep_sample(self, output: PreparedOutput) -> None:
        try:
            samples.keep(output.folder, output.unit, output.generation, self._log)
        except EverstateError as error:
            logger.warning("No sample of output %s: %s", output.name, error)

    # -- building -----------------------------------------------------------------------------------------------------

    def begin_builds(self, actions: Sequence[Action]) -> None:
        """Begin, or go on with, the generations that these actions need."""
        for action in actions:
            if isinstance(action, _BUILT):
                try:
                    self._begin_build(action)
                except MigrationError as error:
                    self._rebuild(action.output, error)

    def _begin_build(self, action: Action) -> None:
        context, unit = self._context(), self._planned.units[action.output]
        generation = steps.plan_generation(self._planned, action, context)
        create_own_topics(unit, generation, self._log)
        migration.begin(unit, generation, context)
        output = prepared(unit, generation, self._log, self._home, self._planned.levels[action.output])
        self._keep_sample(output)
        self._roster.builds[action.output] = Build(
            self._spark,
            output,
            self._log,
            self._leases.building(),
            self._settings,
            limit=self._limit(action.output),
            effects=self._wishes.effects,
            preparation=migration.Preparation(output, context) if output.folder.migration_file.exists() else None,
        )

    def _rebuild(self, output: str, error: MigrationError) -> None:
        """The state of the active generation is of no use: discard what was made of it, and recalculate."""
        logger.warning("Output %s is recalculated, since its state cannot be migrated: %s", output, error)
        self._roster.builds.pop(output, None)
        why = f"State cannot be migrated: {error}"
        building = self._registry.read(output).building
        if building is not None:
            steps.discard(output, building.number, self._context(), why)
        self._begin_build(steps.recalculation(self._planned.plan.action(output), why))

    def _limit(self, output: str) -> Callable[[], Vector] | None:
        """How far a stream may be rebuilt: what the active generation has published stands, and not more."""
        unit = self._planned.units[output]

        def reached() -> Vector:
            last = self._log.last_commit(unit.service, output)
            # Only topics that it has read tell where it stopped.
            known = {t: ends for t, ends in last.end.items() if t in unit.topics} if last is not None else {}
            return {**known, **self._log.begin_offsets(self._published_again(output))}

        return reached if unit.output.kind is Kind.STREAM else None

    def _published_again(self, output: str) -> list[str]:
        """Topics of which nothing has been published: they were created again, or the output's topic was."""
        action = self._planned.plan.action(output)
        if isinstance(action, Recalculate) and action.again:
            return list(self._planned.units[output].topics)
        return [found.node for found in action.differences if found.category is Category.RECREATED_SOURCE]

    def step(self) -> bool:
        """Look after the builds, no more at once than there are cores; says whether all have caught up."""
        for build in list(self._roster.builds.values()):
            running = sum(other.running for other in self._roster.builds.values() if other is not build)
            try:
                build.step(room=running < self._settings.used_cores)
            except MigrationError as error:
                build.stop(time.monotonic())
                self._rebuild(build.name, error)
                continue
            if build.caught_up:
                self._mark(build, Status.READY)
        return all(build.caught_up for build in self._roster.builds.values())

    def finish_builds(self) -> None:
        """Catch up to the very end of the sources, as they are now."""
        for build in self._roster.builds.values():
            build.finish()

    def give_up(self, actions: Sequence[Action]) -> None:
        """Discard what was built for these actions; nothing builds it any more."""
        for action in actions:
            generation = self._registry.read(action.output).building
            if generation is not None:
                steps.discard(action.output, generation.number, self._context(), "the cutover was not approved")

    def _mark(self, build: Build, status: Status) -> None:
        history = self._registry.read(build.name)
        generation = history.numbered(build.output.generation.number)
        if generation is not None and generation.status is not status:
            rate = generation.rate if build.migrates else build.rate
            steps.write(self._context(), history, generation, status, rate=rate)

    # -- cutover ------------------------------------------------------------------------------------------------------

    def guard(self, actions: Sequence[Action]) -> None:
        """Stop before a cutover that would take away more than it may.

        Raises:
            ApprovalNeededError: If it has to be approved.
        """
        check_guards(actions, self._planned, self._context(), self._wishes)

    def cut_over(self, actions: Sequence[Action], progress: Progress) -> None:
        """Replace the active generations, one after the other; the lease of publishing is held."""
        for action in actions:
            self._release(action.output)
            if isinstance(action, Retire):
                steps.retire(action, self._context())
            elif isinstance(action, Continue):
                steps.carry_on(self._planned, action, self._context())
            else:
                progress.tell(self._publish(action))
            progress.update()

    def _release(self, output: str) -> None:
        """Stop the execution of the generation that is replaced."""
        execution = self._roster.executions.pop(output, None)
        if execution is not None:
            execution.announce_stop()
            execution.stop(time.monotonic() + self._settings.stop_timeout)

    def _publish(self, action: Action) -> str:
        """The cutover; says what it wrote."""
        build = self._roster.builds[action.output]
        build.finish()
        self._mark(build, Status.PUBLISHING)
        number = build.output.generation.number
        counts = steps.publish(self._planned, action, number, self._context())
        self._comparisons.forget()
        del self._roster.builds[action.output]
        written = ", ".join(f"{count:,} {name}" for name, count in counts.items())
        return f"{action.output}: generation {number} is active; keys: {written}"

    def successor(self, action: Action) -> Execution | None:
        """The execution of the generation that has become active; None if the output is gone."""
        if isinstance(action, Retire):
            return None
        return self._execution(self._own(action.output))

    @property
    def depth(self) -> int:
        """The highest level of an output."""
        return max(self._planned.levels.values())

    def level(self, action: Action) -> int:
        """Of an action's output; one that is no longer declared comes last."""
        return self._planned.levels.get(action.output, 1 + self.depth)

    def in_levels(self, actions: Sequence[Action]) -> list[list[Action]]:
        """Changes that can be built at the same time; outputs that others read come first, retired ones last."""
        found: dict[int, list[Action]] = {}
        for action in actions:
            found.setdefault(self.level(action), []).append(action)
        return [found[level] for level in sorted(found)]

    def _context(self) -> steps.Context:
        return steps.Context(
            log=self._log,
            registry=self._registry,
            leases=self._leases,
            home=self._home,
            settings=self._settings,
            comparisons=self._comparisons,
        )
