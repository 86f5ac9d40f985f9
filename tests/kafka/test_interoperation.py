"""What other programs write is read, and what is published is read by them, tombstones included."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import IntegerSerializer, MessageField, SerializationContext

from everstate.log import TopicConfig, open_log
from everstate.reading.copying import copy_topic
from everstate.schema.partitioner import partition_of
from tests.kafka.conftest import frame
from tests.kafka.others import everything, program, quix_service, streams_table
from tests.registries import serving

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long]


def test_records_of_other_programs_become_a_table_that_other_programs_read(log, servers, run):
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


def order(name, customer, amount):
    return name, json.dumps({"order_id": name, "customer": customer, "amount": amount})


@pytest.mark.parametrize("kind", ["table", "global"])
def test_table_of_kafka_streams_is_never_touched_and_follows_a_change_of_the_code(log, servers, run, tmp_path, kind):
    log.create_topic("orders", TopicConfig(partitions=2, compact=True))
    rows = [order("o1", "keyA", 5.0), order("o2", "keyB", 20.0), order("o3", "keyC", 30.0), order("o4", "keyB", 1.0)]
    log.append("orders", frame(*rows))
    run("shop_service.py", EVERSTATE_TEST_VERSION="1")
    with streams_table(servers, "customer-totals", tmp_path / "streams", kind) as downstream:
        expected = {"keyA": {"total": 5.0, "orders": 1}, "keyB": {"total": 21.0, "orders": 2}}
        before = downstream.becomes(expected | {"keyC": {"total": 30.0, "orders": 1}})
        run("shop_service.py", EVERSTATE_TEST_VERSION="2")
        # From scratch: on another log, where version 2 is the first.
        there = open_log(tmp_path / "there")
        copy_topic(log, there, "orders")
        run("shop_service.py", tmp_path / "there", EVERSTATE_TEST_VERSION="2")
        scratch = there.latest("customer-totals").select("key", "value").iter_rows()
        scratch = {key.decode(): json.loads(value) for key, value in scratch}
        assert scratch == {"keyB": {"total": 20.0, "orders": 1}, "keyC": {"total": 30.0, "orders": 1}}
        after = downstream.becomes(scratch)
        if kind == "table":
            assert after - before == 2, "more came than one changed key and one tombstone"
        log.append("orders", frame(("o3", None)))
        run("shop_service.py", EVERSTATE_TEST_VERSION="2")
        downstream.becomes({"keyB": {"total": 20.0, "orders": 1}})


def test_orders_of_a_quix_streams_service_become_a_table_that_another_one_reads(log, servers, run):
    log.create_topic("tills", TopicConfig(partitions=2))
    log.create_topic("orders", TopicConfig(partitions=2, compact=True))
    sold = [("o1", "keyA", 500), ("o2", "keyB", 2000), ("o3", "keyC", 3000)]
    sold = [{"id": name, "who": who, "cents": cents} for name, who, cents in sold]
    log.append("tills", frame(*[(row["who"], json.dumps(row)) for row in sold]))
    quix_service(servers, "sends", "tills", "orders", len(sold))
    run("shop_service.py", EVERSTATE_TEST_VERSION="1")
    first = quix_service(servers, "reads", "customer-totals", "-", 3)
    assert dict(first) == {row["who"]: {"total": row["cents"] / 100, "orders": 1} for row in sold}
    run("shop_service.py", EVERSTATE_TEST_VERSION="2")
    assert quix_service(servers, "reads", "customer-totals", "-", 1) == [["keyA", None]]


def test_keys_of_confluents_and_javas_serialisers_of_integers_are_read_and_written(log, servers, run):
    log.create_topic("orders", TopicConfig(partitions=2, compact=True))
    key = IntegerSerializer()
    producer = Producer({"bootstrap.servers": servers})
    for number, customer, amount in ((1, 7, 5), (2, -8, 20), (-3, 7, 1)):
        value = json.dumps({"customer": customer, "amount": amount})
        producer.produce("orders", value, key(number, SerializationContext("orders", MessageField.KEY)))
    producer.flush(30)
    log.append("orders", frame(("three bytes more", "{}")))
    run("numbers_service.py")
    producer.produce("orders", None, key(2, SerializationContext("orders", MessageField.KEY)))
    producer.flush(30)
    run("numbers_service.py")
    shown = program(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", servers, "--topic", "customers", "--from-beginning", "--max-messages", "3"),
        *("--isolation-level", "read_committed", "--formatter-property", "print.key=true"),
        *("--formatter-property", "null.literal=gone"),
        *("--formatter-property", "key.deserializer=org.apache.kafka.common.serialization.IntegerDeserializer"),
    )
    lines = sorted(line for line in shown.splitlines() if "\t" in line)
    assert lines == ["-8\tgone", '-8\t{"total":20}', '7\t{"total":6}']
    # Where Java's producers would look for them.
    for partition in range(2):
        keys = log.read("customers", partition, 0)["key"]
        assert (partition_of(keys, 2) == partition).all()
    (letter,) = log.latest("customers.dlq")["value"]
    assert "16 bytes are no int32" in json.loads(letter)["reason"]


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
