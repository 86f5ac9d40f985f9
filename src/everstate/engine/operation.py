"""One process at work on a service: its log, its leases, Spark, and how it is stopped."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from everstate.engine.belonging import check_log
from everstate.engine.folder import service_folder
from everstate.engine.history import Archiving, Archivist
from everstate.engine.leases import Leases
from everstate.engine.limits import Limits, watched_folders
from everstate.engine.net import Net
from everstate.engine.planning import make_plan, unchanged
from everstate.engine.reports import report_file
from everstate.engine.settings import Settings, log_address
from everstate.engine.wishes import Wishes
from everstate.generations.comparison import Comparisons
from everstate.generations.registry import Registry
from everstate.log.opening import open_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from everstate.dsl.service import Service
    from everstate.engine.deployment import Deployment
    from everstate.engine.planning import Planned
    from everstate.engine.rollout import Rollout
    from everstate.engine.steps import Context
    from everstate.log.protocol import Lease, Log
    from everstate.topology.unit import Unit


@dataclass(frozen=True, kw_only=True)
class Site:
    """Where an operation takes place.

    Attributes:
        log: The log.
        home: The folder of the service's state.
        registry: The service's generations.
        leases: What this process holds.
    """

    log: Log
    home: Path
    registry: Registry
    leases: Leases


class Operation:
    """Something that a process does with a service: run it, preview a change, go back.

    Args:
        service: The service.
        log: Which log; see `log_address`.
        show: False for silence; by default a table on a terminal, else a line now and then.
        session: A session of `start_session` to work in, which stays; without it the operation has one of its own.
        wishes: What is asked for.
        given: Operational settings by name, as for `Settings`, and further wishes, as for `Wishes`.
    """

    def __init__(
        self,
        service: Service,
        *,
        log: str | Path | None = None,
        show: bool | None = None,
        session: SparkSession | None = None,
        wishes: Wishes | None = None,
        **given: Any,
    ) -> None:
        asked = {name: given.pop(name) for name in Wishes.names() & given.keys()}
        self.wishes = (wishes or Wishes()).asking(**asked)
        own = {"state_dir": service.state_dir, "shards": service.shards}
        settings = Settings.resolve(given, service=own)
        self.settings = replace(settings, shards=self.wishes.options(settings.shards).shards)
        self.service = service
        self.stopping = threading.Event()
        self.failure: BaseException | None = None
        self._address = log_address(log, service.log)
        self._show = show
        self._session = session
        self._net: Net | None = None

    @contextlib.contextmanager
    def site(self) -> Iterator[Site]:
        """The log and, when they are taken, the leases; given back at the end."""
        log = open_log(self._address)
        try:
            name = self.service.name
            topics = sorted({topic for unit in self.service.units() for topic in _touched(unit)})
            home = service_folder(self.settings.state_dir, log, name)
            check_log(home, log)
            leases = Leases(log, name, self.settings.heartbeat, self._lost, topics, self._archiving(log, home))
            try:
                yield Site(log=log, home=home, registry=Registry(log, name), leases=leases)
            finally:
                leases.release()
        finally:
            log.close()

    def _archiving(self, log: Log, home: Path) -> Callable[[Lease], Archiving] | None:
        """What archives the sources that are to be kept."""
        topics = self.service.kept_topics
        return (lambda lease: Archiving(Archivist(log, lease, home), topics)) if topics else None

    def plan(self, site: Site) -> Planned:
        """What happens if the service is started now."""
        self._net = self._net or Net(site.home)
        return make_plan(self.service, site.log, site.home, self.wishes.options(self.settings.shards), self._net)

    def context(self, site: Site) -> Context:
        """What a single step of a generation's life acts on."""
        from everstate.engine.steps import Context  # noqa: PLC0415 - loads Spark's pickling

        return Context(
            log=site.log,
            registry=site.registry,
            leases=site.leases,
            home=site.home,
            settings=self.settings,
            comparisons=Comparisons(site.log),
        )

    def roll_out(
        self,
        planned: Planned,
        site: Site,
        course: Callable[[Deployment, Rollout], None],
        started: threading.Event | None = None,
        *,
        runs: bool = True,
    ) -> None:
        """Carry a plan out.

        Args:
            planned: The plan.
            site: Where.
            course: What to do of it.
            started: Set when the service's queries have been started.
            runs: Spark is needed in any case, and started at once.

        Raises:
            EverstateError: If something fails; the rest has been stopped in an orderly way.
        """
        # Only now: whoever only looks at a plan need not wait for Spark's modules.
        from everstate.engine.deployment import Deployment, Roster  # noqa: PLC0415
        from everstate.engine.progress import Progress  # noqa: PLC0415
        from everstate.engine.rollout import Rollout  # noqa: PLC0415
        from everstate.engine.spark import Spark  # noqa: PLC0415

        checked = unchanged(planned, site.log, site.home) if site.leases.publishes() else {}
        report = report_file(site.home)
        spark = Spark(self.settings, f"everstate {self.service.name}", report, self._session)
        try:
            if runs:
                spark.begin()
            roster = Roster()
            deployment = Deployment(
                planned,
                spark=spark.session,
                log=site.log,
                registry=site.registry,
                leases=site.leases,
                home=site.home,
                settings=self.settings,
                wishes=self.wishes,
                roster=roster,
                checked=checked,
            )
            with Progress(roster, site.log, show=self._show) as progress:
                rollout = Rollout(
                    deployment,
                    roster,
                    site.leases,
                    self.settings,
                    progress,
                    self._limits(site),
                    self.stopping,
                    started or threading.Event(),
                )
                self._follow(course, deployment, rollout)
        finally:
            spark.stop()

    def _limits(self, site: Site) -> Limits:
        """What the service could run out of."""
        from everstate.engine.session import java_process  # noqa: PLC0415 - see above

        log = None if "://" in site.log.url else Path(site.log.url)
        scratch = self.settings.scratch_dir or Path(tempfile.gettempdir())
        folders = [(site.home, "the state"), (log, "the log"), (scratch, "RocksDB's working files")]
        return Limits(
            watched_folders(folders),
            lambda: {os.getpid(): "The service", **({java: "Spark's Java"} if (java := java_process()) else {})},
        )

    def _follow(self, course: Callable[[Deployment, Rollout], None], deployment: Deployment, rollout: Rollout) -> None:
        try:
            course(deployment, rollout)
        except BaseException as error:
            rollout.wind_down(suppress=True)
            if self.failure is not None:
                raise self.failure from error
            raise
        rollout.wind_down(suppress=self.failure is not None)
        if self.failure is not None:
            raise self.failure

    def _lost(self, error: BaseException) -> None:
        self.failure = error
        self.stopping.set()


def _touched(unit: Unit) -> tuple[str, ...]:
    """The topics that a running output reads and writes."""
    return (*unit.topics, unit.output.topic, f"{unit.output.topic}.dlq")
