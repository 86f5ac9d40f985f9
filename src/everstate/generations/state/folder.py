"""Where the state of a service lies on disk.

<state_dir>/<service>/<output>/<generation>/output.json    what the state belongs to: shards, first vector
<state_dir>/<service>/<output>/<generation>/unit.bin       the output's code, by value
<state_dir>/<service>/<output>/<generation>/sources.json   what the user's text said, for plans to show; may be missing
<state_dir>/<service>/<output>/<generation>/sample.json    some inputs, and the digest of what became of them
<state_dir>/<service>/<output>/<generation>/stopped.json   how Spark's logs ended when it was last stopped in order
<state_dir>/<service>/<output>/<generation>/migration.json whose state it begins with, if it was migrated
<state_dir>/<service>/<output>/<generation>/checkpoint/    Spark's
<state_dir>/<service>/@spark_steps/<step>/<topic>/<run>/    Spark's checkpoints of from_spark() and to_spark()
<state_dir>/<service>/@history/<topic>/<partition>/        archives of sources: no state, nothing rebuilds them
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol
from uuid import uuid4

from everstate.errors import CheckpointDamagedError, ConfigurationError, StateError, formats
from everstate.errors.exhaustion import exhausted, exhaustion
from everstate.log import vectors
from everstate.log.durable import replacing
from everstate.log.private import close_to_others, create_private, make_private
from everstate.project.project_file import DEFAULT_LOG

if TYPE_CHECKING:
    from everstate.log.descriptions import Vector
    from everstate.log.protocol import Log

#: Of the state that an output keeps, pages and documents: whatever an earlier version cannot read makes it one higher.
FORMAT: Final = 1
_DIGEST: Final = "sha256"


@dataclass(frozen=True, kw_only=True)
class OutputRecord:
    """What an output's state belongs to; decided at its first start.

    Attributes:
        shards: How many shards it has.
        generation: Which version of the output.
        fingerprint: Of the unit that built it.
        initial: Where in its sources it began.
    """

    shards: int
    generation: str
    fingerprint: str
    initial: Vector


class StateFolder(Protocol):
    """What is kept of one generation of an output, beside its state itself."""

    @property
    def home(self) -> Path:
        """The folder of the service's state, where archives of sources are."""

    def exists(self) -> bool:
        """Whether there is anything."""

    def size(self) -> int:
        """Its bytes."""

    def delete(self) -> None:
        """Delete all of it, as far as it is there."""

    def write_record(self, record: OutputRecord) -> None:
        """Store what the state belongs to, durably."""

    @property
    def migrated(self) -> bool:
        """Whether it begins with the state of another generation."""

    def read_migration(self) -> dict[str, Any]:
        """Whose state it begins with ("of"), and from which batch on ("batch"); empty if it begins with none.

        Raises:
            CheckpointDamagedError: If it cannot be read.
        """

    def write_migration(self, **known: int) -> None:
        """Remember whose state it begins with."""

    def sample_stamp(self) -> int | None:
        """Another number for each sample that is written; None without one."""

    def read_sample(self) -> dict[str, Any] | None:
        """Some of its inputs, and what it made of them; None without them.

        Raises:
            CheckpointDamagedError: If it cannot be read.
        """

    def write_sample(self, document: dict[str, Any]) -> None:
        """Keep a sample in the place of the one that is there."""

    def read_sources(self) -> dict[str, Any] | None:
        """What the text of its service said; None where that was not kept, or cannot be read: nothing depends on it."""

    def write_sources(self, document: dict[str, Any]) -> None:
        """Keep what the text of its service says."""


@dataclass(frozen=True)
class OutputFolder:
    """The folder of one generation of an output, on disk."""

    path: Path

    @property
    def home(self) -> Path:
        """The folder of the service's state."""
        return self.path.parent.parent

    def size(self) -> int:
        """Bytes of all its files, which may go while they are looked at."""
        total = 0
        for folder, _, names in os.walk(self.path):
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    total += Path(folder, name).stat().st_size
        return total

    @property
    def checkpoint(self) -> Path:
        """Spark's checkpoint."""
        return self.path / "checkpoint"

    @property
    def code_file(self) -> Path:
        """The output's code."""
        return self.path / "unit.bin"

    @property
    def sample_file(self) -> Path:
        """Some of its inputs, and what it made of them."""
        return self.path / "sample.json"

    @property
    def migration_file(self) -> Path:
        """Whose state it begins with; not there if it begins with none."""
        return self.path / "migration.json"

    @property
    def migrated(self) -> bool:
        """Whether it begins with the state of another generation."""
        return self.migration_file.exists()

    def read_migration(self) -> dict[str, Any]:
        """Whose state it begins with ("of"), and from which batch on ("batch"); empty if it begins with none.

        Raises:
            CheckpointDamagedError: If the file cannot be read.
        """
        return read_document(self.migration_file) or {}

    def write_migration(self, **known: int) -> None:
        """Remember whose state it begins with."""
        write_document(self.migration_file, known)

    def sample_stamp(self) -> int | None:
        """When the sample was written; None without one."""
        try:
            return self.sample_file.stat().st_mtime_ns
        except FileNotFoundError:
            return None

    def read_sample(self) -> dict[str, Any] | None:
        """Some of its inputs, and what it made of them; None without them.

        Raises:
            CheckpointDamagedError: If the file cannot be read.
        """
        return read_document(self.sample_file)

    def write_sample(self, document: dict[str, Any]) -> None:
        """Keep a sample in the place of the one that is there."""
        write_document(self.sample_file, document)

    @property
    def sources_file(self) -> Path:
        """What the text of its service said."""
        return self.path / "sources.json"

    def read_sources(self) -> dict[str, Any] | None:
        """What the text of its service said; None where that was not kept, or cannot be read: nothing depends on it."""
        try:
            return read_document(self.sources_file)
        except CheckpointDamagedError:
            return None

    def write_sources(self, document: dict[str, Any]) -> None:
        """Keep what the text of its service says."""
        write_document(self.sources_file, document)

    def exists(self) -> bool:
        """Whether there is anything."""
        return self.path.exists()

    def delete(self) -> None:
        """Delete all of it, as far as it is there."""
        shutil.rmtree(self.path, ignore_errors=True)

    @property
    def record_file(self) -> Path:
        """What the state belongs to."""
        return self.path / "output.json"

    def read_record(self) -> OutputRecord | None:
        """What the state belongs to; None if there is no state.

        Raises:
            CheckpointDamagedError: If the file cannot be read.
            StateError: If a newer version of Everstate has written it.
        """
        document = read_document(self.record_file)
        if document is None:
            return None
        try:
            known = formats.require(document, FORMAT, StateError, f"the state in {self.path}")
            return OutputRecord(**{**known, "initial": vectors.from_offsets(known["initial"])})
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise CheckpointDamagedError(f"{self.record_file} is damaged: {error}", hint=CURE) from error

    def write_record(self, record: OutputRecord) -> None:
        """Store what the state belongs to, durably."""
        write_document(self.record_file, {formats.KEY: FORMAT, **asdict(record)})

    def read_stopped(self) -> dict[str, Any] | None:
        """How the last orderly stop left Spark's logs; None after a crash."""
        return read_document(self.path / "stopped.json")

    def write_stopped(self, document: dict[str, Any]) -> None:
        """Remember an orderly stop."""
        write_document(self.path / "stopped.json", document)

    def forget_stopped(self) -> None:
        """The query runs again."""
        (self.path / "stopped.json").unlink(missing_ok=True)


#: The part of a service's folder for records on their way to a log that is not a folder; no topic has such a name.
STAGING: Final = "@log"
#: The part for the positions of steps of Spark's own.
SPARK_STEPS: Final = "@spark_steps"
#: What to do about state that is missing or damaged.
CURE = (
    "Restore the folder from a copy of the same moment, or rebuild the output from its sources: "
    "everstate run SERVICE.py --recalculate OUTPUT"
)


def service_folder(state_dir: Path | str | None, log: Log | str, service: str) -> Path:
    """The folder of a service's state; by default inside the embedded log, or where that would be.

    Args:
        state_dir: The folder for the state of all services; None for the usual one.
        log: The log, or its address.
        service: The service.
    """
    if state_dir is not None:
        return Path(state_dir).absolute() / service
    address = log if isinstance(log, str) else log.url
    root = Path(DEFAULT_LOG if "://" in address else address)
    return root.absolute() / "state" / service


def prepare_home(home: Path) -> None:
    """Make the folder of a service's state, for its owner alone, before anything depends on it.

    Raises:
        ConfigurationError: If it cannot be made, or nothing can be written there.
    """
    probe = home / f".writable.{uuid4().hex}"
    try:
        make_private(home)
        close_to_others(home)
        create_private(probe).close()
        probe.unlink()
    except OSError as error:
        raise ConfigurationError(
            f"state cannot be kept in {home}: {error.strerror or error}",
            hint="Name a folder that can be written to: --state-dir PATH or EVERSTATE_STATE_DIR.",
        ) from error


def read_document(path: Path) -> dict[str, Any] | None:
    """A JSON object from a file; None if there is no file.

    Raises:
        CheckpointDamagedError: If it is not what was written.
    """
    try:
        document = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        lacking = exhaustion(error)
        if lacking is not None:
            raise exhausted(lacking, f"{path} cannot be read") from error
        raise CheckpointDamagedError(f"{path} cannot be read: {error}", hint=CURE) from error
    except ValueError as error:
        raise CheckpointDamagedError(f"{path} is damaged: {error}", hint=CURE) from error
    if not isinstance(document, dict) or document.pop(_DIGEST, None) != _digest(document):
        raise CheckpointDamagedError(f"{path} is damaged: its content does not match its checksum", hint=CURE)
    return document


def _digest(document: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def write_document(path: Path, document: dict[str, Any]) -> None:
    """Write a JSON file that is either complete or not there."""
    plain = json.loads(json.dumps(document))  # as it will be read: partitions are text in JSON
    write_file(path, json.dumps({**plain, _DIGEST: _digest(plain)}, indent=1, sort_keys=True).encode())


def write_file(path: Path, content: bytes) -> None:
    """Write a file that is either complete or not there, durably."""
    make_private(path.parent)
    with replacing(path) as file:
        file.write(content)
