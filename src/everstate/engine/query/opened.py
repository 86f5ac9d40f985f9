"""Logs in a worker: each process opens one once, and none inherits it from the process that it was forked from."""

from __future__ import annotations

import os
import pickle
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from everstate.log.protocol import Log

#: What schema registries are asked with, which workers have to know, too. The log carries its own settings.
TOLD = "EVERSTATE_REGISTRY_"
_logs: dict[tuple[int, bytes], Log] = {}


def told() -> dict[str, str]:
    """What workers on other machines need of this process's environment. As secret as the log."""
    return {name: value for name, value in os.environ.items() if name.startswith(TOLD)}


def opened(opening: bytes, environment: Mapping[str, str] | None = None) -> Log:
    """The log that the driver has pickled."""
    place = (os.getpid(), opening)
    if place not in _logs:
        os.environ.update(environment or {})
        _logs[place] = pickle.loads(opening)  # noqa: S301 - the driver has pickled it; not before the fork
    return _logs[place]
