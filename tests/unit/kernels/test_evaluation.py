from __future__ import annotations

import polars as pl

import everstate as es
from everstate.kernels.evaluation import evaluated


def piece(partition, *times):
    frame = {"key": [b"k"] * len(times), "value": [b"1"] * len(times), "ts": times, "offset": range(len(times))}
    return "in", partition, pl.DataFrame(frame, schema_overrides={"key": pl.Binary, "value": pl.Binary})


def test_evaluation_of_windows_waits_for_a_partition_that_comes_later_in_the_sample():
    app = es.Service("s")
    windows = app.stream("in", schema=int).group_by("key").window(es.tumbling("10ms"), emit="final")
    windows.agg(n=es.count()).to("out")
    (unit,) = app.units()
    late = evaluated(unit, [[piece(0, 1, 90)], [piece(1, 2, 90)]])
    alone = evaluated(unit, [[piece(0, 1, 90)], [piece(0, 91)]])
    assert late.batches == alone.batches == 2
    assert list(late.steps.values())[-1] != list(alone.steps.values())[-1]
