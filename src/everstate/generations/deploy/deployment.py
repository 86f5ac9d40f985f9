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

from everstate.errors import EverstateError, GenerationError, MigrationError
from everstate.generations.deploy import migration, steps
from everstate.generations.deploy.approval import check_guards
from everstate.generations.deploy.build import Build
from everstate.generations.deploy.outputs import create_own_topics, prepared
from everstate.generations.deploy.planning import begins_empty
from everstate.generations.generation import Status
from everstate.generations.state import samples
from everstate.generations.state.topic_marks import adopted
from everstate.plan.actions import Begin, Continue, Keep, Migrate, Recalculate, Restore, Retire
from everstate.plan.categories import Category
from everstate.topology.nodes import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from everstate.generations.deploy.display import Display
    from everstate.generations.deploy.executor import Execution
    from everstate.generations.deploy.options import Wishes
    from everstate.generations.deploy.outputs import PreparedOutput
    from everstate.generations.deploy.planning import Planned
    from everstate.generations.deploy.site import Site
    from everstate.generations.generation import Generation
    from everstate.log.descriptions import Vector
    from everstate.plan.actions import Action

logger = logging.getLogger(__name__)

#: Actions after which another generation is active.
_BUILT: Final = (Recalculate, Restore, Begin, Migrate)
#: Samples are looked after so long after the start, then ever less often.
_TEND_S: Final = 5.0
_TEND_MOST_S: Final = 3600.0


@dataclass
class Roster:
    """What runs at the moment: executions that publish, and generations that are being built.

    Attributes:
        rebuilt: By output, why it is recalculated although its state was to be migrated.
    """

    executions: dict[str, Execution] = field(default_factory=dict)
    builds: dict[str, Build] = field(default_factory=dict)
    rebuilt: dict[str, str] = field(default_factory=dict)


class Deployment:
    """Carries out the plan of one service, then keeps it running.

    Args:
        planned: The plan.
        site: Where.
        wishes: What was asked for with this run.
        roster: What runs, for whoever shows it.
        checked: Outputs that go on as they are, and whose state has been checked already.
    """

    def __init__(
        self,
        planned: Planned,
        site: Site,
        *,
        wishes: Wishes,
        roster: Roster,
        checked: dict[str, PreparedOutput] | None = None,
    ) -> None:
        self._planned = planned
        self._site = site
        self._log = site.log
        self._registry = site.registry
        self._leases = site.leases
        self._settings = site.settings
        self._wishes = wishes
        self._roster = roster
        self._checked = dict(checked or {})
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
        if isinstance(action, Keep):
            known = self._checked.pop(action.output, None)
            return self._own(action.output) if known is None else replace(known, generation=self._active(action.output))
        if isinstance(action, Begin) and self._is_fresh(action):
            steps.begin(self._planned, action.output, self._site)
            return self._own(action.output)
        if once or self._log.unfinished_cutover(self._planned.plan.service, action.output) is not None:
            return None  # a topic that is partly of the new generation is no place for the old one
        return self._archived(action)

    def _own(self, output: str) -> PreparedOutput:
        """The active generation with the code of this version, which means the same."""
        unit, generation = self._planned.units[output], self._active(output)
        return prepared(unit, generation, self._site, self._planned.levels[output])

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
            return steps.archived(self._planned, action.output, self._site)
        except EverstateError as error:
            logger.warning("Output %s is silent until its new generation is ready: %s", action.output, error)
            return None

    def _execution(self, output: PreparedOutput) -> Execution:
        self._keep_sample(output)
        return self._site.executor.execution(output, self._leases.publishing())

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
        if not self._site.samples:
            return
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
        site, unit = self._site, self._planned.units[action.output]
        generation = steps.plan_generation(self._planned, action, site)
        create_own_topics(unit, generation, self._log)
        migration.begin(unit, generation, site)
        output = prepared(unit, generation, site, self._planned.levels[action.output])
        self._keep_sample(output)
        self._roster.builds[action.output] = Build(
            output,
            site,
            limit=self._limit(action.output),
            effects=self._wishes.effects,
            preparation=migration.Preparation(output, site) if output.folder.migrated else None,
        )

    def _rebuild(self, output: str, error: MigrationError) -> None:
        """The state of the active generation is of no use: discard what was made of it, and recalculate."""
        logger.warning("Output %s is recalculated, since its state cannot be migrated: %s", output, error)
        self._roster.builds.pop(output, None)
        self._roster.rebuilt[output] = str(error)
        why = f"State cannot be migrated: {error}"
        building = self._registry.read(output).building
        if building is not None:
            steps.discard(output, building.number, self._site, why)
        self._begin_build(steps.recalculation(self._planned.plan.action(output), why))

    def _limit(self, output: str) -> Callable[[], Vector] | None:
        """How far a stream may be rebuilt: what the active generation has published stands, and not more."""
        unit = self._planned.units[output]

        def reached() -> Vector:
            last, active = self._log.last_commit(unit.service, output), self._registry.read(output).active
            # One that never got to its first batch has published nothing of what was there when it began.
            stands = last.end if last is not None else active.initial if active is not None else {}
            # Only topics that it has read tell where it stopped.
            known = {topic: ends for topic, ends in stands.items() if topic in unit.topics}
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
                steps.discard(action.output, generation.number, self._site, "the cutover was not approved")

    def _mark(self, build: Build, status: Status) -> None:
        history = self._registry.read(build.name)
        generation = history.numbered(build.output.generation.number)
        if generation is not None and generation.status is not status:
            rate = generation.rate if build.migrates else build.measured or generation.rate
            steps.write(self._site, history, generation, status, rate=rate)

    # -- cutover ------------------------------------------------------------------------------------------------------

    def guard(self, actions: Sequence[Action]) -> None:
        """Stop before a cutover that would take away more than it may.

        Raises:
            ApprovalNeededError: If it has to be approved.
        """
        check_guards(actions, self._planned, self._site, self._wishes)

    def cut_over(self, actions: Sequence[Action], display: Display) -> None:
        """Replace the active generations, one after the other; the lease of publishing is held."""
        for action in actions:
            self._release(action.output)
            if isinstance(action, Retire):
                steps.retire(action, self._site)
            elif isinstance(action, Continue):
                steps.carry_on(self._planned, action, self._site)
            else:
                display.tell(self._publish(action))
            display.update()

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
        counts = steps.publish(self._planned, action, number, self._site)
        self._site.comparisons.forget()
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
        return max(self._planned.levels.values(), default=-1)

    def level(self, action: Action) -> int:
        """Of an action's output; one that is no longer declared comes last."""
        return self._planned.levels.get(action.output, 1 + self.depth)

    def in_levels(self, actions: Sequence[Action]) -> list[list[Action]]:
        """Changes that can be built at the same time; outputs that others read come first, retired ones last."""
        found: dict[int, list[Action]] = {}
        for action in actions:
            found.setdefault(self.level(action), []).append(action)
        return [found[level] for level in sorted(found)]
