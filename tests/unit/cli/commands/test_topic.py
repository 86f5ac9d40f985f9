from __future__ import annotations

import json
import os
import pty
import subprocess
import sys

import pytest

from everstate.errors import ConfigurationError, LogError, TopicExistsError, TopicNotFoundError
from tests.unit.cli.deployments import deploy, write


def test_topic_create_with_all_settings_is_described(everstate):
    everstate("topic", "create", "orders", "--partitions", "3", "--compact", "--retention", "7d")
    text = everstate("topic", "describe", "orders").stdout
    assert "orders: 3 partitions, keeps the latest record per key, 1w (tombstones 1d)" in text
    described = json.loads(everstate("topic", "describe", "orders", "--json").stdout)
    assert described["retention_ms"] == 7 * 86_400_000
    assert (described["partitions"], described["compact"], described["end"]) == (3, True, {"0": 0, "1": 0, "2": 0})


def test_topic_create_twice_is_refused_unless_allowed(everstate):
    everstate("topic", "create", "orders")
    with pytest.raises(TopicExistsError):
        everstate("topic", "create", "orders")
    everstate("topic", "create", "orders", "--if-not-exists")


def test_topic_create_wrong_duration_is_refused(everstate):
    with pytest.raises(ConfigurationError, match="'soon' is not a duration"):
        everstate("topic", "create", "orders", "--retention", "soon")


def test_topic_list_shows_every_topic_in_aligned_columns(everstate):
    everstate("topic", "create", "orders", "--compact")
    everstate("produce", "customers", "--create", stdin='{"a": 1}\n')
    lines = everstate("topic", "list").stdout.splitlines()
    assert lines[0].split() == ["TOPIC", "PARTITIONS", "RECORDS", "SIZE", "KEEPS"]
    assert [line.split()[0] for line in lines[1:]] == ["customers", "orders"]
    assert len({line.index(word) for line, word in zip(lines[1:], ("everything", "the latest"), strict=True)}) == 1


def test_topic_list_without_a_log_says_how_to_begin_and_creates_nothing(everstate):
    with pytest.raises(ConfigurationError, match="there is no log at"):
        everstate("topic", "list")
    assert list(everstate.path.iterdir()) == []


def test_topic_compact_says_what_it_did(everstate):
    everstate("topic", "create", "orders", "--compact")
    everstate("produce", "orders", "--key", "a", stdin="1\n2\n3\n")
    assert "orders: 3 records" in (text := everstate("topic", "compact", "orders").stdout)
    assert "1 (" in text
    assert [record["value"] for record in everstate.records("orders")] == [3]


def test_topic_delete_its_records_are_gone(everstate):
    everstate("produce", "orders", "--create", stdin="1\n")
    assert everstate("topic", "delete", "orders").stdout == "orders: deleted, along with 1 record\n"
    with pytest.raises(TopicNotFoundError):
        everstate("topic", "describe", "orders")


def test_topic_delete_that_cannot_remove_a_file_says_that_the_topic_is_gone_and_what_is_left(everstate):
    everstate("produce", "orders", "--create", stdin="1\n")
    everstate("produce", "orders", stdin="2\n")
    stuck, other = sorted((everstate.path / "log" / "topics").rglob("*.arrows"))
    stuck.unlink()
    stuck.mkdir()  # what is no file cannot be removed as one
    with pytest.raises(LogError, match="topic 'orders' is deleted, but 1 file of it could not be removed") as told:
        everstate("topic", "delete", "orders")
    assert str(stuck) in told.value.message
    assert not other.exists()
    with pytest.raises(TopicNotFoundError):
        everstate("topic", "describe", "orders")
    stuck.rmdir()
    stuck.write_bytes(b"")
    everstate("topic", "create", "others")
    everstate("topic", "compact", "others")
    assert not stuck.exists()


@pytest.mark.parametrize("topic", ["orders", "totals", "totals.dlq"])
def test_topic_delete_of_one_that_a_deployed_service_uses_is_refused(everstate, topic):
    url = str(everstate.path / "log")
    everstate("topic", "create", "orders", "--compact")
    deploy(write(everstate.path / "shop.py"), url)
    verb = "reads" if topic == "orders" else "writes"
    with pytest.raises(LogError, match=f"output totals of service shop {verb} it") as refused:
        everstate("topic", "delete", topic, "--yes")
    assert f"everstate topic delete {topic} --force" in refused.value.hint
    assert everstate("topic", "delete", topic, "--force").stdout == f"{topic}: deleted, along with 0 records\n"


@pytest.mark.slow
def test_topic_delete_on_a_terminal_asks_first(everstate):
    everstate("produce", "orders", "--create", stdin="1\n")
    environment = {**os.environ, "EVERSTATE_LOG": str(everstate.path / "log")}
    command = [sys.executable, "-m", "everstate.cli.main", "topic", "delete", "orders"]

    def run(answer: bytes, *options: str) -> tuple[int, str]:
        ours, theirs = pty.openpty()
        os.write(ours, answer)
        done = subprocess.run(
            [*command, *options], check=False, stdin=theirs, capture_output=True, text=True, env=environment
        )
        os.close(ours)
        os.close(theirs)
        return done.returncode, done.stdout

    code, told = run(b"n\n")
    assert (code, "Delete topic orders with 1 record?" in told) == (1, True)
    assert everstate.records("orders")
    code, told = run(b"", "--yes")
    assert (code, told) == (0, "orders: deleted, along with 1 record\n")
