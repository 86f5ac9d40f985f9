"""Steps that go by time, from Kafka to Kafka: the histories, services and models are those of the tests on Spark.

Offsets on a broker have gaps and signs of life go by its clock; windows, timers and arrival must not notice.
"""

from __future__ import annotations

import pytest

from everstate.generations.compare.comparison import Comparisons
from everstate.generations.deploy.leases import Leases
from everstate.generations.deploy.options import Wishes
from everstate.generations.deploy.run import Run
from everstate.generations.deploy.settings import Settings
from everstate.generations.deploy.site import Site
from everstate.generations.in_process.executor import InProcessExecutor
from everstate.generations.registry import Registry
from everstate.log import TopicConfig
from everstate.testing.schemas import Schemas
from tests.simulation.world import Process, drain
from tests.spark import test_time as timed
from tests.spark_session import spark

__all__ = ["spark"]

pytestmark = [pytest.mark.kafka]

SHARDS = 3
#: The rounds of sending that a run of the service reads.
RUNS = [[0, 1, 2], [3]]


@pytest.fixture
def history(log):
    """A random history, and topics that wait for it."""
    history = timed.History(3)
    service = timed.service(history, SHARDS)
    for topic in sorted({topic for unit in service.units() for topic in unit.topics}):
        log.create_topic(topic, TopicConfig(partitions=timed.PARTITIONS, compact=topic in "te"))
    return history


def played(history, log, drained):
    """What the service has published after it was drained between the rounds."""
    service, schemas = timed.service(history, SHARDS), Schemas()
    schemas.learn(service.units())
    for rounds in RUNS:
        for number in rounds:
            timed.send(log, schemas, history.records(number))
        drained(service)
    return timed.on_log(service, SHARDS, log)


def test_steps_that_go_by_time_on_kafka_equal_the_models(history, log, tmp_path):
    kept = {}

    def drained(service):
        settings = Settings(approval="approve")
        run = Run(service, Wishes())
        site = Site(
            log=log,
            home=tmp_path,
            registry=Registry(log, service.name),
            leases=Leases(log, service.name, 0, run.ending.lost, [], farewell=0),
            settings=settings,
            comparisons=Comparisons(log),
            executor=InProcessExecutor(log, tmp_path, settings, kept),
            samples=False,
        )
        drain(Process(log, run.at(site), site))

    timed.compare(played(history, log, drained), history, SHARDS, RUNS)


@pytest.mark.long
@pytest.mark.spark
def test_steps_that_go_by_time_on_kafka_and_spark_equal_the_models(history, log, servers, spark, tmp_path):
    from everstate.engine.commands.runner import Runner

    def drained(service):
        given = {"log": f"kafka://{servers}", "state_dir": tmp_path / "state", "session": spark, "show": False}
        Runner(service, **given, cores=2).run(once=True)

    timed.compare(played(history, log, drained), history, SHARDS, RUNS)
