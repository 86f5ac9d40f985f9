"""A query whose Java process ends between two looks at it."""

from __future__ import annotations

import time

import pytest

import everstate as es
from everstate.engine.execution import SparkExecution
from everstate.errors import EngineError
from everstate.fingerprints.outputs import print_unit
from everstate.generations.deploy.outputs import PreparedOutput
from everstate.generations.deploy.settings import Settings
from everstate.generations.generation import Generation, Status
from everstate.generations.state.folder import OutputFolder
from everstate.log.opening import open_log


class Gone:
    """What a query answers whose Java process has just ended: the last answer was that it is active."""

    isActive = True  # noqa: N815 - Spark's name

    @property
    def status(self):
        raise ConnectionRefusedError(111, "Connection refused")

    def stop(self):
        raise ConnectionRefusedError(111, "Connection refused")


@pytest.fixture
def execution(tmp_path):
    app = es.Service("shop")
    app.table("t", key="k", schema={"k": str, "a": int}).filter(es.col("a") > 0).to("out")
    [unit] = app.units()
    log = open_log(tmp_path / "log")
    for topic in ("t", "out"):
        log.create_topic(topic)
    generation = Generation(
        number=1,
        status=Status.ACTIVE,
        fingerprint="",
        description=print_unit(unit, policy="dead-letter", settings={}).to_json(),
        shards=1,
        initial={"t": {0: 0}},
        code="",
        policy="dead-letter",
    )
    folder = OutputFolder(tmp_path / "state" / "shop" / "out" / "1")

    def spark():
        raise AssertionError("nobody starts it")

    output, lease = PreparedOutput(unit, folder, generation), log.acquire("shop")
    made = SparkExecution(spark, lambda: 2, output, folder, log, lease, Settings())
    made._query = Gone()
    made._began = made._watched = time.monotonic()
    yield made
    log.close()


def test_coming_up_whose_java_process_has_ended_says_so(execution):
    with pytest.raises(EngineError, match="Java process ended"):
        execution.coming_up()


def test_stop_whose_java_process_has_ended_says_so(execution):
    with pytest.raises(EngineError, match="Java process ended"):
        execution.stop(time.monotonic() + 1)
