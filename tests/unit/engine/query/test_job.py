from __future__ import annotations

import gc

import pytest

import everstate as es
from everstate.engine.query.job import Job
from everstate.errors import ConfigurationError


def test_registry_of_one_process_is_refused_for_workers():
    app = es.Service("shop")
    app.stream("rows", schema={"n": int}).to("copies", format=es.Avro("mock://shop"))
    with pytest.raises(ConfigurationError, match="mock://shop is a registry in one process"):
        Job.of(app.units()[0])


def test_unit_that_is_loaded_is_out_of_the_collectors_sight():
    app = es.Service("shop")
    app.stream("rows", schema={"n": int}).to("copies")
    facts = {"url": "", "opening": b"", "target": "copies", "dead_letters": "", "partitions": 1, "generation": "1"}
    job = Job.of(app.units()[0], **facts, policy="dead-letter", shards=1)
    gc.unfreeze()
    assert job.unit() is job.unit()
    try:
        assert gc.get_freeze_count() > len(gc.get_objects())
    finally:
        gc.unfreeze()
