from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from everstate.errors import LogDeniedError
from everstate.log.kafka.failures import refusal

SENT = (
    "ProduceRequest for {} [3] with 7 message(s) failed: Broker: No (broker 1 PID{{Id:1,Epoch:4}}, base seq 0): aborted"
)


def raised(code, text):
    return KafkaException(KafkaError(code, text))


@pytest.mark.parametrize(
    ("code", "cure"),
    [
        (KafkaError.MSG_SIZE_TOO_LARGE, "--topic some.topic --add-config max.message.bytes="),
        (KafkaError.RECORD_LIST_TOO_LARGE, "--topic some.topic --add-config max.message.bytes="),
        (KafkaError.INVALID_TIMESTAMP, "--topic some.topic --add-config message.timestamp.after.max.ms="),
        (KafkaError.INVALID_RECORD, "no record without a key"),
        (KafkaError.POLICY_VIOLATION, "the rules of the topic"),
    ],
)
def test_refusal_of_a_record_names_its_topic_and_the_cure(code, cure):
    found = refusal(raised(code, SENT.format("some.topic")), "what 'id' writes is refused")
    assert found.message == "topic 'some.topic' does not take a record: Broker: No"
    assert cure in found.hint


def test_refusal_by_the_client_itself_is_of_the_topic_that_was_written_to():
    found = refusal(raised(KafkaError.MSG_SIZE_TOO_LARGE, "too much"), "a record cannot be sent", topic="orders")
    assert found.message == "topic 'orders' does not take a record: too much"
    assert "--topic orders " in found.hint


def test_refusal_for_want_of_a_right_says_which_rights_to_give():
    found = refusal(raised(KafkaError.TOPIC_AUTHORIZATION_FAILED, "no right"), "what 'id' writes is refused")
    assert isinstance(found, LogDeniedError)
    assert found.message == "what 'id' writes is refused: no right"


@pytest.mark.parametrize(
    "code", [KafkaError._TIMED_OUT, KafkaError._FENCED, KafkaError.NOT_ENOUGH_REPLICAS, KafkaError.UNKNOWN]
)
def test_failure_that_may_pass_is_no_refusal(code):
    assert refusal(raised(code, "later"), "what 'id' writes is refused") is None
