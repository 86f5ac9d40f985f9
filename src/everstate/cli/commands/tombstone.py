"""`everstate tombstone`: remove the keys of tables that have been quiet for a time."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from everstate.cli.columns import aligned
from everstate.cli.log_option import require_log
from everstate.cli.option_groups import asked, grouped
from everstate.cli.run_options import SettingOptions
from everstate.cli.service_options import LogPath, Quiet, StateDir
from everstate.errors.texts import one_line
from everstate.generations.deploy.settings import choose_log
from everstate.generations.removals import due, removal_service, require_after, require_removable
from everstate.log import open_log
from everstate.log.timing import wall_clock
from everstate.plan.words import counted

if TYPE_CHECKING:
    from everstate.dsl.service import Service
    from everstate.log import Log

#: Keys that are shown of those that would go.
_SHOWN: Final = 10


@grouped
def tombstone(  # noqa: PLR0913 - each option is a parameter, or a group of them
    topics: Annotated[list[str], typer.Argument(metavar="TOPIC...", help="Topics of tables, whoever writes them.")],
    *,
    after: Annotated[
        str,
        typer.Option(
            "--after", metavar="DURATION", help="How long a key must be quiet before it is removed, such as 7d."
        ),
    ],
    clock: Annotated[
        Literal["event", "wall"],
        typer.Option("--clock", help="Which clock decides: the time of the topic's records, or the wall clock."),
    ] = "event",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be removed, and change nothing.")] = False,
    once: Annotated[bool, typer.Option("--once", help="Process what is there, then stop.")] = False,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Replace a live process that does the same for the topic.")
    ] = False,
    log: LogPath = None,
    state_dir: StateDir = None,
    quiet: Quiet = False,
    settings: SettingOptions,
) -> None:
    """Remove keys that have been quiet for a time: each gets a tombstone on its topic, in the partition of its record.

    What was removed is on the topic TOPIC.removed. Values are never read, so any format will do.
    """
    require_after(after)
    address = require_log(choose_log(log))
    target = open_log(address)
    names = list(dict.fromkeys(topics))
    for topic in names:
        require_removable(target, topic)
    services = {topic: removal_service(topic, after, clock=clock) for topic in names}
    if dry_run:
        for topic, service in services.items():
            _say_what_is_due(target, topic, service)
        return
    target.close()
    from everstate.engine.commands.removing import remove  # noqa: PLC0415 - a mistake shows before Spark is imported

    given: Any = asked(settings)
    show = False if quiet else None
    say = partial(typer.echo, err=True)
    remove(services, once=once, tell=say, **given, log=address, state_dir=state_dir, take_over=take_over, show=show)


def _say_what_is_due(log: Log, topic: str, service: Service) -> None:
    going, staying = due(log, service, wall_clock())
    typer.echo(f"{topic}: {counted(going.height, 'key')} would be removed, {staying:,} would stay")
    rows = [
        [_readable(key), _time(ts), partition, offset] for key, partition, offset, ts in going.head(_SHOWN).iter_rows()
    ]
    if rows:
        for line in aligned(["KEY", "LAST RECORD", "PARTITION", "OFFSET"], rows):
            typer.echo(f"  {line}")
    if going.height > _SHOWN:
        typer.echo(f"  and {going.height - _SHOWN:,} more")


def _readable(key: bytes) -> str:
    try:
        return one_line(key.decode())
    except UnicodeDecodeError:
        return f"0x{key.hex()}"


def _time(ts: int) -> str:
    return datetime.fromtimestamp(ts / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
