"""The steps of Spark's own of a running service: when each runs, and under which lease.

A feed runs in one process at a time, whichever version that is, so it has a lease of its own: a new version that feeds
a new topic begins while the earlier one still publishes. A delivery begins when the version that declares it publishes.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from everstate.engine.checkpoint.checkpoint import numbers
from everstate.engine.spark_io.delivery import DeliveryCrossing
from everstate.engine.spark_io.feed import FeedCrossing
from everstate.errors import EverstateError, LeaseHeldError
from everstate.fingerprints.spark_steps import step_digest
from everstate.generations.deploy.heartbeat import Heartbeat
from everstate.generations.state.folder import SPARK_STEPS
from everstate.generations.state.spark_steps import StepState, lease_name, read_state, write_state
from everstate.plan.actions import Continue, Keep
from everstate.topology.spark_steps import Delivery, Feed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import SparkSession

    from everstate.dsl.service import Service
    from everstate.engine.spark_io.crossing import Crossing
    from everstate.generations.deploy.site import Site
    from everstate.log.descriptions import Lease
    from everstate.plan.actions import Plan
    from everstate.topology.spark_steps import SparkStep

#: Between two looks whether a step may begin.
_LOOK_S: Final = 1.0
_PAUSE_S: Final = 0.05


class Crossings:
    """Carries out what a service declares with `.from_spark()` and `.to_spark()`.

    Args:
        service: The service.
        site: Where it is deployed.
        plan: What is carried out.
        session: Gives the session.
        stopping: Whether the service has to stop.
    """

    def __init__(
        self,
        service: Service,
        site: Site,
        plan: Plan,
        session: Callable[[], SparkSession],
        stopping: Callable[[], bool],
    ) -> None:
        steps = service.spark_steps
        self._service = service.name
        self._site = site
        self._plan = plan
        self._session = session
        self._stopping = stopping
        self._feeds: list[SparkStep] = list(steps.feeds.values())
        self._deliveries: list[SparkStep] = list(steps.deliveries.values())
        self._running: dict[str, Crossing] = {}
        self._beats: dict[str, Heartbeat] = {}
        self._lost: BaseException | None = None
        self._looked = 0.0

    def begin(self, *, once: bool) -> None:
        """Before the outputs: bring topics that are new, and with `once` all that are fed, up to date.

        Raises:
            EverstateError: If a feed fails.
        """
        self._drain(feed for feed in self._feeds if once or self._is_new(feed))

    def look(self) -> None:
        """Start what may begin by now, and see that what was started still runs.

        Raises:
            EverstateError: If one of them has failed for good.
        """
        if self._lost is not None:
            raise self._lost
        for crossing in list(self._running.values()):
            crossing.active()
        if time.monotonic() < self._looked + _LOOK_S:
            return
        self._looked = time.monotonic()
        for step in (*self._feeds, *self._deliveries):
            if step.name not in self._running and self._is_due(step):
                self._start(step, once=False)

    def finish(self) -> None:
        """After the outputs have processed all there is: deliver it.

        Raises:
            EverstateError: If a delivery fails.
        """
        self._drain(step for step in self._deliveries if self._is_due(step))

    def close(self) -> None:
        """Stop in an orderly way and give the leases back."""
        deadline = time.monotonic() + self._site.settings.stop_timeout
        for crossing in list(self._running.values()):
            # What has ended the service, if anything, says more; a batch that did not come to its end comes again.
            with contextlib.suppress(EverstateError):
                crossing.stop(deadline)
            self._give_back(crossing.step, crossing.lease)

    def _drain(self, steps: Iterable[SparkStep]) -> None:
        started = [crossing for step in list(steps) if (crossing := self._start(step, once=True)) is not None]
        for crossing in started:
            while crossing.active() and not self._stopping():
                time.sleep(_PAUSE_S)
            crossing.stop(time.monotonic() + self._site.settings.stop_timeout)
            self._give_back(crossing.step, crossing.lease)

    def _is_new(self, step: SparkStep) -> bool:
        return read_state(self._site.log, self._service, step) is None

    def _is_due(self, step: SparkStep) -> bool:
        """A delivery reads what its own version publishes: an earlier one may have had other columns."""
        if isinstance(step, Feed):
            return True
        active, action = self._site.registry.read(step.topic).active, self._plan.action(step.topic)
        if active is None or not self._site.leases.publishes():
            return False
        # By the plan, not by fingerprints: after an upgrade an output may go on under its earlier one.
        return isinstance(action, (Keep, Continue)) or active.number != action.active

    def _start(self, step: SparkStep, *, once: bool) -> Crossing | None:
        """Start a step; None if another process carries it out."""
        try:
            lease = self._site.log.acquire(lease_name(self._service, step))
        except LeaseHeldError:
            return None
        self._beat(step, lease)
        try:
            made = self._made(step, lease)
            self._running[step.name] = made
            made.start(self._session, once=once)
        except BaseException:
            self._give_back(step, lease)
            raise
        return made

    def _made(self, step: SparkStep, lease: Lease) -> Crossing:
        site = self._site
        folder = site.home / SPARK_STEPS / step.word / step.topic
        state = self._state(step, lease)
        kind = FeedCrossing if isinstance(step, Feed) else DeliveryCrossing
        made = kind(step, site.log, lease, folder, run=state.run, service=self._service, settings=site.settings)
        if isinstance(made, FeedCrossing):
            made.check()
        for old in folder.iterdir() if folder.is_dir() else ():
            if old.name != str(state.run):
                shutil.rmtree(old, ignore_errors=True)
        return made

    def _state(self, step: SparkStep, lease: Lease) -> StepState:
        """What is known of a step; one that has changed, or whose topic is a different one, begins from the start."""
        site, digest = self._site, step_digest(step)
        topic = site.log.topic_ids([step.topic])[step.topic]
        known = read_state(site.log, self._service, step)
        state = known or StepState(digest, topic)
        again = state.topic != topic
        if isinstance(step, Delivery):
            checkpoint = site.home / SPARK_STEPS / step.word / step.topic / str(state.run)
            changed = state.function != digest and step.on_change != "continue"
            again |= changed or (known is not None and not numbers(checkpoint / "offsets"))
        state = replace(state, function=digest, topic=topic, run=state.run + again)
        if state != known:
            write_state(site.log, self._service, step, state, lease)
        return state

    def _beat(self, step: SparkStep, lease: Lease) -> None:
        beat = Heartbeat(self._site.log, lease, self._site.settings.heartbeat, self._is_lost, (), lambda _: None)
        self._beats[step.name] = beat
        beat.start()

    def _is_lost(self, error: BaseException) -> None:
        self._lost = error

    def _give_back(self, step: SparkStep, lease: Lease) -> None:
        self._running.pop(step.name, None)
        beat = self._beats.pop(step.name, None)
        if beat is not None:
            beat.stop()
        self._site.log.release(lease)
