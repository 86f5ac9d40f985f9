"""Operational settings: how a service is run, never what it computes.

Each can be given on the command line, as an environment variable `EVERSTATE_<NAME>`, in the project's file, or by the
service itself; the first of these that is there counts. None of them changes a result.
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from everstate.errors import ConfigurationError
from everstate.generations.deploy.master import Master
from everstate.plan.guards import Limits
from everstate.project.config_values import truth
from everstate.project.project_file import DEFAULT_LOG, LOG, current

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from everstate.project.project_file import Project

_LEVELS: Final = ("ALL", "TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF")
_APPROVALS: Final = ("wait", "fail", "approve")
_MEMORY: Final = re.compile(r"[1-9][0-9]*[kmgt]", re.IGNORECASE)
PREFIX: Final = "EVERSTATE_"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All operational settings with their defaults.

    Attributes:
        trigger: Seconds between the starts of two micro-batches, and between two looks for new records. A batch that
            takes longer is followed at once by the next.
        max_records: The most records of one micro-batch of one output.
        preview_records: A preview that reads no more than this is calculated without Spark, and not kept for the run.
        recalculation_records: The same while a generation is built, where throughput counts and not delay.
        shards: Shards of a generation; by default the cores at its first start, and then what it has. Another number is
            another generation, which publishes nothing.
        cores: How many cores Spark uses; by default all, of this machine or of the cluster.
        memory: Memory of Spark's Java process, such as "2g"; on a cluster, of each of them.
        master: A standalone cluster to run on, spark://host:7077; by default Spark runs in this machine's own process.
        worker_python: The Python on the cluster's machines; by default where this one's is.
        driver_host: The name or address by which the cluster reaches this machine; by default the address from which
            it reaches the master.
        state_dir: Where state and checkpoints are; by default the folder `state` inside the embedded log.
        scratch_dir: Where RocksDB works on its files; by default the system's folder for temporary files.
        log_level: What Spark reports on the terminal.
        heartbeat: Seconds between two signs of life of the service's lease.
        stop_timeout: Seconds that a stopping service waits for the batch in progress.
        restarts: How often in a row the query of an output is started again after something that may pass: lost Python
            workers, a full disk, a broken connection. It waits longer each time, and a committed batch ends the row.
        stall_timeout: Seconds without any sign of work after which a batch is given up; 0 for never.
        retain_generations: How many replaced generations of an output keep their state, so that going back to them
            needs no replay.
        approval: What happens to a cutover that would remove much: "wait" leaves the active generation in place until
            it is approved, "fail" gives the new one up and stops with an error, "approve" goes on.
        tombstone_share: The share of a table's keys that a cutover may remove without approval.
        tombstone_least: A table with fewer keys has no such limit.
        publishers: How many tasks send a large micro-batch to Kafka: above some 300,000 records a second one producer
            is the limit. With more than one, consumers see a batch whole publisher by publisher.
        full_compiler: Java compiles what it runs often a second time, for speed: dearer in the first minutes than
            it is worth, since the work is done in Python's workers, and a few percent quicker after many.
    """

    trigger: float = 0.1
    max_records: int = 1_000_000
    recalculation_records: int = 1_000_000
    preview_records: int = 200_000
    shards: int | None = None
    cores: int | None = None
    memory: str = "2g"
    master: str | None = None
    worker_python: str | None = None
    driver_host: str | None = None
    state_dir: Path | None = None
    scratch_dir: Path | None = None
    log_level: str = "ERROR"
    heartbeat: float = 3.0
    stop_timeout: float = 60.0
    restarts: int = 10
    stall_timeout: float = 600.0
    retain_generations: int = 1
    approval: str = "wait"
    tombstone_share: float = Limits.share
    tombstone_least: int = Limits.least
    publishers: int = 1
    full_compiler: bool = False

    def __post_init__(self) -> None:
        self._require(self.trigger >= 0, "trigger", "a number of seconds, 0 or more")
        self._require(self.max_records > 0, "max_records", "a number of records, 1 or more")
        self._require(self.shards is None or self.shards > 0, "shards", "a number of shards, 1 or more")
        self._require(self.cores is None or self.cores > 0, "cores", "a number of cores, 1 or more")
        self._require(bool(_MEMORY.fullmatch(self.memory)), "memory", "a number with k, m, g or t, such as 2g")
        self._require(self.log_level in _LEVELS, "log_level", f"one of {', '.join(_LEVELS)}")
        self._require(self.heartbeat > 0, "heartbeat", "a number of seconds above 0")
        self._require(self.stop_timeout >= 0, "stop_timeout", "a number of seconds, 0 or more")
        self._require(self.restarts >= 0, "restarts", "a number, 0 or more")
        self._require(self.stall_timeout >= 0, "stall_timeout", "a number of seconds, 0 or more")
        self._require(self.recalculation_records > 0, "recalculation_records", "a number of records, 1 or more")
        self._require(self.preview_records >= 0, "preview_records", "a number of records, 0 or more")
        self._require(self.retain_generations >= 0, "retain_generations", "a number, 0 or more")
        self._require(self.approval in _APPROVALS, "approval", f"one of {', '.join(_APPROVALS)}")
        self._require(self.publishers > 0, "publishers", "a number of publishers, 1 or more")
        self._require(0 <= self.tombstone_share <= 1, "tombstone_share", "a number from 0 to 1")
        self._require(self.tombstone_least >= 0, "tombstone_least", "a number of keys, 0 or more")

    @property
    def used_cores(self) -> int:
        """How many cores Spark gets on this machine; how many a cluster has, only that can say (`Executor.cores`)."""
        return self.cores or os.cpu_count() or 1

    @classmethod
    def resolve(
        cls,
        options: Mapping[str, object] | None = None,
        *,
        service: Mapping[str, object] | None = None,
        environment: Mapping[str, str] | None = None,
        project: Project | None = None,
    ) -> Settings:
        """Put the settings together: options first, then the environment, the project's file, the service's own.

        Args:
            options: What the command line says, or the arguments of `Service.run`.
            service: What the service says in its code.
            environment: By default that of this process.
            project: By default that of the working directory.

        Raises:
            ConfigurationError: If a name is unknown or a value does not fit.

        Example:
            >>> Settings.resolve({"shards": "4"}, service={"shards": 2}, environment={}).shards
            4
        """
        environment = os.environ if environment is None else environment
        named = {field.name: PREFIX + field.name.upper() for field in fields(cls)}
        project = current() if project is None else project
        project.require_known(named)
        written = {name: project.value(name) for name in named if name in project.values}
        given: dict[str, object] = {**(service or {}), **written}
        given.update({name: environment[variable] for name, variable in named.items() if variable in environment})
        given.update({name: value for name, value in (options or {}).items() if value is not None})
        unknown = sorted(set(given) - set(named))
        if unknown:
            raise ConfigurationError(
                f"unknown setting {', '.join(unknown)}", hint=f"The settings are: {', '.join(sorted(named))}."
            )
        with _at_its_line(project, [name for name in written if given[name] is written[name]]):
            values = {name: _parsed(name, value) for name, value in given.items() if value is not None}
            return replace(cls(), **values)

    @staticmethod
    def _require(fits: bool, name: str, expected: str) -> None:  # noqa: FBT001 - reads as a condition
        if not fits:
            raise ConfigurationError(
                f"the setting {name} must be {expected}",
                hint=f"Correct the option --{name.replace('_', '-')} or the variable {PREFIX}{name.upper()}.",
            )


@contextlib.contextmanager
def _at_its_line(project: Project, written: Sequence[str]) -> Iterator[None]:
    """An error about a setting that a project's file gives says where."""
    try:
        yield
    except ConfigurationError as error:
        name = next((name for name in written if f"the setting {name} " in error.message), None)
        if name is None:
            raise
        raise project.refusal(error.message, f"Correct this line, or pass {_option(name)}.", name) from error


@dataclass(frozen=True)
class LogChoice:
    """Which log, and who says so.

    Attributes:
        address: The folder, or an address.
        why: A clause for people, such as "EVERSTATE_LOG says to look".
    """

    address: str
    why: str


def choose_log(given: str | Path | None = None, service: str | Path | None = None) -> LogChoice:
    """Which log: the option, the environment, the project's file, the service's own, or the folder `.everstate`.

    Raises:
        ConfigurationError: If the project's file has a mistake.
    """
    variable = os.environ.get("EVERSTATE_LOG")
    if given:
        return LogChoice(str(given), "--log says to look")
    if variable:
        return LogChoice(variable, "EVERSTATE_LOG says to look")
    project = current()
    project.require_known([field.name for field in fields(Settings)])
    if LOG in project.values:
        return LogChoice(project.value(LOG), f"{project.place(LOG)} says to look")
    if service:
        return LogChoice(str(service), "the service's own log= says to look")
    if project.folder is not None:
        return LogChoice(str(project.folder / DEFAULT_LOG), f"the project of {project.place()} has it by default")
    return LogChoice(f"./{DEFAULT_LOG}", "it is by default")


def log_address(given: str | Path | None, service: str | Path | None) -> str:
    """The address of the log that `choose_log` chooses."""
    return choose_log(given, service).address


def _folder(name: str, place: Any) -> Path:
    """A folder of a disk.

    Raises:
        ConfigurationError: If it is anything else.
    """
    # A path object has made one slash of two.
    scheme, colon, _ = str(place).partition(":/")
    if colon and re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]+", scheme):
        raise ConfigurationError(
            f"the setting {name} cannot be {_unmangled(place)!r}: object stores and file systems other than the "
            "machine's own are not supported",
            hint="Name a folder on a disk; where several machines work for one service, one that all of them mount at "
            f"the same path, such as NFS: {_option(name)} /mnt/everstate",
        )
    return Path(place)


def _unmangled(place: Any) -> str:
    return str(place) if "://" in str(place) else str(place).replace(":/", "://", 1)


_PARSERS: Final[dict[str, Callable[[Any], Any]]] = {
    "trigger": float,
    "max_records": int,
    "shards": int,
    "cores": int,
    "memory": str,
    "master": lambda text: str(Master.of(str(text))),
    "worker_python": str,
    "driver_host": str,
    "state_dir": lambda place: _folder("state_dir", place),
    "scratch_dir": lambda place: _folder("scratch_dir", place),
    "log_level": lambda text: str(text).upper(),
    "heartbeat": float,
    "stop_timeout": float,
    "restarts": int,
    "stall_timeout": float,
    "recalculation_records": int,
    "preview_records": int,
    "retain_generations": int,
    "approval": str,
    "tombstone_share": float,
    "tombstone_least": int,
    "publishers": int,
    "full_compiler": truth,
}


def _parsed(name: str, value: object) -> Any:
    try:
        return _PARSERS[name](value)
    except ConfigurationError:
        raise
    except (ValueError, TypeError, KeyError) as error:
        raise ConfigurationError(
            f"the setting {name} cannot be {value!r}",
            hint=f"Correct the option {_option(name)} or the variable {PREFIX}{name.upper()}.",
        ) from error


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
