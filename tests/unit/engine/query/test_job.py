from __future__ import annotations

import pytest

import everstate as es
from everstate.engine.query.job import Job
from everstate.errors import ConfigurationError


def test_registry_of_one_process_is_refused_for_workers():
    app = es.Service("shop")
    app.stream("rows", schema={"n": int}).to("copies", format=es.Avro("mock://shop"))
    with pytest.raises(ConfigurationError, match="mock://shop is a registry in one process"):
        Job.of(app.units()[0])
