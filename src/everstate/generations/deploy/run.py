"""One process at work on a service, whatever executes its outputs: plan, take leases, carry the plan out, stop."""

from __future__ import annotations

import contextlib
import logging
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from everstate.errors import EverstateError, LeaseHeldError
from everstate.generations.deploy.change import Changes
from everstate.generations.deploy.outputs import create_topics, require_sources
from everstate.generations.deploy.planning import (
    make_plan,
    prints_of,
    require_no_drift,
    require_possible,
    unchanged,
)
from everstate.generations.deploy.rollout import Rollout
from everstate.generations.deploy.takeover import take_leases
from everstate.generations.report import Reporter
from everstate.generations.state.net import Net
from everstate.generations.state.spark_steps import create_fed_topics, require_same_feeds
from everstate.plan.categories import Category

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from everstate.dsl.service import Service
    from everstate.fingerprints.prints import UnitPrint
    from everstate.generations.deploy.display import Display
    from everstate.generations.deploy.options import Wishes
    from everstate.generations.deploy.planning import Planned
    from everstate.generations.deploy.site import Site
    from everstate.plan.actions import Plan

logger = logging.getLogger(__name__)


@dataclass
class Ending:
    """When a run has to stop, and why.

    Attributes:
        stopping: Set when it has to.
        failure: What happened beside the run itself, such as a lease that was taken away; None if nothing did.
    """

    stopping: threading.Event = field(default_factory=threading.Event)
    failure: BaseException | None = None

    def lost(self, error: BaseException) -> None:
        """Another process has taken a lease."""
        self.failure = error
        self.stopping.set()


class Run:
    """What one process does with a service.

    Args:
        service: The service.
        wishes: What is asked for.
        prints: What its outputs are, by topic; by default what they are when a plan is first made.

    Attributes:
        service: The service.
        wishes: What is asked for.
        ending: When it has to stop.
        site: Where it takes place; known once it is at work (see `at`).
    """

    site: Site

    def __init__(self, service: Service, wishes: Wishes, prints: Mapping[str, UnitPrint] | None = None) -> None:
        self.service = service
        self.wishes = wishes
        self.ending = Ending()
        self._prints = prints

    def at(self, site: Site) -> Self:
        """Begin to work at a site; returns itself."""
        self.site = site
        self._net = Net(site.folder, site.code)
        return self

    def elsewhere(self, site: Site) -> Run:
        """The same at another site; it ends when this one has to."""
        other = Run(self.service, self.wishes, self._prints).at(site)
        other.ending = self.ending
        return other

    def plan(self) -> Planned:
        """What happens if the service is started now; changes nothing."""
        if self._prints is None:
            self._prints = prints_of(self.service)
        options = self.wishes.options(self.site.settings.shards)
        return make_plan(self.service, self.site, options, self._net, self._prints)

    def begin(self, announce: Callable[[Plan], None] | None = None) -> Planned:
        """Create topics and take the leases that the plan needs.

        Args:
            announce: Called with the plan before anything is done.

        Returns:
            The plan as it is now that nobody else builds.

        Raises:
            LeaseHeldError: If another process runs this version of the service.
            PlanDriftError: If a plan was given that does not fit any more.
            EverstateError: If the plan cannot be carried out.
        """
        create_fed_topics(self.service.spark_steps, self.site.log)
        planned = self._possible()
        if announce is not None:
            announce(planned.plan)
        create_topics(self.service.units(), self.site.log, self.service.on_error)
        try:
            with self._alone():
                planned = take_leases(self._possible, self.site, self.wishes)
        except LeaseHeldError as error:
            ways = "With --standby this process waits until that one has ended; with --take-over it takes its place."
            raise LeaseHeldError(error.message, hint=f"{error.hint} {ways}") from error
        _tell_missed(planned.plan)
        return planned

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """A process that was replaced finds its state deleted, its topics gone: what happened to it is the takeover."""
        try:
            yield
        except EverstateError as error:
            taken = self.site.leases.taken()
            if taken is None:
                raise
            raise taken from error

    def _possible(self) -> Planned:
        """The plan of this moment, if it can be carried out."""
        planned = self.plan()
        require_sources(self.service.units(), self.site.log)
        require_possible(planned)
        require_same_feeds(self.service.name, self.service.spark_steps, self.site.log)
        if self.wishes.plan is not None:
            require_no_drift(self.wishes.plan, planned)
        return planned

    @contextlib.contextmanager
    def rollout(
        self,
        planned: Planned,
        display: Callable[[Changes], contextlib.AbstractContextManager[Display]],
        look: Callable[[], None],
        started: threading.Event | None = None,
    ) -> Iterator[Rollout]:
        """What carries a plan out; at the end everything is stopped in an orderly way.

        Args:
            planned: The plan.
            display: Shows what runs.
            look: Called again and again while it runs.
            started: Set when the service's outputs have been started.

        Raises:
            EverstateError: If something fails; the rest has been stopped in an orderly way.
        """
        site = self.site
        checked = unchanged(planned, site) if site.leases.publishes() else {}
        changes = Changes.of(planned, site, self.wishes, checked)
        site.leases.report_with(Reporter(changes))
        with display(changes) as shown:
            started = started or threading.Event()
            rollout = Rollout(changes, site, self.wishes, shown, look, self.ending.stopping, started)
            with self._wound_down(rollout):
                yield rollout

    @contextlib.contextmanager
    def _wound_down(self, rollout: Rollout) -> Iterator[None]:
        ending = self.ending
        try:
            with self._alone():
                yield
        except BaseException as error:
            rollout.wind_down(suppress=True)
            if ending.failure is not None:
                raise ending.failure from error
            raise
        rollout.wind_down(suppress=ending.failure is not None)
        if ending.failure is not None:
            raise ending.failure


def _tell_missed(plan: Plan) -> None:
    """Changes that fingerprints have missed, and steps that nothing can be said of, are told whoever reads the plan."""
    for action in plan.actions:
        for found in action.differences:
            if found.category is Category.MISSED:
                logger.warning("Output %s is recalculated. %s (%s)", action.output, found.cause, found.location)
        for warning in action.warnings:
            logger.warning("Output %s: %s", action.output, warning)
