"""What is asked of each machine of a cluster before anything runs there.

This module travels by value and loads nothing but Python's own library: whether anything else is there is the question.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import socket
from pathlib import Path
from typing import Any


def machine() -> str:
    """What tells one machine, since it was started, from others."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    return socket.gethostname()


def versions(packages: list[str]) -> dict[str, str | None]:
    """The installed versions of packages; None for one that is not there."""
    found: dict[str, str | None] = {}
    for name in packages:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """What a machine says.

    Args:
        question: `folder` and `token` of a file there, `packages`, and `seen`, folders that it has to see.
    """
    told: dict[str, Any] = {
        "host": socket.gethostname(),
        "machine": machine(),
        "user": os.getuid() if hasattr(os, "getuid") else None,
        "python": platform.python_version(),
        "packages": versions(question["packages"]),
        "unseen": [place for place in question["seen"] if not Path(place).is_dir()],
        "wrote": None,
        "trouble": None,
    }
    folder = Path(question["folder"])
    try:
        if (folder / "driver").read_text(encoding="utf-8") != question["token"]:
            told["trouble"] = "it has different files under that path"
        else:
            mark = folder / f"{socket.gethostname()}-{os.getpid()}"
            mark.touch(mode=0o600, exist_ok=True)
            mark.write_text(question["token"], encoding="utf-8")
            told["wrote"] = mark.name
    except OSError as error:
        told["trouble"] = error.strerror or str(error)
    return told
