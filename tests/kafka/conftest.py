"""Logs on the session's broker, as several processes see it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from confluent_kafka import Producer

from everstate.log import Commit, combined_digest, open_log
from tests import brokers


@pytest.fixture
def servers(broker):
    brokers.wipe(broker)
    return broker


@pytest.fixture
def opened(servers, tmp_path):
    """Opens the cluster as a new process would; all of them share a folder."""
    logs = []

    def another():
        logs.append(open_log(f"kafka://{servers}", staging=tmp_path / "staging"))
        return logs[-1]

    yield another
    for log in logs:
        log.close()


@pytest.fixture
def log(opened):
    return opened()


@pytest.fixture
def foreign(servers):
    """A producer of transactions that knows nothing of Everstate."""
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "foreign", "log_level": 0})
    producer.init_transactions(30)
    return producer


@pytest.fixture
def run(servers, tmp_path):
    """Drains the sources of a service."""

    def once(service, log=None, **environment):
        place, state = (f"kafka://{servers}", "state") if log is None else (str(log), "state-of-another")
        words = ("--once", "--memory", "1g", "--log", place, "--state-dir", str(tmp_path / state))
        command = [sys.executable, "-m", "everstate.cli.main", "run", str(Path(__file__).with_name(service)), *words]
        known = {**os.environ, "EVERSTATE_APPROVAL": "approve", **environment}
        done = subprocess.run(command, env=known, capture_output=True, text=True, timeout=280, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    return once


def frame(*rows):
    """Records of (key, value), text or None."""
    data = [tuple(None if part is None else part.encode() for part in row) for row in rows]
    return pl.DataFrame(data, schema={"key": pl.Binary, "value": pl.Binary}, orient="row")


def table(log, topic):
    return {key.decode(): value.decode() for key, value in log.latest(topic).select("key", "value").iter_rows()}


def values(log, topic, partition=0):
    start = log.begin_offsets([topic])[topic][partition]
    return [None if value is None else value.decode() for value in log.read(topic, partition, start)["value"]]


def batch(log, lease, content, number, **changes):
    """A batch of ten source records with this content by topic, and what is staged for it."""
    staged = [part for topic, rows in content.items() for part in log.stage_all(topic, frame(*rows))]
    given = {
        "service": "service",
        "output": "output",
        "generation": "g1",
        "query_id": "q1",
        "batch_id": number,
        "start": {"source": {0: 10 * number}},
        "end": {"source": {0: 10 * number + 10}},
        "digest": combined_digest(staged),
        "token": lease.token,
        "lease": lease.name,
        **changes,
    }
    return Commit(**given), staged
