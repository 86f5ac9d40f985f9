from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from everstate.errors import ConfigurationError, DecodeError, LogError, TopicNameError, TopicNotFoundError


def keys_and_values(everstate, topic="orders"):
    return [(record["key"], record["value"]) for record in everstate.records(topic)]


def test_produce_unknown_topic_is_refused_with_the_way_to_create_it(everstate):
    everstate("topic", "create", "orders")
    with pytest.raises(TopicNotFoundError, match="topic 'oders' does not exist") as refused:
        everstate("produce", "oders", stdin='{"a": 1}\n')
    for words in ("Did you mean 'orders'?", "everstate topic create oders", "--compact", "--create"):
        assert words in refused.value.hint
    assert everstate("topic", "list").stdout.count("\n") == 2


def test_produce_unknown_topic_without_a_log_leaves_nothing(everstate):
    with pytest.raises(TopicNotFoundError):
        everstate("produce", "orders", "--key", "k", "--tombstone")
    assert list(everstate.path.iterdir()) == []


def test_produce_create_compact_makes_the_topic_of_a_table(everstate):
    everstate("produce", "orders", "--create", "--compact", stdin="")
    assert "keeps the latest record per key" in everstate("topic", "describe", "orders").stdout


def test_produce_unknown_topic_is_created_with_a_note(everstate):
    result = everstate("produce", "orders", "--create", "--partitions", "2", stdin='{"a": 1}\n')
    assert "orders: created with 2 partitions" in result.stderr
    assert "orders: 1 record written" in result.stderr
    assert result.stdout == ""


def test_produce_key_field_becomes_the_key_and_stays_in_the_value(everstate):
    everstate("produce", "orders", "--create", "--key-field", "id", stdin='{"id": "o1", "n": 1}\n\n{"id": 2}\n')
    assert keys_and_values(everstate) == [("o1", {"id": "o1", "n": 1}), ("2", {"id": 2})]


def test_produce_several_key_fields_become_a_composite_key(everstate):
    everstate("produce", "orders", "--create", "--key-field", "a", "--key-field", "b", stdin='{"a": "eu", "b": 42}\n')
    assert keys_and_values(everstate) == [('["eu",42]', {"a": "eu", "b": 42})]


def test_produce_value_bytes_are_the_line_itself(everstate):
    everstate("produce", "orders", "--create", "--key", "k", stdin='  {"a":   1.50}\r\n')
    from everstate.log import open_log

    assert open_log(everstate.path / "log").read("orders", 0, 0)["value"].to_list() == [b'{"a":   1.50}']


def test_produce_tombstone_with_key_reads_nothing(everstate):
    everstate("produce", "orders", "--create", "--key", "o1", "--tombstone", stdin="this is not read")
    assert keys_and_values(everstate) == [("o1", None)]


def test_produce_tombstones_for_the_keys_of_lines(everstate):
    everstate("produce", "orders", "--create", "--key-field", "id", "--tombstone", stdin='{"id": "a"}\n{"id": "b"}\n')
    assert keys_and_values(everstate) == [("a", None), ("b", None)]


def test_produce_lines_of_consume_give_the_same_records(everstate):
    lines = [
        {"key": "a", "value": {"x": [1, None]}, "timestamp": 5, "headers": {"h": "1"}},
        {"key": "b", "value": None, "timestamp": 6, "headers": {}},
        {"key": {"$bytes": "/w=="}, "value": {"$bytes": "/wA="}, "timestamp": 7},
        {"key": None, "value": "plain", "encoding": "text", "timestamp": 8},
    ]
    everstate("produce", "orders", "--create", stdin="".join(json.dumps(line) + "\n" for line in lines))
    printed = everstate("consume", "orders", "--json").stdout
    everstate("produce", "copy", "--create", stdin=printed)
    copied = everstate("consume", "copy", "--json").stdout
    assert copied == printed.replace('"topic": "orders"', '"topic": "copy"')


def test_produce_file_is_read_instead_of_standard_input(everstate):
    file = everstate.path / "orders.jsonl"
    file.write_text('{"id": 1}\n{"id": 2}')
    everstate("produce", "orders", "--create", str(file), "--key-field", "id", stdin="not read")
    assert [key for key, _ in keys_and_values(everstate)] == ["1", "2"]


def test_produce_missing_file_is_named(everstate):
    with pytest.raises(ConfigurationError, match=r"none.jsonl cannot be read: No such file"):
        everstate("produce", "orders", "--create", "none.jsonl")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "it is not JSON"),
        ("NaN", "it is not JSON: NaN is not allowed"),
        ('{"other": 1}', "it has no field 'id'"),
        ('{"id": null}', "its field 'id' is null"),
        ('{"id": {}}', "an object cannot be a key"),
        ("5", "it has no field 'id'"),
    ],
)
def test_produce_bad_line_is_named_and_what_came_before_is_written(everstate, line, reason):
    with pytest.raises(DecodeError, match=rf"line 3 of standard input: {reason}(?s:.*)2 records .* were written"):
        everstate(
            "produce",
            "orders",
            "--create",
            "--key-field",
            "id",
            stdin=f'{{"id": 1}}\n{{"id": 2}}\n{line}\n{{"id": 4}}\n',
        )
    assert [key for key, _ in keys_and_values(everstate)] == ["1", "2"]


def test_produce_line_that_is_not_utf8_is_named(everstate):
    with pytest.raises(DecodeError, match="line 1 of standard input: it is not UTF-8"):
        everstate("produce", "orders", "--create", stdin=b'"\xff"\n')


def test_produce_record_without_key_to_a_compacted_topic_is_refused(everstate):
    everstate("topic", "create", "orders", "--compact")
    with pytest.raises(LogError, match="each record needs a key"):
        everstate("produce", "orders", "--create", stdin="1\n")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["orders", "--key", "a", "--key-field", "b"], ConfigurationError),
        (["orders", "f.jsonl", "--key", "a", "--tombstone"], ConfigurationError),
        (["../orders"], TopicNameError),
    ],
)
def test_produce_wrong_arguments_are_refused(everstate, arguments, error):
    with pytest.raises(error):
        everstate("produce", *arguments)


def test_produce_pipe_that_stays_open_is_written_as_lines_arrive(everstate):
    code = "from everstate.cli.commands.produce import produce; import typer; typer.run(produce)"
    environment = {**os.environ, "EVERSTATE_LOG": str(everstate.path / "log")}
    process = subprocess.Popen(
        [sys.executable, "-c", code, "orders"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )
    try:
        process.stdin.write(b"1\n")
        process.stdin.flush()
        everstate("topic", "create", "orders", "--if-not-exists")
        everstate("consume", "orders", "--from-beginning", "--follow", "--max", "1")
    finally:
        process.communicate(timeout=30)
    assert process.returncode == 0
