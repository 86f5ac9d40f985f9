"""Deleting a service's state, so that the next run rebuilds it from the topics."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

from everstate.engine.jvm.reports import REPORTS
from everstate.generations.deploy.settings import Settings, log_address
from everstate.generations.generation import Event, OutputGenerations, build_lease, own_topics
from everstate.generations.registry import Registry, now_ms
from everstate.generations.state.belonging import forget_log
from everstate.generations.state.folder import SPARK_STEPS, STAGING, service_folder
from everstate.log.archive.files import FOLDER as HISTORY
from everstate.log.opening import open_log

if TYPE_CHECKING:
    from pathlib import Path

    from everstate.dsl.service import Service
    from everstate.log.descriptions import Lease
    from everstate.log.protocol import Log


def clear_state(service: Service, *, log: str | Path | None = None, state_dir: str | Path | None = None) -> list[str]:
    """Delete the state of a service with all its generations, never a topic nor the archive of one.

    The log knows how far each output had published: the next run rebuilds it from the beginning of its sources, closed,
    and publishes only what differs, so nothing is written twice.

    Returns:
        The outputs whose state is gone.

    Raises:
        LeaseHeldError: If the service runs, or a new version of it is being built.
    """
    settings = Settings.resolve({"state_dir": state_dir}, service={"state_dir": service.state_dir})
    address = log_address(log, service.log)
    home = service_folder(settings.state_dir, address, service.name)
    opened = open_log(address, staging=home / STAGING)
    try:
        leases: list[Lease] = []
        try:
            leases += [opened.acquire(name) for name in (service.name, build_lease(service.name))]
            return _clear(service.name, opened, home, leases)
        finally:
            for lease in leases:
                opened.release(lease)
    finally:
        opened.close()


def _clear(service: str, log: Log, home: Path, leases: list[Lease]) -> list[str]:
    registry = Registry(log, service)
    for output, versions in registry.generations().items():
        numbers = {generation.number for generation in versions.generations}
        known = own_topics(service, output, log.topics(internal=True))
        own = [topic for topic, number in known.items() if number in numbers]
        # In this order a crash leaves either the old state, or none and the knowledge of how far it had come.
        registry.write(_cleared(versions), leases, step="discarded")
        for topic in own:
            if log.has_topic(topic):
                log.delete_topic(topic)
    # The archive of a source is no state: where the topic has let records go, it is all that is left of them.
    present = [path for path in home.iterdir() if path.is_dir()] if home.is_dir() else []
    # Nor is how far a source or a sink of Spark's own has got: without it rows would be read, or delivered, twice.
    kept = {HISTORY, REPORTS, STAGING, SPARK_STEPS}
    cleared = sorted(path.name for path in present if path.name not in kept)
    for name in cleared:
        shutil.rmtree(home / name)
    forget_log(home)
    return cleared


def _cleared(versions: OutputGenerations) -> OutputGenerations:
    active = versions.active
    entry = Event(at_ms=now_ms(), generation=active.number if active else 0, what="cleared", who="everstate clear")
    return replace(versions, generations=(), audit=(*versions.audit, entry))
