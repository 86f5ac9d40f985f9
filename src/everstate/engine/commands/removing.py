"""Runs tombstone services: one for each topic, so that each has a lease and a state of its own."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Final, Unpack

from everstate.engine.commands.runner import Runner
from everstate.engine.signals import stopping_on_signals
from everstate.errors import LeaseHeldError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from everstate.dsl.service import Service
    from everstate.generations.deploy.options import RunOptions

_LOOK_S: Final = 0.2


def remove(services: Mapping[str, Service], *, once: bool, **given: Unpack[RunOptions]) -> None:
    """Run the tombstone services of these topics until they are stopped; with `once`, one after the other, to the end.

    Args:
        services: By topic.
        once: End when what is there has been looked at.
        given: As for `SparkRun`.

    Raises:
        LeaseHeldError: If another process removes the keys of one of the topics.
        EverstateError: If one fails; the others have been stopped in an orderly way.
    """
    if once or len(services) == 1:
        for topic, service in services.items():
            with _named(topic):
                Runner(service, **given).run(once=once)
        return
    from everstate.engine.jvm.session import start_session, stop_session  # noqa: PLC0415 - as late as Spark itself

    runners = {topic: Runner(service, **given) for topic, service in services.items()}
    settings = next(iter(runners.values())).settings
    session = start_session(settings, "everstate tombstone")
    stopping = threading.Event()
    try:
        given["session"] = session
        with stopping_on_signals(stopping), contextlib.ExitStack() as running:
            started = []
            for topic, service in services.items():
                runner = Runner(service, **given)
                with _named(topic):
                    runner.start()
                running.callback(runner.stop)
                started.append(runner)
            while not stopping.wait(_LOOK_S) and all(runner.running for runner in started):
                pass
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
