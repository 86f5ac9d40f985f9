"""A process that `spark-submit` has started: its Java runs already, and was told where the cluster is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_PORT: Final = "PYSPARK_GATEWAY_PORT"
_LOCAL: Final = "local"
#: What whoever submits may decide; all else is what results and recovery rely on.
THEIRS: Final = (
    "spark.cores.max",
    "spark.driver.bindAddress",
    "spark.driver.host",
    "spark.executor.cores",
    "spark.executor.memory",
    "spark.local.dir",
)


def is_submitted() -> bool:
    """Whether this process's Java is its parent, and not its child."""
    return _PORT in os.environ


def submitted_master() -> str | None:
    """The cluster that was named to `spark-submit`; None for none, or without it."""
    if not is_submitted():
        return None
    named = submitted_properties(["spark.master"]).get("spark.master", _LOCAL)
    return None if named.startswith(_LOCAL) else named


def submitted_properties(names: Iterable[str]) -> dict[str, str]:
    """Those of some properties that were given to `spark-submit`, or stand in its files."""
    if not is_submitted():
        return {}
    from pyspark import SparkContext  # noqa: PLC0415 - takes a while, and only here

    SparkContext._ensure_initialized()  # noqa: SLF001 - connects to the Java that is there
    system: Any = SparkContext._jvm.java.lang.System  # noqa: SLF001
    found = {name: system.getProperty(name) for name in names}
    return {name: str(value) for name, value in found.items() if value is not None}
