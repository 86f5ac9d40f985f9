"""What every task of a query must know, in a form that travels to workers once.

The unit goes by value, with the user's modules: a worker runs the code that the driver compiled, wherever the worker
runs and whatever the file says by then.
"""

from __future__ import annotations

import hashlib
import io
import os
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from pyspark import cloudpickle

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from everstate.kernels.migration.convert import Migration
    from everstate.kernels.order import Order
    from everstate.kernels.pages.addressing import PagePolicy
    from everstate.log.protocol import Log
    from everstate.log.stops import Stops
    from everstate.topology.unit import Unit

_units: dict[str, Unit] = {}
_logs: dict[tuple[int, str], Log] = {}
_PACKAGE: Final = "everstate"


@dataclass(frozen=True, kw_only=True)
class Job:
    """One output's query, as its tasks see it.

    Attributes:
        payload: The unit, pickled by value.
        digest: Of the payload, so that a worker unpickles it once.
        url: The log.
        service: Name of the service.
        output: The output topic, which is also the output's name.
        target: The topic that its records go to: the output topic, or the generation's own; empty for none.
        dead_letters: The topic that its dead letters go to.
        partitions: Of the output topic.
        generation: Which version of the output this is.
        policy: What happens to records that cannot be processed.
        shards: How many there are.
        page_policy: How large pages are; None for the usual way.
        vectors: Where live micro-batches ended, if its own repeat several of them and their order matters.
        migration: What each shard does to the state of an earlier version, once; None for nothing.
    """

    payload: bytes
    digest: str
    url: str
    service: str
    output: str
    target: str
    dead_letters: str
    partitions: int
    generation: str
    policy: str
    shards: int
    page_policy: PagePolicy | None = None
    vectors: Stops | None = None
    migration: Migration | None = None

    @classmethod
    def of(cls, unit: Unit, **facts: Any) -> Job:
        """Pack a unit for its workers; `facts` are the attributes that the unit does not know."""
        payload = pickled(unit)
        digest = hashlib.sha256(payload).hexdigest()
        return cls(payload=payload, digest=digest, service=unit.service, output=unit.output.topic, **facts)

    def unit(self) -> Unit:
        """The unit; each process unpickles it once."""
        if self.digest not in _units:
            _units[self.digest] = cloudpickle.loads(self.payload)
        return _units[self.digest]

    @cached_property
    def order(self) -> Order | None:
        """The order of rows that arrived in earlier micro-batches."""
        if not self.vectors:
            return None
        from everstate.kernels.order import Order  # noqa: PLC0415 - not in processes that only ask what the state is

        return Order.of_columns(self.vectors.columns(), len(self.vectors), self.unit().topics)

    def log(self) -> Log:
        """The log; each process opens it once, and none inherits it from the process that it was forked from."""
        place = (os.getpid(), self.url)
        if place not in _logs:
            from everstate.log.opening import open_log  # noqa: PLC0415 - not before the fork

            _logs[place] = open_log(self.url, trusted=True)
        return _logs[place]


def pickled(unit: Unit, pickler: Callable[[IO[bytes]], Any] = cloudpickle.Pickler) -> bytes:
    """A unit by value, together with every module of the user's that is loaded.

    Args:
        unit: The unit.
        pickler: What writes it.
    """
    registered = [module for module in list(sys.modules.values()) if is_users(module)]
    for module in registered:
        cloudpickle.register_pickle_by_value(module)
    content = io.BytesIO()
    try:
        pickler(content).dump(unit)
    finally:
        for module in registered:
            cloudpickle.unregister_pickle_by_value(module)
    return content.getvalue()


def is_users(module: ModuleType | Any) -> bool:
    """Whether a module is the user's own: not installed, not part of Python, not Everstate."""
    file = getattr(module, "__file__", None)
    name = getattr(module, "__name__", "")
    if not file or name == "__main__" or name.partition(".")[0] == _PACKAGE:
        return False  # cloudpickle takes __main__ by value anyway
    return _is_users_file(file)


@cache
def _is_users_file(file: str) -> bool:
    path = Path(file).resolve()
    return path.suffix == ".py" and not any(path.is_relative_to(folder) for folder in _installed())


@cache
def _installed() -> list[Path]:
    folders = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    return [Path(folder).resolve() for folder in {*folders, sys.prefix, sys.base_prefix} if folder and folder != "/usr"]
