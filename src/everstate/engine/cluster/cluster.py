"""A standalone cluster, on which a service's tasks run: what the session is told, and what is checked first."""

from __future__ import annotations

import re
import secrets
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from everstate.engine.cluster.examination import Examination
from everstate.engine.cluster.executors import asked, awaited, registered
from everstate.engine.cluster.network import route_to
from everstate.engine.cluster.package import shared_package
from everstate.engine.jvm.workers import SCRIPT
from everstate.errors import ConfigurationError, EngineError, EverstateError
from everstate.generations.deploy.master import Master
from everstate.log.private import create_private, make_private

if TYPE_CHECKING:
    from pyspark import SparkContext

    from everstate.generations.deploy.settings import Settings

#: What workers import besides what has to be the same everywhere.
_NEEDED: Final = ("numpy", "pandas", "protobuf", "psutil")
_KAFKA: Final = ("confluent-kafka",)
_NOT_STARTED: Final = re.compile(r'Cannot run program "(?P<program>[^"]+)".*?error=\d+, (?P<why>[^\n]+)', re.DOTALL)
_NO_PYTHON: Final = re.compile(r"everstate: (?P<text>there is no Python at [^\n]+)")
_NO_MODULE: Final = re.compile(r"No module named '?(?P<name>\w+)")
_OTHER_PYTHON: Final = re.compile(r"\[PYTHON_VERSION_MISMATCH\] (?P<text>[^\n]+)")


class Cluster:
    """Where tasks run if not in this process.

    Args:
        settings: Operational settings, with a master.
        reports: A folder of the service, on the disk of its state.
        log: The log's address.
    """

    def __init__(self, settings: Settings, reports: Path, log: str) -> None:
        self.master = Master.of(settings.master or "")
        self._settings = settings
        self._reports = reports
        self._log = None if "://" in log else Path(log).absolute()
        self._python = settings.worker_python or sys.executable
        self._script = ""

    def prepare(self) -> dict[str, str]:
        """What Spark is told, besides what it is told in any case; what tasks need is put where they find it.

        Raises:
            EngineError: If no master answers.
            ConfigurationError: If the log cannot be used there.
        """
        route = route_to(self.master)
        if self._log is not None and not route.stays_here:
            raise ConfigurationError(
                f"the embedded log {self._log} is for one machine, and {self.master} is not on this one",
                hint="Use Kafka: --log kafka://host:9092. `everstate copy` takes topics there.",
            )
        make_private(self._reports)
        self._script = str(shared_package(self._reports) / SCRIPT.name)
        cores = {} if self._settings.cores is None else {"spark.cores.max": str(self._settings.cores)}
        return {
            "spark.master": str(self.master),
            # Whoever reaches the master reaches this address: on loopback nothing listens to more than that.
            "spark.driver.host": self._settings.driver_host or route.own,
            "spark.driver.bindAddress": route.own,
            "spark.executor.memory": self._settings.memory,
            "spark.scheduler.minRegisteredResourcesRatio": "1",
            "spark.executorEnv.EVERSTATE_WORKER_PYTHON": self._python,
            "spark.executorEnv.SPARK_AUTH_SOCKET_TIMEOUT": "60",
            **cores,
        }

    @property
    def environment(self) -> dict[str, str]:
        """What this process's environment has to say: one path for the script, here and there."""
        return {
            "PYSPARK_PYTHON": self._script,
            "PYSPARK_DRIVER_PYTHON": self._script,
            "EVERSTATE_DRIVER_PYTHON": sys.executable,
        }

    def join(self, context: SparkContext) -> None:
        """Wait for executors, and make sure that each can do what it will be asked for.

        Raises:
            EngineError: If there is none, or something is missing there.
            ConfigurationError: If one does not see the folder of the service's state.
        """
        folder = self._reports / f"probe-{uuid4().hex}"
        token = secrets.token_hex(16)
        make_private(folder)
        try:
            with create_private(folder / "driver") as file:
                file.write(token.encode())
            kafka = _KAFKA if self._log is None else ()
            examination = Examination(folder, token, (*_NEEDED, *kafka), self._python, self._log)
            found = awaited(lambda: registered(context), self._settings.cores, str(self.master))
            examination.judge(self._answers(context, examination.question, found.total))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _answers(self, context: SparkContext, question: dict[str, Any], tasks: int) -> list[dict[str, Any]]:
        try:
            return asked(context, question, tasks)
        except Exception as error:
            raise self._named(str(error)) from error

    def _named(self, text: str) -> EverstateError:
        """Why no task could even begin."""
        if found := _NOT_STARTED.search(text):
            return ConfigurationError(
                f"a machine of the cluster cannot run {found['program']}: {found['why']}",
                hint="The state's folder has to be one that all machines see under the same path, as the same user, "
                "on a disk from which programs may be run: --state-dir /mnt/everstate",
            )
        if found := _NO_PYTHON.search(text):
            return EngineError(
                f"on a machine of the cluster {found['text']}",
                hint="Install it there, or name the one that is: EVERSTATE_WORKER_PYTHON=/path/to/python",
            )
        if found := _OTHER_PYTHON.search(text):
            return EngineError(
                f"a machine of the cluster has a different Python from this one: {found['text'][:200]}",
                hint="Install the same one there, and name it: EVERSTATE_WORKER_PYTHON=/path/to/python",
            )
        if found := _NO_MODULE.search(text):
            return EngineError(
                f"a machine of the cluster lacks the package {found['name']}",
                hint=f"Install it there: {self._python} -m pip install everstate[kafka]",
            )
        return EngineError(
            f"no task can be run on {self.master}: {(text.splitlines() or ['no message'])[0][:300]}",
            hint="The logs of the workers, in the folder `work` of each, say more.",
        )
