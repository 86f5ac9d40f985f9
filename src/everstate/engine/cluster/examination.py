"""Judges what the machines of a cluster have said: what is missing is named, with what to do about it."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from everstate.engine.cluster import probe
from everstate.errors import ConfigurationError, EngineError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

#: What workers calculate with: another version on one machine might give other results there.
SAME: Final = ("polars", "pyarrow", "pyspark")
_SHARED: Final = (
    "Name a folder on a disk that all machines of the cluster mount at the same path, and run driver and workers as "
    "one user: --state-dir /mnt/everstate"
)


@dataclass(frozen=True)
class Examination:
    """What is asked, and what has to be answered.

    Attributes:
        folder: A folder of the service, in which this process has left the token.
        token: What it has left.
        needed: Packages that workers import, in whatever version.
        python: The interpreter's path there, for commands.
        log: The folder of the embedded log; None where the log is no folder.
    """

    folder: Path
    token: str
    needed: tuple[str, ...]
    python: str
    log: Path | None = None

    @property
    def question(self) -> dict[str, Any]:
        """For each machine."""
        return {
            "folder": str(self.folder),
            "token": self.token,
            "packages": [*SAME, *self.needed],
            "seen": [] if self.log is None else [str(self.log)],
        }

    def judge(self, answers: Sequence[dict[str, Any]]) -> None:
        """Refuse a cluster that lacks something.

        Raises:
            ConfigurationError: If a machine does not see the folders, or is one that the embedded log cannot be on.
            EngineError: If a package is missing there, or has another version.
        """
        for told in sorted(answers, key=lambda one: str(one["host"])):
            self._require_disk(told)
            self._require_log(told)
            self._require_packages(told)

    def _require_disk(self, told: dict[str, Any]) -> None:
        host = told["host"]
        if told["trouble"] is not None:
            raise ConfigurationError(
                f"a machine of the cluster, {host}, does not share {self.folder.parent} with this one: "
                f"{told['trouble']}",
                hint=_SHARED,
            )
        try:
            returned = (self.folder / told["wrote"]).read_text(encoding="utf-8")
        except OSError as error:
            returned = error.strerror or str(error)
        if returned != self.token:
            raise ConfigurationError(
                f"what a machine of the cluster, {host} (user {told['user']}), writes to {self.folder.parent} cannot "
                f"be read here: {returned[:100]}",
                hint=_SHARED,
            )

    def _require_log(self, told: dict[str, Any]) -> None:
        if self.log is None:
            return
        if told["machine"] != probe.machine() or told["unseen"]:
            raise ConfigurationError(
                f"the embedded log {self.log} is on this machine, and the cluster also works on {told['host']}: SQLite "
                "cannot keep a log intact across several machines",
                hint="Use Kafka: --log kafka://host:9092. `everstate copy` takes topics there.",
            )

    def _require_packages(self, told: dict[str, Any]) -> None:
        ours = probe.versions([*SAME, *self.needed])
        lacking = [
            name if name in self.needed else f"{name}=={ours[name]}"
            for name, version in told["packages"].items()
            if version is None or (name in SAME and version != ours[name])
        ]
        if lacking:
            found = ", ".join(f"{name} {told['packages'][name.partition('=')[0]] or 'missing'}" for name in lacking)
            words = " ".join(f"'{name}'" for name in lacking)
            raise EngineError(
                f"a machine of the cluster, {told['host']}, lacks what this one has: {found}",
                hint=f"Install it there: {self.python} -m pip install {words}",
            )
        if told["python"].rpartition(".")[0] != platform.python_version().rpartition(".")[0]:
            raise EngineError(
                f"a machine of the cluster, {told['host']}, has Python {told['python']}, and this one "
                f"{platform.python_version()}",
                hint="Install the same one there, and name it: EVERSTATE_WORKER_PYTHON=/path/to/python",
            )
