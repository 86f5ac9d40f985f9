"""What other programs write is read, and what is published is read by them, tombstones included."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from everstate.log import TopicConfig
from scripts import kafka_broker
from tests.kafka.conftest import frame
from tests.registries import serving

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long]
HERE = Path(__file__).parent
JAVA = ("java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error")


@pytest.fixture
def run(servers, tmp_path):
    """Drains the sources of a service."""

    def once(service, **environment):
        command = [sys.executable, "-m", "everstate.cli.main", "run", str(HERE / service), "--once", "--memory", "1g"]
        command += ["--log", f"kafka://{servers}", "--state-dir", str(tmp_path / "state")]
        known = {**os.environ, "EVERSTATE_APPROVAL": "approve", **environment}
        done = subprocess.run(command, env=known, capture_output=True, text=True, timeout=280, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    return once


def program(name, *words, stdin=""):
    """Run one of the programs that come with Kafka."""
    line = [*JAVA, "-cp", f"{kafka_broker.fetch('programs')}/*", name, *words]
    done = subprocess.run(line, input=stdin, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def everything(servers, topic):
    """All committed records of a topic, as a consumer of others sees them."""
    settings = {"bootstrap.servers": servers, "group.id": "others", "auto.offset.reset": "earliest"}
    settings |= {"enable.partition.eof": True, "isolation.level": "read_committed", "log_level": 0}
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    partitions = len(consumer.list_topics(topic, timeout=30).topics[topic].partitions)
    found, ended = [], 0
    while ended < partitions:
        message = consumer.poll(30)
        assert message is not None
        if message.error() is not None:
            ended += 1
        else:
            found.append(message)
    consumer.close()
    return found


def test_records_of_other_programs_become_a_table_that_other_programs_read(log, servers, run, tmp_path):
    log.create_topic("orders", TopicConfig(partitions=2, compact=True))
    orders = {"o1": ("keyA", 5.0), "o2": ("keyB", 20.0), "o3": ("keyC", 30.0)}
    values = {
        key: json.dumps({"order_id": key, "customer": name, "amount": amount}) for key, (name, amount) in orders.items()
    }
    # One from the console, the others from librdkafka, whose partitions are not those that Java would choose.
    program(
        "org.apache.kafka.tools.ConsoleProducer",
        *("--bootstrap-server", servers, "--topic", "orders"),
        *("--reader-property", "parse.key=true", "--reader-property", "key.separator=|"),
        stdin=f"o1|{values['o1']}\n",
    )
    producer = Producer({"bootstrap.servers": servers})
    for key in ("o2", "o3"):
        producer.produce("orders", values[key], key, headers={"source": "till 7"}, timestamp=1_700_000_000_000)
    producer.flush(30)
    run("shop_service.py")
    producer.produce("orders", None, "o3")
    producer.flush(30)
    run("shop_service.py")
    came = {}
    for message in everything(servers, "customer-totals"):
        came.setdefault(message.key().decode(), []).append(message.value() and json.loads(message.value()))
        assert dict(message.headers())["es-service"] == b"customers"
    assert came["keyC"] == [{"total": 30.0, "orders": 1}, None]
    assert came["keyA"] == [{"total": 5.0, "orders": 1}]
    shown = program(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", servers, "--topic", "customer-totals", "--from-beginning", "--max-messages", "4"),
        *("--isolation-level", "read_committed", "--formatter-property", "print.key=true"),
        *("--formatter-property", "null.literal=gone", "--formatter-property", "print.value=true"),
    )
    lines = [line.split("\t") for line in shown.splitlines() if "\t" in line]
    assert [value for key, value in lines if key == "keyC"][-1] == "gone"
    streams = (f"{HERE / 'StreamsTable.java'}", servers, "customer-totals", str(tmp_path / "streams"), "2")
    table = dict(line.split("\t") for line in program(*streams).splitlines() if "\t" in line)
    assert {key: json.loads(value) for key, value in table.items()} == {
        "keyA": {"total": 5.0, "orders": 1},
        "keyB": {"total": 20.0, "orders": 1},
    }


PAYMENT = {
    "type": "record",
    "name": "Payment",
    "fields": [
        {"name": "account", "type": "string"},
        {"name": "amount", "type": "double"},
        {"name": "note", "type": ["null", "string"], "default": None},
    ],
}


def test_avro_of_confluents_serialisers_goes_through_a_service_and_is_read_by_them(log, servers, run):
    log.create_topic("payments", TopicConfig(partitions=1, compact=True))
    with serving() as registry:
        serializer = AvroSerializer(registry.client, json.dumps(PAYMENT))
        written, published = (SerializationContext(name, MessageField.VALUE) for name in ("payments", "balances"))
        producer = Producer({"bootstrap.servers": servers})
        for key, account, amount in (("p1", "ada", 2.5), ("p2", "bob", 4.0), ("p3", "ada", 1.25)):
            value = serializer({"account": account, "amount": amount, "note": None}, written)
            producer.produce("payments", value, key)
        producer.flush(30)
        log.append("payments", frame(("p4", "{}")))
        run("avro_service.py", EVERSTATE_REGISTRY_URL=registry.url)
        read = AvroDeserializer(registry.client)
        messages = everything(servers, "balances")
        found = {message.key().decode(): read(message.value(), published) for message in messages}
    assert found == {"ada": {"total": 3.75}, "bob": {"total": 4.0}}
    (letter,) = log.latest("balances.dlq")["value"]
    assert json.loads(letter)["reason"].startswith("it does not begin with the number of a schema")
    assert (json.loads(letter)["topic"], json.loads(letter)["offset"]) == ("payments", 3)
