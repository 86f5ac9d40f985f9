"""How a service does, from the log alone: who runs it, how far each output is, and what is being built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from everstate.errors import LogError
from everstate.generations.generation import build_lease
from everstate.generations.registry import Registry, now_ms
from everstate.generations.report import read_report
from everstate.generations.usage import source_topics
from everstate.log import vectors
from everstate.log.leasing import HEARTBEAT_TIMEOUT_MS
from everstate.log.waiting import Waiting, waits_for
from everstate.schema.topic_names import dead_letter_topic

if TYPE_CHECKING:
    from collections.abc import Iterable

    from everstate.generations.generation import Generation, OutputGenerations
    from everstate.log.descriptions import Vector
    from everstate.log.protocol import Log

#: A process holds the lease and lives; lives but gives no sign of it; has given the lease back; has died with it.
RUNNING: Final = "running"
SILENT: Final = "silent"
STOPPED: Final = "stopped"
GONE: Final = "gone"


@dataclass(frozen=True, kw_only=True)
class ProcessStatus:
    """The process that holds a lease of a service, or held it last.

    Attributes:
        state: One of `RUNNING`, `SILENT`, `STOPPED`, `GONE`.
        host: Where it runs.
        pid: Its number there.
        heartbeat_ms: When it was last heard of.
        started_ms: When it began to work on the service; None if it has not said so.
    """

    state: str
    host: str
    pid: int
    heartbeat_ms: int
    started_ms: int | None = None

    @property
    def alive(self) -> bool:
        """Whether it is at work, as far as can be told."""
        return self.state in (RUNNING, SILENT)


@dataclass(frozen=True, kw_only=True)
class BuildStatus:
    """A generation that is being built.

    Attributes:
        generation: Its number.
        status: Where it is in its life.
        done: Records that it has read.
        left: Records that it has to read.
        rate: Records per second; None if nobody builds it now, or has said so.
    """

    generation: int
    status: str
    done: int
    left: int
    rate: float | None

    @property
    def share(self) -> float:
        """How much of it is done, from 0 to 1."""
        return self.done / (self.done + self.left) if self.done + self.left else 1.0

    @property
    def seconds_left(self) -> float | None:
        """How long it will take at this rate; None if that is not known."""
        return self.left / self.rate if self.rate else None


@dataclass(frozen=True, kw_only=True)
class OutputStatus:
    """One output.

    Attributes:
        output: Its topic.
        generation: The active generation; None if none is.
        lag_records: Records of its sources that it has not read.
        lag_seconds: How long the oldest of them has been waiting; None if there is none.
        batch_ms: When its last micro-batch was committed; None if there was none.
        batch_records: How many records that had read.
        rate: Records per second lately; None if nobody runs it.
        dead_letters: Records in its dead-letter topic.
        build: What is being built; None for nothing.
        waits_for: The partition that holds its steps up that go by time; None if none is far behind.
    """

    output: str
    generation: int | None
    lag_records: int
    lag_seconds: float | None
    batch_ms: int | None
    batch_records: int
    rate: float | None
    dead_letters: int
    build: BuildStatus | None
    waits_for: Waiting | None = None


@dataclass(frozen=True, kw_only=True)
class ServiceStatus:
    """A service.

    Attributes:
        service: Its name.
        at_ms: When this was so.
        process: Who publishes; None if nobody ever has.
        builder: Who builds, where that is another process; None for nobody.
        outputs: What it has deployed.
    """

    service: str
    at_ms: int
    process: ProcessStatus | None
    builder: ProcessStatus | None
    outputs: tuple[OutputStatus, ...]


def status(log: Log, service: str) -> ServiceStatus:
    """How a service does now."""
    now = now_ms()
    process, report = _process(log, service, service, now)
    builder, building = _process(log, service, build_lease(service), now)
    if builder is not None and (not builder.alive or (process is not None and builder.pid == process.pid)):
        builder = None
    rates = report.get("outputs", {}) if process is not None and process.alive else {}
    generations = Registry(log, service).generations()
    outputs = [
        _output(log, service, versions, _rate(rates, name), _rate(building.get("builds", {}), name), now)
        for name, versions in sorted(generations.items())
        if versions.active is not None or versions.building is not None
    ]
    return ServiceStatus(service=service, at_ms=now, process=process, builder=builder, outputs=tuple(outputs))


def deployed(log: Log) -> list[str]:
    """The services of a log that have outputs."""
    return [service for service in log.services() if Registry(log, service).generations()]


def _process(log: Log, service: str, lease: str, now: int) -> tuple[ProcessStatus | None, dict[str, Any]]:
    tenure = log.tenure(lease)
    if tenure is None:
        return None, {}
    alive = tenure.held and log.holder(lease) is not None
    if alive:
        state = RUNNING if now - tenure.heartbeat_ms < HEARTBEAT_TIMEOUT_MS else SILENT
    else:
        state = GONE if tenure.held else STOPPED
    report = read_report(log, service, lease, tenure.token)
    holder = tenure.holder
    # What follows the name of the machine tells its starts apart, and says nothing to people.
    host = holder.host.partition("/")[0]
    found = ProcessStatus(
        state=state,
        host=host,
        pid=holder.pid,
        heartbeat_ms=tenure.heartbeat_ms,
        started_ms=report.get("started_ms") if alive else None,
    )
    return found, report if alive else {}


def _rate(known: Any, name: str) -> float | None:
    return known[name]["rate"] if name in known else None


def _output(
    log: Log, service: str, versions: OutputGenerations, rate: float | None, building: float | None, now: int
) -> OutputStatus:
    active, output = versions.active, versions.output
    last = log.last_commit(service, output)
    position = last.end if last is not None else active.initial if active is not None else {}
    ends = _ends(log, source_topics(versions)) if active is not None else {}
    letters = dead_letter_topic(output)
    return OutputStatus(
        output=output,
        generation=None if active is None else active.number,
        lag_records=vectors.lag(position, ends),
        lag_seconds=_waiting(log, position, ends, now),
        batch_ms=None if last is None else last.committed_ms,
        batch_records=0 if last is None else vectors.lag(last.start, last.end),
        rate=rate,
        dead_letters=log.describe(letters).most_records if log.has_topic(letters) else 0,
        build=None if versions.building is None else _build(log, service, versions, versions.building, building),
        waits_for=None if last is None else waits_for(last.times),
    )


def _build(
    log: Log, service: str, versions: OutputGenerations, generation: Generation, rate: float | None
) -> BuildStatus:
    last = log.last_commit(service, versions.output, generation.name)
    position = generation.initial if last is None else last.end
    topics = set(generation.initial) or source_topics(versions)
    return BuildStatus(
        generation=generation.number,
        status=str(generation.status),
        done=vectors.lag(generation.initial, position),
        left=vectors.lag(position, _ends(log, topics)),
        rate=rate,
    )


def _ends(log: Log, topics: Iterable[str]) -> Vector:
    return log.end_offsets([topic for topic in sorted(topics) if log.has_topic(topic)])


def _waiting(log: Log, position: Vector, ends: Vector, now: int) -> float | None:
    """How long the oldest record waits that was not read, in seconds."""
    oldest: list[int] = []
    for topic, partition, end in vectors.positions(ends):
        try:
            begin = log.begin_offsets([topic])[topic][partition]
            start = max(begin, vectors.offset_at(position, topic, partition))
            if start < end:
                found = log.read(topic, partition, start, limit=1, appended=True)
                oldest += [
                    appended if appended is not None else ts for appended, ts in found.select("appended", "ts").rows()
                ]
        except LogError:
            continue  # it is being compacted or deleted at this moment; the next look will tell
    return max(0.0, (now - min(oldest)) / 1000) if oldest else None
