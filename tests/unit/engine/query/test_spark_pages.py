import io
import struct

import pyarrow as pa
import pytest

from everstate.engine.query.spark_pages import WINDOW, SparkPages, compressed, decompressed
from everstate.errors import EngineError


class StateServer:
    """Answers the requests of PySpark's client as Java does: in order, when they have been flushed."""

    def __init__(self, refusing=None):
        from pyspark.serializers import CPickleSerializer

        self.pickleSer = CPickleSerializer()
        self.sockfile = self
        self.stored = {}
        self.refusing = refusing
        self.most_waiting = 0
        self._written = io.BytesIO()
        self._answers = []

    def write(self, data):
        self._written.write(data)

    def flush(self):
        from pyspark.sql.streaming.proto import StateMessage_pb2

        data = io.BytesIO(self._written.getvalue())
        self._written = io.BytesIO()
        while head := data.read(8):
            version, length = struct.unpack("!ii", head)
            assert version == 0
            request = StateMessage_pb2.StateRequest()
            request.ParseFromString(data.read(length))
            self._answers.append(self._answer(request.stateVariableRequest.mapStateCall))
        self.most_waiting = max(self.most_waiting, len(self._answers))

    def _answer(self, call):
        assert call.stateName == "pages"
        kind = call.WhichOneof("method")
        key = self.pickleSer.loads(getattr(call, kind).userKey)
        if key == self.refusing:
            return 1, "no", b""
        if kind == "updateValue":
            self.stored[key] = call.updateValue.value
        elif kind == "removeKey":
            del self.stored[key]
        return 0, "", self.stored.get(key, b"") if kind == "getValue" else b""

    def _receive_proto_message(self):
        return self._answers.pop(0)


def pages_on(server):
    client = type("Client", (), {"_stateful_processor_api_client": server})()
    return SparkPages(type("State", (), {"_stateName": "pages", "_mapStateClient": client})())


@pytest.mark.parametrize("count", [0, 1, WINDOW, 3 * WINDOW + 5])
def test_spark_pages_written_come_back_in_order(count):
    server = StateServer()
    pages = pages_on(server)
    blocks = {number: b"block %d" % number for number in range(count)}
    pages.write(3, blocks)
    assert pages.read(3, list(blocks)) == list(blocks.values())
    assert server.most_waiting <= WINDOW


def test_spark_pages_that_are_not_there_are_none():
    pages = pages_on(StateServer())
    pages.write(1, {5: b"five"})
    assert pages.read(1, [4, 5]) == [None, b"five"]
    assert pages.read(2, [5]) == [None]


def test_spark_pages_deleted_are_gone():
    pages = pages_on(StateServer())
    pages.write(1, {5: b"five", 6: b"six"})
    pages.delete(1, [5])
    assert pages.read(1, [5, 6]) == [None, b"six"]


def test_spark_pages_refused_are_an_error():
    pages = pages_on(StateServer(refusing=(1, 7)))
    with pytest.raises(EngineError, match="refuses a page: no"):
        pages.write(1, {6: b"six", 7: b"seven"})


@pytest.mark.parametrize("cut", [0, 4, 30])
def test_decompressed_page_cut_short_is_refused(cut):
    with pytest.raises(pa.ArrowInvalid):
        decompressed(compressed(bytes(range(256)))[:cut])
