"""One output on its way to its newest version, while the active one goes on.

The plan says which steps that takes; here they are taken, each once. An output that has not changed runs as it is. A
changed one is built beside its active generation, which goes on publishing: in its own process if that lives, else
here, from its archived code. When the new generation has caught up and nothing stands in its way, it takes the place
of the old one.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from everstate.errors import EverstateError, GenerationError, MigrationError
from everstate.generations.deploy import migration, transitions
from everstate.generations.deploy.approval import concerns_about
from everstate.generations.deploy.build import Build
from everstate.generations.deploy.outputs import create_own_topics, prepared
from everstate.generations.generation import Status
from everstate.generations.state import samples
from everstate.generations.state.topic_marks import adopted
from everstate.log import vectors
from everstate.plan import steps
from everstate.plan.actions import Recalculate
from everstate.plan.categories import Category
from everstate.plan.steps import Phase, Preparation
from everstate.topology.nodes import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from everstate.generations.deploy.executor import Execution
    from everstate.generations.deploy.options import Wishes
    from everstate.generations.deploy.outputs import PreparedOutput
    from everstate.generations.deploy.planning import Planned
    from everstate.generations.deploy.site import Site
    from everstate.generations.generation import Generation
    from everstate.log.descriptions import Vector
    from everstate.plan.actions import Action
    from everstate.plan.guards import Concern
    from everstate.plan.steps import Step

logger = logging.getLogger(__name__)


class OutputChange:
    """What happens to one output, and how far that is.

    Args:
        action: What the plan says.
        planned: The plan.
        site: Where.
        wishes: What was asked for with this run.
        walked: Gets each step that is taken.
        checked: The active generation, if it goes on as it is and its state has been checked already.

    Attributes:
        action: What is done; a migration that cannot be becomes a recalculation.
        level: Outputs that it reads have a lower one.
        build: The generation that is being built; None for none.
        waiting: What publishes as soon as it is started; None for nothing.
        execution: What publishes; None for nothing.
        rebuilt: Why it is recalculated although its state was to be migrated; empty if it is not.
    """

    def __init__(
        self,
        action: Action,
        planned: Planned,
        site: Site,
        wishes: Wishes,
        walked: list[Step],
        checked: PreparedOutput | None = None,
    ) -> None:
        self.action = action
        self.level = planned.plan.levels[action.output]
        self.build: Build | None = None
        self.waiting: Execution | None = None
        self.execution: Execution | None = None
        self.rebuilt = ""
        self._planned = planned
        self._site = site
        self._wishes = wishes
        self._walked = walked
        self._checked = checked

    @property
    def output(self) -> str:
        """The output's topic."""
        return self.action.output

    @property
    def replaces(self) -> bool:
        """Whether a generation has to be built, or the output to be taken away."""
        return bool(self.action.steps) and not self.action.hosts

    @property
    def builds(self) -> bool:
        """Whether a generation has to be built."""
        return any(isinstance(step, Preparation) for step in self.action.steps)

    def _take(self, step: Step) -> str:
        """Take a step; returns what is to be told of it, empty for nothing."""
        self._walked.append(step)
        planned, site, output = self._planned, self._site, self.output
        match step:
            case steps.Host():
                self._ready(self._own())
            case steps.Open():
                transitions.begin(planned, output, site)
                self._ready(self._own())
            case steps.Discard(generation=number):
                transitions.discard(output, number, site, self._why_rebuilt)
            case steps.Build() | steps.Convert() | steps.CatchUp():
                self._begin_build(step)
            case steps.Publish() | steps.TakeOver():
                return self._publish()
            case steps.CarryOver():
                transitions.carry_on(planned, self.action, site)
            case steps.Withdraw():
                transitions.retire(output, site, keep_topic=step.keep_topic)
        return ""

    # -- hosting ------------------------------------------------------------------------------------------------------

    def host(self, *, once: bool) -> None:
        """Get what publishes now ready to be started: what has not changed, or a first generation.

        Unless everything is only drained, the active generation of an output that has changed publishes as well.
        """
        if self.action.hosts:
            for step in self.action.steps:
                self._take(step)
        elif not once and self._site.log.unfinished_cutover(self._planned.plan.service, self.output) is None:
            self._ready(self._archived())  # a topic that is partly of the new generation is no place for the old one

    def _own(self) -> PreparedOutput:
        """The active generation with the code of this version, which means the same."""
        known, self._checked = self._checked, None
        if known is not None:
            return replace(known, generation=self._active())
        return prepared(self._planned.units[self.output], self._active(), self._site)

    def _active(self) -> Generation:
        """The active generation; from now on it knows all its topics."""
        site, output = self._site, self.output
        versions = site.registry.read(output)
        if versions.active is None:
            raise GenerationError(f"output {output!r} has no active generation")
        generation = adopted(versions.active, self._planned.units[output], site.log)
        if generation is not versions.active:
            site.registry.write(versions.having(generation), [site.leases.publishing()], step="active")
        return generation

    def _archived(self) -> PreparedOutput | None:
        """The active generation with its own code; None if it cannot be run."""
        try:
            return transitions.archived(self.output, self._site)
        except EverstateError as error:
            logger.warning("Output %s is silent until its new generation is ready: %s", self.output, error)
            return None

    def _ready(self, output: PreparedOutput | None) -> None:
        if output is not None:
            self._keep_sample(output)
            self.waiting = self._site.executor.execution(output, self._site.leases.publishing())

    def start(self, *, once: bool) -> None:
        """Start what waits for it."""
        if self.waiting is not None:
            self.waiting.start(once=once)
            self.execution, self.waiting = self.waiting, None

    def tend(self) -> None:
        """Keep a sample of what runs: its topics may have been empty when it was started."""
        if self.execution is not None:
            self._keep_sample(self.execution.output)

    def _keep_sample(self, output: PreparedOutput) -> None:
        if not self._site.samples:
            return
        try:
            samples.keep(output.folder, output.unit, output.generation, self._site.log)
        except EverstateError as error:
            logger.warning("No sample of output %s: %s", output.name, error)

    # -- building -----------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin, or go on with, the generation that is needed."""
        try:
            self._take_all(Phase.PREPARE)
        except MigrationError as error:
            self._rebuild(error)

    def _take_all(self, phase: Phase) -> str:
        told = [self._take(step) for step in self.action.steps if step.phase is phase]
        return "".join(told)

    def _begin_build(self, step: Preparation) -> None:
        site, unit = self._site, self._planned.units[self.output]
        generation = transitions.plan_generation(self._planned, self.action, step, site)
        create_own_topics(unit, generation, site.log)
        migration.begin(unit, generation, site)
        output = prepared(unit, generation, site)
        self._keep_sample(output)
        self.build = Build(
            output,
            site,
            limit=self._limit(),
            effects=self._wishes.effects,
            preparation=migration.Preparation(output, site) if output.folder.migrated else None,
        )

    def _rebuild(self, error: MigrationError) -> None:
        """The state of the active generation is of no use: discard what was made of it, and recalculate."""
        logger.warning("Output %s is recalculated, since its state cannot be migrated: %s", self.output, error)
        self.build, self.rebuilt = None, str(error)
        building = self._site.registry.read(self.output).building
        if building is not None:
            self._take(steps.Discard(self.output, building.number))
        stream = self._planned.units[self.output].output.kind is Kind.STREAM
        self.action = transitions.recalculation(self.action, self._why_rebuilt, stream=stream)
        self._take_all(Phase.PREPARE)

    @property
    def _why_rebuilt(self) -> str:
        return f"State cannot be migrated: {self.rebuilt}" if self.rebuilt else ""

    def _limit(self) -> Callable[[], Vector] | None:
        """How far a stream may be rebuilt: what the active generation has published stands, and not more."""
        unit, log, registry = self._planned.units[self.output], self._site.log, self._site.registry

        def reached() -> Vector:
            last, active = log.last_commit(unit.service, self.output), registry.read(self.output).active
            # One that never got to its first batch has published nothing of what was there when it began.
            stands = last.end if last is not None else active.initial if active is not None else {}
            # Only topics that it has read tell where it stopped.
            known = {topic: ends for topic, ends in stands.items() if topic in unit.topics}
            known |= vectors.told(stands)
            return {**known, **log.begin_offsets(self._published_again())}

        return reached if unit.output.kind is Kind.STREAM else None

    def _published_again(self) -> list[str]:
        """Topics of which nothing has been published: they were created again, or the output's topic was."""
        if isinstance(self.action, Recalculate) and self.action.again:
            return list(self._planned.units[self.output].topics)
        return [found.node for found in self.action.differences if found.category is Category.RECREATED_SOURCE]

    def step(self, *, room: bool) -> bool:
        """Look after the build, if there is room for it; says whether it has caught up."""
        if self.build is None:
            return True
        try:
            self.build.step(room=room)
        except MigrationError as error:
            self.build.stop(time.monotonic())
            self._rebuild(error)
            return False
        if self.build.caught_up:
            self._mark(self.build, Status.READY)
        return self.build.caught_up

    def finish(self) -> None:
        """Catch up to the very end of the sources, as they are now, and leave it at that."""
        if self.build is not None:
            self.build.finish()
            self.build = None

    def stop_build(self) -> None:
        """Nothing is built any more."""
        if self.build is not None:
            self.build.stop(time.monotonic())
            self.build = None

    def give_up(self) -> None:
        """Discard what was built; nothing builds it any more."""
        generation = self._site.registry.read(self.output).building
        if generation is not None:
            transitions.discard(self.output, generation.number, self._site, "the cutover was not approved")

    def _mark(self, build: Build, status: Status) -> None:
        versions = self._site.registry.read(self.output)
        generation = versions.numbered(build.output.generation.number)
        if generation is not None and generation.status is not status:
            rate = generation.rate if build.migrates else build.measured or generation.rate
            transitions.write(self._site, versions, generation, status, rate=rate)

    # -- cutover ------------------------------------------------------------------------------------------------------

    def concerns(self) -> tuple[Concern, ...]:
        """Why a cutover should not happen unasked."""
        return concerns_about(self.action, self._planned, self._site, file=self._wishes.file)

    def cut_over(self) -> str:
        """Replace the active generation; the lease of publishing is held.

        Returns:
            What is to be told of it; empty for nothing.
        """
        if self.execution is not None:
            execution, self.execution = self.execution, None
            execution.announce_stop()
            execution.stop(time.monotonic() + self._site.settings.stop_timeout)
        return self._take_all(Phase.REPLACE)

    def _publish(self) -> str:
        """The cutover; says what it wrote."""
        build = self.build
        if build is None:
            raise GenerationError(f"output {self.output!r} has no generation that was built")
        build.finish()
        self._mark(build, Status.PUBLISHING)
        number = build.output.generation.number
        counts = transitions.publish(self._planned, self.action, number, self._site)
        self._site.comparisons.forget()
        self.build = None
        written = ", ".join(f"{count:,} {name}" for name, count in counts.items())
        return f"{self.output}: generation {number} is active; keys: {written}"

    def succeed(self) -> None:
        """Get the generation that has become active ready to be started; nothing if the output is gone."""
        if self.output in self._planned.units:
            self._ready(self._own())


@dataclass(frozen=True, eq=False)
class Changes:
    """All outputs of a plan, and what has been done so far.

    Attributes:
        outputs: In the order of the plan.
        walked: The steps that were taken, in this order.
    """

    outputs: tuple[OutputChange, ...] = ()
    walked: list[Step] = field(default_factory=list)

    @classmethod
    def of(cls, planned: Planned, site: Site, wishes: Wishes, checked: Mapping[str, PreparedOutput]) -> Changes:
        """What a plan leads to.

        Args:
            planned: The plan.
            site: Where.
            wishes: What was asked for.
            checked: Outputs that go on as they are, and whose state has been checked already.
        """
        walked: list[Step] = []
        outputs = (
            OutputChange(action, planned, site, wishes, walked, checked.get(action.output))
            for action in planned.plan.actions
        )
        return cls(tuple(outputs), walked)

    @property
    def executions(self) -> dict[str, Execution]:
        """What publishes at the moment, by output."""
        return {change.output: found for change in self.outputs if (found := change.execution) is not None}

    @property
    def builds(self) -> dict[str, Build]:
        """Generations that are being built at the moment, by output."""
        return {change.output: found for change in self.outputs if (found := change.build) is not None}

    @property
    def rebuilt(self) -> dict[str, str]:
        """By output, why it is recalculated although its state was to be migrated."""
        return {change.output: change.rebuilt for change in self.outputs if change.rebuilt}
