"""A real Kafka broker for the tests of each process of a session, started by the first test that needs it.

Each has its own, since tests empty the cluster and name topics as they like. The process that reports owns them all:
they end with the session, and if that is killed, by themselves.

Where Java or Maven are missing, tests on Kafka are skipped, and the summary says so; `EVERSTATE_REQUIRE_KAFKA=1` makes
that a failure, as in CI.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from scripts import kafka_broker

FOLDER = "EVERSTATE_TEST_KAFKA_FOLDER"
OWNER = "EVERSTATE_TEST_KAFKA_OWNER"
REQUIRED = "EVERSTATE_REQUIRE_KAFKA"
NO_BROKER = "there is no Kafka broker here"


def prepare() -> None:
    """Called by each process of a session; the first one is the owner."""
    if FOLDER not in os.environ:
        os.environ[FOLDER] = tempfile.mkdtemp(prefix="everstate-kafka-")
        os.environ[OWNER] = str(os.getpid())


def finish() -> None:
    """The owner ends the brokers."""
    if os.environ.get(OWNER) == str(os.getpid()):
        folder = Path(os.environ.pop(FOLDER))
        del os.environ[OWNER]
        for started in folder.iterdir():
            kafka_broker.stop(started)
        shutil.rmtree(folder, ignore_errors=True)


def require() -> None:
    """Skip the test where there can be no broker."""
    lack = kafka_broker.missing()
    if lack is not None:
        if os.environ.get(REQUIRED):
            pytest.fail(f"{NO_BROKER}: {lack}")
        pytest.skip(f"{NO_BROKER}: {lack}")


def address() -> str:
    """Host and port of this process's broker."""
    require()
    place = Path(os.environ[FOLDER]) / os.environ.get("PYTEST_XDIST_WORKER", "only")
    return kafka_broker.start(place, owner=int(os.environ[OWNER])).address


@pytest.fixture(scope="session")
def broker() -> str:
    return address()


def wipe(servers: str) -> None:
    """Delete all topics: each test finds an empty cluster."""
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": servers})
    found = [name for name in admin.list_topics(timeout=30).topics if name not in KAFKAS_OWN]
    for future in (admin.delete_topics(found, operation_timeout=30) if found else {}).values():
        future.result(30)


KAFKAS_OWN = {"__consumer_offsets", "__transaction_state", "__share_group_state"}


def skipped_lines(skipped: list[str]) -> list[str]:
    """What the summary says of tests that found no broker."""
    without = [text for text in skipped if NO_BROKER in text]
    if not without:
        return []
    return [f"{len(without)} TESTS ON KAFKA WERE SKIPPED: {kafka_broker.missing()}"]
