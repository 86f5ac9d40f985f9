from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

import everstate as es
from everstate.kernels.ledger import Ledger
from everstate.kernels.operations.kernel import StateKernel
from everstate.kernels.operations.kernels import KERNELS
from everstate.kernels.pages.page_store import MemoryPages
from everstate.kernels.rows import empty
from everstate.kernels.shard import Shard
from everstate.kernels.stage import run_stage
from everstate.topology.nodes import Node
from everstate.topology.traits import Traits


@dataclass(frozen=True, eq=False, kw_only=True)
class Waiting(Node):
    operation: ClassVar[str] = "waiting"
    traits: ClassVar[Traits] = Traits(on_shard=True, keeps_state=True)


@dataclass(frozen=True, eq=False, kw_only=True)
class Ticking(Node):
    operation: ClassVar[str] = "ticking"
    traits: ClassVar[Traits] = Traits(on_shard=True, keeps_state=True, timed=True)


@pytest.mark.parametrize(("kind", "calls"), [(Waiting, 0), (Ticking, 1)])
def test_stage_without_rows_runs_only_the_steps_that_time_changes(monkeypatch, kind, calls):
    called = []

    def update(node, number, inputs, shard, *, emit_moves):
        called.append((number, inputs[0].height, emit_moves))
        return empty(node.schema.polars)

    monkeypatch.setitem(KERNELS, kind, StateKernel(update))
    app = es.Service("s")
    feeder = app.stream("in", schema=str).node
    step = kind(inputs=(feeder,), kind=feeder.kind, key=feeder.key, schema=feeder.schema)
    app.declare(step, "out", None, "json", None)
    (unit,) = app.units()
    run_stage(unit, 1, [], Shard(MemoryPages(), None, Ledger.of(unit, "fail")))
    assert called == [(0, 0, False)] * calls
