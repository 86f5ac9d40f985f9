"""The options of commands that change what runs: what happens to versions, and how a service is run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

_CHANGES: Final = "Changing versions"
_SETTINGS: Final = "Operational settings"


def _change(*names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel=_CHANGES, **more)


def _setting(*names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel=_SETTINGS, **more)


DryRun = Annotated[bool, _change("--dry-run", help="Print the plan and stop.")]
Unasked = Annotated[
    bool,
    _change("--yes", help="Do not ask: cutovers that need approval wait for --approve, as they do without a terminal."),
]
Approve = Annotated[bool, _change("--approve", help="Let cutovers remove what they need to.")]


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """What a plan depends on, beside the code and the topics."""

    recalculate: Annotated[
        list[str] | None, _change(metavar="OUTPUT", help="Rebuild an output even if nothing has changed.")
    ] = None
    accept_truncated: Annotated[
        list[str] | None, _change(metavar="TOPIC", help="Continue with what is left of a source's history.")
    ] = None
    keep_topic: Annotated[
        bool, _change("--keep-topic", help="Keep the topics of outputs that are no longer declared.")
    ] = False
    shards: Annotated[int | None, _change(help="Shards per output; by default as many as it has.")] = None
    effects: Annotated[bool, _change("--effects", help="Let side effects happen during a recalculation, too.")] = False


@dataclass(frozen=True, kw_only=True)
class DeploymentOptions:
    """How a plan is carried out."""

    plan: Annotated[
        Path | None, _change(metavar="FILE", help="Carry out a plan, or do nothing if it no longer fits.")
    ] = None
    approve: Approve = False
    approval: Annotated[
        Literal["wait", "fail", "approve"] | None, _change(help="What to do with a cutover that would remove a lot.")
    ] = None
    take_over: Annotated[bool, _change("--take-over", help="Replace a live process of the same version.")] = False
    standby: Annotated[bool, _change("--standby", help="Wait until the process of the same version ends.")] = False


@dataclass(frozen=True, kw_only=True)
class SettingOptions:
    """How a service is run; none of it changes a result."""

    scratch_dir: Annotated[Path | None, _setting(metavar="PATH", help="Where RocksDB keeps its working files.")] = None
    trigger: Annotated[float | None, _setting(help="Seconds between two micro-batches.")] = None
    max_records: Annotated[int | None, _setting(help="Maximum number of records in a micro-batch.")] = None
    recalculation_records: Annotated[
        int | None, _setting(help="Maximum number of records in a micro-batch while a generation is built.")
    ] = None
    master: Annotated[
        str | None, _setting(metavar="URL", help="A standalone Spark cluster to run on: spark://host:7077.")
    ] = None
    cores: Annotated[int | None, _setting(help="Cores that Spark uses.")] = None
    memory: Annotated[str | None, _setting(metavar="SIZE", help="Memory for each of Spark's Java processes.")] = None
    log_level: Annotated[str | None, _setting(metavar="LEVEL", help="How much Spark reports.")] = None
    publishers: Annotated[int | None, _setting(help="Tasks that send a large micro-batch to Kafka.")] = None
    full_compiler: Annotated[
        bool | None, _setting("--full-compiler", help="Start more slowly, run a little faster.")
    ] = None
