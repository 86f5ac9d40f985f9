"""Deleting a service's state, so that the next run rebuilds it from the topics."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

from everstate.engine.folder import OutputFolder, read_document, service_folder, write_document
from everstate.engine.identity import fingerprint
from everstate.engine.outputs import REBUILD
from everstate.engine.settings import Settings, log_address
from everstate.log.opening import open_log
from everstate.topology.errors import StateError

if TYPE_CHECKING:
    from pathlib import Path

    from everstate.dsl.service import Service
    from everstate.log.protocol import Log
    from everstate.topology.unit import Unit


def clear_state(service: Service, *, log: str | Path | None = None, state_dir: str | Path | None = None) -> list[str]:
    """Delete the state of a service, never a topic.

    How far each output had published is remembered: the next run rebuilds the state from the beginning of the sources
    and publishes only what follows on that, so nothing is written twice.

    Returns:
        The outputs whose state is gone.

    Raises:
        LeaseHeldError: If the service runs.
    """
    settings = Settings.resolve({"state_dir": state_dir}, service={"state_dir": service.state_dir})
    opened = open_log(log_address(log, service.log))
    try:
        lease = opened.acquire(service.name)
        try:
            home = service_folder(settings.state_dir, opened, service.name)
            return _clear(service, opened, home)
        finally:
            opened.release(lease)
    finally:
        opened.close()


def _clear(service: Service, log: Log, home: Path) -> list[str]:
    try:
        reached = read_document(home / REBUILD) or {}
    except StateError:
        reached = {}  # clearing is the cure for damage, so damage must not stop it
    for unit in service.units():
        entry = _reached(unit, log, OutputFolder(home / unit.output.topic), service.on_error)
        if entry is not None:
            reached[unit.output.topic] = entry
    # In this order a crash leaves either the old state, or none and the knowledge of how far it had come.
    write_document(home / REBUILD, reached)
    cleared = sorted(path.name for path in home.iterdir() if path.is_dir())
    for name in cleared:
        shutil.rmtree(home / name)
    log.forget(service.name)
    return cleared


def _reached(unit: Unit, log: Log, folder: OutputFolder, policy: str) -> dict[str, Any] | None:
    """How far an output has published, and which version did it; None if it has not."""
    last = log.last_commit(unit.service, unit.output.topic)
    if last is None:
        return None
    try:
        record = folder.read_record()
    except StateError:
        record = None
    known = record.fingerprint if record is not None else fingerprint(unit, policy)
    end = last.end
    if record is not None and record.boundary:
        # A rebuild that was interrupted has not reached what was published before it.
        end = {
            topic: {p: max(offset, record.boundary.get(topic, {}).get(p, 0)) for p, offset in partitions.items()}
            for topic, partitions in last.end.items()
        }
    return {"fingerprint": known, "end": end}
