"""Which Python Spark starts for its workers, its planner and its sources: a service has about ten such processes."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

#: Leaves out what makes Python's start slow; see there.
SCRIPT: Final = Path(__file__).with_name("worker_python.sh")


def worker_environment() -> dict[str, str]:
    """What the environment has to say when Spark starts: this Python, and not whatever `python3` is on the PATH."""
    python = str(SCRIPT) if os.name == "posix" and os.access(SCRIPT, os.X_OK) else sys.executable
    return {
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,  # the planner's are started as this one
        "EVERSTATE_WORKER_PYTHON": sys.executable,
        # On a busy machine Java takes longer to answer a connection than the 15 seconds that PySpark waits.
        "SPARK_AUTH_SOCKET_TIMEOUT": "60",
    }
