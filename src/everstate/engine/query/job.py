"""What every task of a query must know, in a form that travels to workers once.

The unit goes by value, with the user's modules: a worker runs the code that the driver compiled, wherever the worker
runs and whatever the file says by then.
"""

from __future__ import annotations

import gc
import hashlib
import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from everstate.engine.query.by_value import pickled, unpickled
from everstate.engine.query.opened import opened, told

if TYPE_CHECKING:
    from everstate.kernels.migration.convert import Migration
    from everstate.kernels.order import Order
    from everstate.kernels.pages.addressing import PagePolicy
    from everstate.log.protocol import Log
    from everstate.log.stops import Stops
    from everstate.topology.unit import Unit

_units: dict[str, Unit] = {}


@dataclass(frozen=True, kw_only=True)
class Job:
    """One output's query, as its tasks see it.

    Attributes:
        payload: The unit, pickled by value.
        digest: Of the payload, so that a worker unpickles it once.
        url: The log's address.
        opening: The log, pickled: what opens it in another process. It may hold secrets, and is never shown.
        service: Name of the service.
        output: The output topic, which is also the output's name.
        target: The topic that its records go to: the output topic, or the generation's own; empty for none.
        dead_letters: The topic that its dead letters go to.
        sides: Where the records of each further topic go, or empty for nowhere, and its partitions; see `Unit.sides`.
        partitions: Of the output topic.
        generation: Which version of the output this is.
        policy: What happens to records that cannot be processed.
        shards: How many there are.
        page_policy: How large pages are; None for the usual way.
        vectors: The live micro-batches that its own repeat, several at once, if it matters where they ended.
        migration: What each shard does to the state of an earlier version, once; None for nothing.
        own_sources: Topics that it reads as well as writes.
        environment: What workers on other machines need of this process's environment. As secret as the log.
    """

    payload: bytes
    digest: str
    url: str
    opening: bytes = field(repr=False)
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
    sides: tuple[tuple[str, int], ...] = ()
    own_sources: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, unit: Unit, **facts: Any) -> Job:
        """Pack a unit for its workers; `facts` are the attributes that the unit does not know."""
        from everstate.formats.values import require_shared  # noqa: PLC0415 - Spark's own helpers load no Polars

        for fmt in (*(source.format for source in unit.sources), unit.output.format):
            require_shared(fmt)
        payload = pickled(unit)
        digest = hashlib.sha256(payload).hexdigest()
        named: dict[str, Any] = {"service": unit.service, "output": unit.output.topic}
        named["own_sources"] = unit.own_sources
        return cls(payload=payload, digest=digest, environment=told(), **named, **facts)

    def unit(self) -> Unit:
        """The unit; each process unpickles it once.

        PySpark has its workers collect garbage after every task, and a collection walks all that a worker has loaded:
        most of what a task on a few records would cost. What is there once a unit is loaded stays as long as the worker
        does, so it is put out of the collector's sight.
        """
        if self.digest not in _units:
            os.environ.update(self.environment)
            _units[self.digest] = unpickled(self.payload)
            gc.collect()
            gc.freeze()
        return _units[self.digest]

    @cached_property
    def order(self) -> Order | None:
        """The order of rows that arrived in earlier micro-batches."""
        if not self.vectors:
            return None
        from everstate.generations.state.recorded import order_of  # noqa: PLC0415 - not where only the state is asked

        return order_of(self.vectors, self.unit().topics)

    def log(self) -> Log:
        """The log; each process opens it once."""
        return opened(self.opening)
