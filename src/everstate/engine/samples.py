"""A sample of a generation's inputs with the digest of what it makes of them.

An upgrade of Python, Polars or Everstate is not a change by itself, but it may calculate something else. So when the
libraries are others than those of a generation, its sample is evaluated again, and only another digest recalculates.
"""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from everstate.engine.folder import OutputFolder, read_document, write_document
from everstate.kernels.ledger import Ledger
from everstate.kernels.pages import MemoryPages
from everstate.kernels.parcel import OUT, RECORDS, Parcel
from everstate.kernels.shard import Shard
from everstate.kernels.stage import ingest, run_stage
from everstate.topology.errors import EverstateError
from everstate.topology.fingerprints import libraries
from everstate.topology.prints import UnitPrint
from everstate.topology.unit import silenced

if TYPE_CHECKING:
    from everstate.generations.generation import Generation
    from everstate.log.protocol import Log
    from everstate.topology.unit import Unit

#: Records of each source topic.
_RECORDS: Final = 200
_COLUMNS: Final[dict[str, pl.DataType]] = {
    "key": pl.Binary(),
    "value": pl.Binary(),
    "ts": pl.Int64(),
    "offset": pl.Int64(),
}


def keep(folder: OutputFolder, unit: Unit, generation: Generation, log: Log) -> None:
    """Keep a sample beside a generation's state, if there is none yet.

    The inputs themselves are kept, since topics lose records. Libraries that are not the generation's own give none.
    """
    if folder.sample_file.exists() or UnitPrint.from_json(generation.description).libraries != libraries():
        return
    inputs = {topic: _first(log, topic) for topic in unit.topics}
    if not any(inputs.values()):
        return
    try:
        digest = evaluated(unit, generation.policy, inputs)
    except EverstateError:
        return  # the policy is to fail, and among the first records is one that does
    write_document(folder.sample_file, {"inputs": inputs, "digest": digest})


def mismatch(folder: OutputFolder, unit: Unit, policy: str) -> str:
    """What a unit gives otherwise than when the sample was taken; empty if nothing, or if there is no sample."""
    document = read_document(folder.sample_file)
    if document is None:
        return ""
    count = sum(len(rows) for rows in document["inputs"].values())
    try:
        same = evaluated(unit, policy, document["inputs"]) == document["digest"]
    except EverstateError as error:
        return f"a sample of {count} records fails: {error.message}"
    return "" if same else f"a sample of {count} records gives another result"


def evaluated(unit: Unit, policy: str, inputs: dict[str, list[list[Any]]]) -> str:
    """The digest of what a unit makes of some records, in one micro-batch on one shard; without side effects."""
    unit = silenced(unit)
    ledger = Ledger(unit.topics, policy)
    parcels: list[Parcel] = []
    for topic, rows in inputs.items():
        if topic in unit.topics and rows:
            parcels += ingest(unit, topic, 0, _frame(rows), ledger)
    pages, found = MemoryPages(), []
    for stage in range(1, unit.depth + 1):
        shard = Shard(pages, None, ledger)
        arrivals = [parcel for parcel in parcels if parcel.stage == stage]
        parcels = [parcel for parcel in parcels if parcel.stage != stage] + run_stage(unit, stage, arrivals, shard)
        shard.close()
    for parcel in parcels:
        if parcel.stage == OUT and parcel.port == RECORDS:
            found += parcel.frame.select("key", "value").rows()
    letters = ledger.letters().height
    return hashlib.sha256(repr((sorted(found, key=repr), letters)).encode()).hexdigest()


def _first(log: Log, topic: str) -> list[list[Any]]:
    start = log.begin_offsets([topic])[topic][0]
    frame = log.read(topic, 0, start, limit=_RECORDS)
    rows = frame.select("key", "value", "ts", "offset").iter_rows()
    return [[_text(key), _text(value), ts, offset] for key, value, ts, offset in rows]


def _frame(rows: list[list[Any]]) -> pl.DataFrame:
    plain = [(_bytes(key), _bytes(value), ts, offset) for key, value, ts, offset in rows]
    return pl.DataFrame(plain, schema=_COLUMNS, orient="row")


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
