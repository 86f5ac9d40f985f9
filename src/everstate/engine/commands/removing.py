"""Runs tombstone services: one for each topic, so that each has a lease and a state of its own."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING, Final, Unpack

from everstate.engine.commands.runner import Runner
from everstate.engine.jvm.reports import report_file
from everstate.engine.signals import stopping_on_signals
from everstate.errors import LeaseHeldError
from everstate.generations.state.folder import service_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from everstate.dsl.service import Service
    from everstate.generations.deploy.options import RunOptions

_LOOK_S: Final = 0.2
_LINES_EVERY_S: Final = 30.0


def remove(
    services: Mapping[str, Service], *, once: bool, tell: Callable[[str], None], **given: Unpack[RunOptions]
) -> None:
    """Run the tombstone services of these topics until they are stopped; with `once`, one after the other, to the end.

    Args:
        services: By topic.
        once: End when what is there has been looked at.
        tell: Says how far several services are that run at once.
        given: As for `SparkRun`.

    Raises:
        LeaseHeldError: If another process removes the keys of one of the topics.
        EverstateError: If one fails; the others have been stopped in an orderly way.
    """
    if not once and len(services) > 1:
        _together(services, tell, given)
        return
    for topic, service in services.items():
        with _named(topic):
            Runner(service, **given).run(once=once)


def _together(services: Mapping[str, Service], tell: Callable[[str], None], given: RunOptions) -> None:
    """Run all of them at once, in one session of Spark."""
    from everstate.engine.jvm.session import start_session, stop_session  # noqa: PLC0415 - as late as Spark itself

    shown = given.get("show") is not False
    given["show"] = False  # one table on the terminal for each of them would be none
    first = next(iter(services.values()))
    settings = Runner(first, **given).settings
    home = service_folder(settings.state_dir, str(given["log"]), first.name)
    session = start_session(settings, "everstate tombstone", report_file(home))
    stopping, told = threading.Event(), time.monotonic()
    try:
        given["session"] = session
        runners = {topic: Runner(service, **given) for topic, service in services.items()}
        with stopping_on_signals(stopping), contextlib.ExitStack() as running:
            for topic, runner in runners.items():
                with _named(topic):
                    runner.start()
                running.callback(runner.stop)
            while not stopping.wait(_LOOK_S) and all(runner.running for runner in runners.values()):
                if shown and time.monotonic() - told >= _LINES_EVERY_S:
                    told = time.monotonic()
                    for line in (line for runner in runners.values() for line in runner.lines()):
                        tell(line)
    finally:
        stop_session(session)


@contextlib.contextmanager
def _named(topic: str) -> Iterator[None]:
    try:
        yield
    except LeaseHeldError as error:
        raise LeaseHeldError(
            f"another tombstone service removes the keys of topic {topic!r}: {error.message}",
            hint="Stop that one, or take its place: everstate tombstone with --take-over",
        ) from error
