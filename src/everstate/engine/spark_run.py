"""One process at work on a service: its log, its leases, Spark, and how it is stopped."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

from everstate.engine.executor import SparkExecutor
from everstate.engine.jvm.submission import submitted_master
from everstate.engine.limits import Limits, watched_folders
from everstate.engine.progress import Progress
from everstate.errors import LogBusyError, LogUnavailableError, ResourceError
from everstate.errors.texts import printable
from everstate.generations.compare.comparison import Comparisons
from everstate.generations.deploy.leases import Leases
from everstate.generations.deploy.options import Wishes
from everstate.generations.deploy.run import Run
from everstate.generations.deploy.settings import Settings, log_address
from everstate.generations.deploy.site import Site
from everstate.generations.registry import Registry
from everstate.generations.state.archiving import Archiving, Archivist
from everstate.generations.state.belonging import check_log
from everstate.generations.state.folder import STAGING, service_folder
from everstate.log.opening import open_log

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType

    from pyspark.sql import SparkSession

    from everstate.dsl.service import Service
    from everstate.engine.board import Line
    from everstate.engine.spark_io.crossings import Crossings
    from everstate.generations.deploy.change import Changes
    from everstate.generations.deploy.options import RunOptions
    from everstate.generations.deploy.planning import Planned
    from everstate.generations.deploy.rollout import Rollout
    from everstate.log.descriptions import Lease
    from everstate.log.protocol import Log
    from everstate.topology.unit import Unit


class SparkRun(Run):
    """Something that a process does with a service on Spark: run it, preview a change, go back.

    It is a context: the log is open and `site` is known inside of it; leases are given back at its end.

    Args:
        service: The service.
        given: Where (`log`; see `log_address`), how (the names of `Settings`) and what for (those of `Wishes`); `show`
            is False for silence, by default a table on a terminal, else a line now and then; with `asks`, whoever is at
            the terminal is asked whether a cutover that has to be approved may go on; `session` is one of
            `start_session` to work in, which stays, without it the run has one of its own.
    """

    def __init__(self, service: Service, **given: Unpack[RunOptions]) -> None:
        options: dict[str, Any] = dict(given)
        self._address = log_address(options.pop("log", None), service.log)
        self._show: bool | None = options.pop("show", None)
        self._session: SparkSession | None = options.pop("session", None)
        self._asks: bool = options.pop("asks", False)
        wishes: Wishes = options.pop("wishes", None) or Wishes()
        wishes = wishes.asking(**{name: options.pop(name) for name in Wishes.names() & options.keys()})
        super().__init__(service, wishes)
        own = {"state_dir": service.state_dir, "shards": service.shards}
        settings = Settings.resolve(options, service=own)
        master = settings.master or submitted_master()
        settings = Settings.resolve({**options, "master": master}, service=own)
        self.settings = replace(settings, shards=wishes.options(settings.shards).shards)
        self._shown: Progress | None = None
        self._open = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as opened:
            self.at(self._site(opened))
            self._open = opened.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, trace)

    def _site(self, opened: contextlib.ExitStack) -> Site:
        """The log and, when they are taken, the leases; given back at the end."""
        name = self.service.name
        home = service_folder(self.settings.state_dir, self._address, name)
        log = open_log(self._address, staging=home / STAGING)
        opened.callback(log.close)
        topics = sorted({topic for unit in self.service.units() for topic in _touched(unit)})
        check_log(home, log)
        leases = Leases(
            log,
            name,
            self.settings.heartbeat,
            self.ending.lost,
            topics,
            self._archiving(log, home),
            stopping=self.ending.stopping,
        )
        opened.callback(leases.release)
        self._executor = SparkExecutor(log, home, self.settings, name=f"everstate {name}", session=self._session)
        return Site(
            log=log,
            home=home,
            registry=Registry(log, name),
            leases=leases,
            settings=self.settings,
            comparisons=Comparisons(log),
            executor=self._executor,
        )

    def _archiving(self, log: Log, home: Path) -> Callable[[Lease], Archiving] | None:
        """What archives the sources that are to be kept."""
        topics = self.service.kept_topics
        return (lambda lease: Archiving(Archivist(log, lease, home), topics)) if topics else None

    @contextlib.contextmanager
    def carrying_out(
        self,
        planned: Planned,
        started: threading.Event | None = None,
        *,
        runs: bool = True,
        look: Callable[[], None] | None = None,
    ) -> Iterator[Rollout]:
        """What carries a plan out on Spark; at the end everything is stopped in an orderly way.

        Args:
            planned: The plan.
            started: Set when the service's queries have been started.
            runs: Spark is needed in any case, and started at once.
            look: Called again and again while it runs.

        Raises:
            EverstateError: If something fails; the rest has been stopped in an orderly way.
        """

        @contextlib.contextmanager
        def shown(changes: Changes) -> Iterator[Progress]:
            if runs:
                self._executor.begin()
            with self.progress(changes) as progress:
                yield progress

        limits = self._limits()

        def look_around() -> None:
            limits.look()
            if look is not None:
                look()

        try:
            with self.rollout(planned, shown, look_around, started) as rollout:
                yield rollout
        finally:
            self._executor.stop()

    def crossings(self, planned: Planned) -> Crossings | NoCrossings:
        """What carries out the steps of Spark's own; without any, Spark's modules are not waited for."""
        steps = self.service.spark_steps
        if not (steps.feeds or steps.deliveries):
            return NoCrossings()
        from everstate.engine.spark_io.crossings import Crossings  # noqa: PLC0415 - loads PySpark

        stopping = self.ending.stopping
        return Crossings(self.service, self.site, planned.plan, self._executor.session, stopping.is_set)

    def progress(self, changes: Changes) -> Progress:
        """Shows what runs."""
        self._shown = Progress(changes, self.site.log, show=self._show, asks=self._asks, service=self.service.name)
        return self._shown

    def done(self) -> Sequence[Line]:
        """What the outputs that were shown have done, as far as the log can still be asked."""
        with contextlib.suppress(ResourceError, LogBusyError, LogUnavailableError):
            return () if self._shown is None else self._shown.lines()
        return ()

    def say(self, text: str) -> None:
        """Say something to whoever watches, also after the end of what was shown."""
        if self._show is not False:
            print(printable(text), file=sys.stderr, flush=True)  # noqa: T201 - this is the terminal

    def again(self, *, once: bool = False) -> str:
        """The command that goes on with a run that was stopped; empty where the service was not named in a command."""
        if self.wishes.file == Wishes.file:
            return ""
        return f"everstate run {self.wishes.file}{' --once' if once else ''}"

    def _limits(self) -> Limits:
        """What the service could run out of."""
        from everstate.engine.jvm.session import java_process  # noqa: PLC0415 - see above

        site = self.site
        log = None if "://" in site.log.url else Path(site.log.url)
        scratch = self.settings.scratch_dir or Path(tempfile.gettempdir())
        folders = [(site.home, "the state"), (log, "the log"), (scratch, "RocksDB's working files")]
        return Limits(
            watched_folders(folders),
            lambda: {os.getpid(): "The service", **({java: "Spark's Java"} if (java := java_process()) else {})},
        )


class NoCrossings:
    """A service without steps of Spark's own."""

    def begin(self, *, once: bool) -> None:
        """Nothing to bring up to date."""

    def look(self) -> None:
        """Nothing to look after."""

    def finish(self) -> None:
        """Nothing to deliver."""

    def close(self) -> None:
        """Nothing to stop."""


def _touched(unit: Unit) -> tuple[str, ...]:
    """The topics that a running output reads and writes."""
    return (*unit.topics, *unit.written)
