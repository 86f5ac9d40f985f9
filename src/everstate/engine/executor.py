"""Outputs as Spark queries, and their state as Spark's checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from everstate.engine.checkpoint import checkpoint
from everstate.engine.checkpoint.clone import clone
from everstate.engine.checkpoint.inspection import inspect
from everstate.engine.jvm.reports import report_file
from everstate.engine.jvm.timings import last_start
from everstate.engine.query.shard_numbers import stage_groups
from everstate.generations.state.folder import OutputFolder

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from pyspark.sql import SparkSession

    from everstate.engine.cluster.cluster import Cluster
    from everstate.engine.execution import SparkExecution
    from everstate.engine.jvm.spark import Spark
    from everstate.generations.deploy.outputs import PreparedOutput
    from everstate.generations.deploy.settings import Settings
    from everstate.generations.generation import Generation
    from everstate.kernels.migration.convert import Migration
    from everstate.log.descriptions import Batch, Commit, Lease, Vector
    from everstate.log.protocol import Log
    from everstate.topology.unit import Unit

_LOOK_S: Final = 0.1


class SparkExecutor:
    """Runs generations in one Spark session; whoever only looks at a plan need not even wait for Spark's modules.

    Args:
        log: The log.
        home: The folder of the service's state.
        settings: Operational settings.
        name: What Spark calls the application.
        session: A session to work in, which stays; without it there is one of its own, which ends with `stop`.
    """

    def __init__(
        self, log: Log, home: Path, settings: Settings, *, name: str, session: SparkSession | None = None
    ) -> None:
        self.pause = _LOOK_S
        self._log = log
        self._home = home
        self._settings = settings
        self._name = name
        self._session = session
        self._spark: Spark | None = None

    @property
    def startup(self) -> float | None:
        """Seconds that Spark took to start on this machine the last time; None if that is not known."""
        return 0.0 if self._session is not None else last_start()

    def begin(self) -> None:
        """Start Spark without waiting for it."""
        self._started().begin()

    def stop(self) -> None:
        """Stop what was started."""
        if self._spark is not None:
            self._spark.stop()
            self._spark = None

    def session(self) -> SparkSession:
        """The session, which is waited for.

        Raises:
            EngineError: If Spark does not start.
        """
        return self._started().session()

    def _started(self) -> Spark:
        from everstate.engine.jvm.spark import Spark  # noqa: PLC0415 - loads PySpark

        if self._spark is None:
            report = report_file(self._home)
            self._spark = Spark(self._settings, self._name, report, self._session, self._cluster())
        return self._spark

    def _cluster(self) -> Cluster | None:
        if self._settings.master is None or self._session is not None:
            return None
        from everstate.engine.cluster.cluster import Cluster  # noqa: PLC0415 - as above

        return Cluster(self._settings, report_file(self._home).parent, self._log.url)

    def cores(self) -> int:
        """How many tasks run at once: on a cluster as many as its executors have cores, so it is started to know."""
        if self._settings.master is None or self._settings.cores is not None:
            return self._settings.used_cores
        from everstate.engine.cluster.executors import registered  # noqa: PLC0415 - as above

        return max(1, registered(self._started().session().sparkContext).total)

    def execution(
        self,
        output: PreparedOutput,
        lease: Lease,
        *,
        closed: bool = False,
        effects: bool = False,
        end: Vector | None = None,
        migration: Migration | None = None,
    ) -> SparkExecution:
        """A generation as a query that can be started; see `Executor`."""
        from everstate.engine.execution import SparkExecution  # noqa: PLC0415 - loads PySpark
        from everstate.engine.query.publishing import spread  # noqa: PLC0415 - as above

        spread(self._log, self._settings.publishers, lambda: self._started().session())
        return SparkExecution(
            self.session,
            self.cores,
            output,
            self.folder(output.name, output.generation),
            self._log,
            lease,
            self._settings,
            closed=closed,
            effects=effects,
            end=end,
            migration=migration,
        )

    def folder(self, output: str, generation: Generation) -> OutputFolder:
        """Where the state of a generation is."""
        return OutputFolder(self._home / output / generation.name)

    def sweep(self, output: str, numbers: Collection[int]) -> None:
        """Delete folders of generations that are no more."""
        place = self._home / output
        for path in place.iterdir() if place.is_dir() else ():
            if path.name.isdecimal() and int(path.name) in numbers:
                OutputFolder(path).delete()

    def inspect(self, unit: Unit, generation: Generation, last: Commit | None) -> None:
        """Make sure that a checkpoint is whole and belongs to what the log holds; see `Executor`.

        Raises:
            StateError: If it does not.
        """
        output = unit.output.topic
        folder, steps = self.folder(output, generation), len(stage_groups(unit.depth, generation.shards))
        inspect(folder, folder.read_record(), last, output=output, operators=steps)

    def last_batch(self, output: str, generation: Generation) -> int | None:
        """The last batch that Spark has noted as done."""
        done = checkpoint.numbers(self.folder(output, generation).checkpoint / "commits")
        return done[-1] if done else None

    def batch_end(self, output: str, generation: Generation, batch_id: int) -> Vector:
        """Where a batch ended.

        Raises:
            StateError: If the checkpoint does not say so.
        """
        return checkpoint.batch_end(self.folder(output, generation).checkpoint, batch_id)

    def clone(self, output: str, source: Generation, target: Generation) -> Batch:
        """A checkpoint of its own that begins where another one was; see `Executor`.

        Raises:
            MigrationError: If there is no batch to begin after.
        """
        of, into = (self.folder(output, generation).checkpoint for generation in (source, target))
        return clone(of, into, source.initial)

    def archive(self, output: str, generation: Generation, unit: Unit) -> str:
        """Keep the code of a generation beside its state; returns its digest."""
        from everstate.engine.code_archive import archive  # noqa: PLC0415 - loads Spark's pickling

        return archive(self.folder(output, generation), unit)

    def restored(self, output: str, generation: Generation) -> Unit:
        """The code of a generation as it was kept.

        Raises:
            StateError: If it is gone or damaged.
        """
        from everstate.engine.code_archive import restored  # noqa: PLC0415 - loads Spark's pickling

        return restored(self.folder(output, generation), generation)
