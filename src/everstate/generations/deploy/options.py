"""What is asked for with one run of a service, beside its settings."""

from __future__ import annotations

import stat
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict

from everstate.errors import ConfigurationError, EverstateError
from everstate.plan.actions import Plan
from everstate.plan.document import from_json
from everstate.plan.facts import Options

if TYPE_CHECKING:
    from collections.abc import Sequence

#: A plan has some kilobytes for each output; this is far beyond any.
LARGEST: Final = 64_000_000


class RunOptions(TypedDict, total=False):
    """Everything that a command, or `Service.run`, takes by name: where, how (`Settings`), and what for (`Wishes`)."""

    log: str | Path | None
    show: bool | None
    session: Any
    wishes: Wishes | None
    trigger: float | None
    max_records: int | None
    recalculation_records: int | None
    preview_records: int | None
    shards: int | None
    cores: int | None
    memory: str | None
    master: str | None
    worker_python: str | None
    driver_host: str | None
    state_dir: str | Path | None
    scratch_dir: str | Path | None
    log_level: str | None
    heartbeat: float | None
    stop_timeout: float | None
    restarts: int | None
    stall_timeout: float | None
    retain_generations: int | None
    approval: str | None
    tombstone_share: float | None
    tombstone_least: int | None
    publishers: int | None
    full_compiler: bool | None
    asks: bool
    recalculate: Sequence[str]
    accept_truncated: Sequence[str]
    keep_topic: bool
    approve: bool
    take_over: bool
    standby: bool
    effects: bool
    plan: Plan | str | Path | None
    file: str
    approval_command: str


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What a user asks for with this run.

    Attributes:
        recalculate: Outputs to rebuild although nothing has changed.
        accept_truncated: Topics whose lost past is accepted.
        keep_topic: Topics of outputs that are no longer declared stay as they are.
        approve: Cutovers need no approval.
        take_over: The lease of a live process is taken although this is the same version.
        standby: Wait until the process of the same version has ended, instead of stopping with an error.
        effects: Side effects happen in a recalculation, too.
        plan: A plan that was made before: only what it says is done.
        file: The service's file, for commands in hints.
        approval_command: What approves a cutover, for hints; empty for a run with --approve.

    Raises:
        ConfigurationError: If a plan comes with something that it should say itself.
    """

    recalculate: tuple[str, ...] = ()
    accept_truncated: tuple[str, ...] = ()
    keep_topic: bool = False
    approve: bool = False
    take_over: bool = False
    standby: bool = False
    effects: bool = False
    plan: Plan | None = None
    file: str = "SERVICE.py"
    approval_command: str = ""

    def __post_init__(self) -> None:
        if self.plan is not None and (self.recalculate or self.accept_truncated or self.keep_topic):
            raise ConfigurationError(
                "a plan already says what happens: --recalculate, --accept-truncated and --keep-topic cannot be added "
                "to it",
                hint=f"Make a plan with these options: everstate plan {self.file} ... --out FILE",
            )

    @classmethod
    def names(cls) -> frozenset[str]:
        """What can be asked for."""
        return frozenset(field.name for field in fields(cls))

    def asking(self, **asked: Any) -> Wishes:
        """With more wishes, as a user writes them: any sequence of names, a plan or the file that it is in.

        Raises:
            ConfigurationError: If the plan cannot be read.

        Example:
            >>> Wishes().asking(recalculate=["totals"]).recalculate
            ('totals',)
        """
        for name in ("recalculate", "accept_truncated"):
            if name in asked:
                asked[name] = (asked[name],) if isinstance(asked[name], str) else tuple(asked[name])
        plan = asked.get("plan")
        if isinstance(plan, (str, Path)):
            asked["plan"] = read_plan(Path(plan))
        elif plan is not None and not isinstance(plan, Plan):
            raise ConfigurationError(
                f"plan= is a {type(plan).__name__}, neither a plan nor the path of one",
                hint="Write one: everstate plan SERVICE.py --out FILE",
            )
        return replace(self, **asked)

    def options(self, shards: int | None) -> Options:
        """What a plan has to know of it; a plan that was made before says it itself."""
        if self.plan is not None:
            made = self.plan.options
            return replace(made, shards=made.shards if made.shards is not None else shards, file=self.file)
        return Options(
            recalculate=self.recalculate,
            accept_truncated=self.accept_truncated,
            keep_topic=self.keep_topic,
            shards=shards,
            file=self.file,
        )


def read_plan(path: Path) -> Plan:
    """A plan from its file.

    Raises:
        ConfigurationError: If there is none.
    """
    hint = "Write one: everstate plan SERVICE.py --out FILE"
    try:
        about = path.stat()
        # Anything but a file might never end, or never begin.
        if not stat.S_ISREG(about.st_mode) or about.st_size > LARGEST:
            what = "is too large for a plan" if stat.S_ISREG(about.st_mode) else "is not a file"
            raise ConfigurationError(f"{path} {what}", hint=hint)
        text = path.read_text(encoding="utf-8")
    except EverstateError:
        raise
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"the plan {path} cannot be read: {_why(error)}", hint=hint) from error
    return from_json(text)


def _why(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
