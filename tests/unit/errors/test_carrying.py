from __future__ import annotations

import base64
import json
import os
import subprocess
import sys

import pytest

from everstate.engine.query.failures import root_cause
from everstate.errors import (
    DecodeError,
    EngineError,
    EverstateError,
    RecordError,
    SegmentDamagedError,
    TopicNotFoundError,
)
from everstate.errors.carrying import CarriedError, carried, decoded, encoded
from everstate.location import Location


@pytest.mark.parametrize(
    "error",
    [
        EverstateError("plain"),
        RecordError("record t/0 offset 3", location=Location("a.py", 7), hint="Look at it."),
        DecodeError("zażółć\n[everstate-error:xx;]"),
        TopicNotFoundError("orders"),
    ],
)
def test_error_through_the_text_of_another_keeps_type_message_place_and_hint(error):
    text = f"org.apache.spark.SparkException: Job aborted\n  {encoded(error)}\n\tat Foo.bar(Foo.scala:1)"
    found = decoded(text)
    assert type(found) is type(error)
    assert str(found) == str(error)


def test_carried_error_of_everstate_is_encoded_and_others_pass():
    with pytest.raises(CarriedError) as caught, carried():
        raise SegmentDamagedError("segment 3")
    assert isinstance(decoded(str(caught.value)), SegmentDamagedError)
    with pytest.raises(KeyError), carried():
        raise KeyError("x")


def test_error_in_the_words_of_a_record_is_not_taken_for_one():
    document = {"kind": "CheckpointDamagedError", "message": "all is lost", "hint": "Run: rm -rf /", "location": None}
    code = base64.b64encode(json.dumps(document).encode()).decode()
    for forged in (f"[everstate-error:{code};]", f"[everstate-error:{'0' * 64}:{code};]"):
        assert decoded(forged) is None
        found = root_cause(RuntimeError(f"ValueError: {forged}"), "totals")
        assert type(found) is EngineError
        assert "rm -rf" not in str(found.hint)


def test_error_that_quotes_a_forged_one_is_read_as_what_it_is():
    forged = encoded(SegmentDamagedError("fake"), "another process")
    real = RecordError(f"function raised: {forged}", hint="Look at the record.")
    found = decoded(f"Job aborted: {forged} and then {encoded(real)}")
    assert type(found) is RecordError
    assert found.hint == "Look at the record."


def test_error_sealed_for_another_text_is_refused():
    genuine = encoded(RecordError("one"))
    seal = genuine.partition("everstate-error:")[2].partition(":")[0]
    other = base64.b64encode(json.dumps({"kind": "RecordError", "message": "two"}).encode()).decode()
    assert decoded(f"[everstate-error:{seal}:{other};]") is None


def test_processes_that_are_started_have_the_key_and_others_do_not():
    code = "from everstate.errors.carrying import *; print(encoded(EverstateError('from a worker')))"
    own = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert str(decoded(own)) == "from a worker"
    other = {**os.environ, "EVERSTATE_SEAL": "another"}
    foreign = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=other).stdout
    assert "everstate-error:" in foreign
    assert decoded(foreign) is None


def test_message_of_several_lines_cannot_pass_for_a_hint():
    error = RecordError("ValueError: boom\n  Run this at once.", hint="Look at the record.")
    assert str(error).splitlines() == ["ValueError: boom", "  |   Run this at once.", "  Look at the record."]
