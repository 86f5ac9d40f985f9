"""A sample of a generation's inputs with what its steps make of them: a second net under the fingerprints.

Every plan evaluates the sample again. Equal fingerprints and another result mean that something has changed which the
fingerprint could not see, and the output is recalculated. The same sample tells whether other versions of Python,
Polars or Everstate, which are no change by themselves, calculate something else.

A sample is evidence only where the same records give the same result: it is evaluated twice when it is taken, and
steps that contradict themselves are left out, with all that depends on them.
"""

from __future__ import annotations

import base64
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from everstate.errors import EverstateError
from everstate.fingerprints import libraries
from everstate.fingerprints.prints import UnitPrint
from everstate.generations.state.sample_choice import taken
from everstate.kernels.evaluation import asks_outside, evaluated, unsettled
from everstate.kernels.records import times
from everstate.kernels.rows import OFF
from everstate.log.records import HEADERS
from everstate.plan.facts import Mismatch
from everstate.topology.names import node_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everstate.generations.generation import Generation
    from everstate.generations.state.folder import StateFolder
    from everstate.kernels.evaluation import Evaluation
    from everstate.kernels.pipeline import Piece
    from everstate.log.protocol import Log
    from everstate.topology.unit import Unit

logger = logging.getLogger(__name__)

_FORMAT: Final = 2
#: A sample is taken again when its topics have grown by this factor.
_GROWTH: Final = 2
#: An output that needs longer has a smaller sample: it is evaluated with every plan.
_SECONDS: Final = 1.0
_SCHEMA: Final = {"key": pl.Binary(), "value": pl.Binary(), "ts": pl.Int64(), "offset": pl.Int64()}


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Some records, and what a version makes of them.

    Attributes:
        fingerprint: Of the version.
        libraries: Under which it was evaluated.
        seen: How many records the topics had got by then.
        batches: The records, as micro-batches.
        steps: The digest of what each step gave; the last is the output.
        unsettled: Steps that give other results for the same records, or say that they may, with what depends on them.
        contradicts: The first step that did so without having said it; empty if none did.
        policy: What happened to records that could not be processed: as a rule one of them must not hide the others.
        shards: On how many shards it was evaluated.
        tried: It was evaluated twice, so that steps which contradict themselves are known.
    """

    fingerprint: str
    libraries: dict[str, str]
    seen: int
    batches: Sequence[Sequence[Piece]]
    steps: dict[str, str]
    unsettled: list[str]
    contradicts: str = ""
    policy: str = "dead-letter"
    shards: int = 1
    tried: bool = True

    @property
    def records(self) -> int:
        """How many records it has."""
        return sum(records.height for batch in self.batches for _, _, records in batch)


def keep(folder: StateFolder, unit: Unit, generation: Generation, log: Log) -> None:
    """Keep a sample beside a generation's state, if there is none or its topics have grown much since.

    The inputs themselves are kept, since topics lose records. A sample that the output contradicts stays: it is the
    evidence. Libraries that are not the generation's own give none.
    """
    seen = sum(end for ends in log.end_offsets(unit.topics).values() for end in ends.values())
    before = read(folder)
    if before is not None and before.fingerprint == generation.fingerprint:
        if seen < _GROWTH * before.seen or mismatch(before, unit) is not None:
            return
    elif UnitPrint.from_json(generation.description).libraries != libraries():
        return
    if not seen or asks_outside(unit):
        return
    try:
        sample = _taken(unit, generation, log, seen)
    except Exception as error:  # noqa: BLE001 - whatever it is, the output itself will meet it and name it
        logger.debug("No sample of %s: %s", unit.output.topic, error)
        return
    if sample is not None:
        _write(folder, sample)


def _taken(unit: Unit, generation: Generation, log: Log, seen: int) -> Sample | None:
    batches = taken(log, unit)
    if not batches:
        return None
    found = evaluated(unit, batches, seconds=_SECONDS)
    batches = batches[: found.batches]
    again = evaluated(unit, batches)
    declared = unsettled(unit, found, found)
    undeclared = [name for name in unsettled(unit, found, again) if name not in declared]
    if undeclared:
        logger.warning(
            "Output %s: the step %s (%s) is not deterministic: the same records gave different results. A change to it "
            "that its fingerprint misses cannot be found, and a recalculation may change its results.",
            unit.output.topic,
            undeclared[0],
            place_of(unit, undeclared[0]),
        )
    return Sample(
        fingerprint=generation.fingerprint,
        libraries=dict(libraries()),
        seen=seen,
        batches=batches,
        steps=found.steps,
        unsettled=unsettled(unit, found, again),
        contradicts=undeclared[0] if undeclared else "",
    )


def mismatch(sample: Sample, unit: Unit) -> Mismatch | None:
    """What a version of the same fingerprint makes otherwise of a sample; None if nothing.

    Under other libraries only the output counts: another version of Everstate may get there in other steps.
    """
    same = sample.libraries == libraries()
    try:
        whole = _evaluated(sample, unit)
        found = whole.steps
    except Exception as error:  # noqa: BLE001 - it did not fail before
        what = error.message if isinstance(error, EverstateError) else f"{type(error).__name__}: {error}"
        last = list(sample.steps)[-1]
        return Mismatch(f"a sample of {sample.records} records fails: {what}", last, "", libraries=not same)
    differing = [name for name, digest in sample.steps.items() if found.get(name) != digest]
    doubted = sample.unsettled
    if differing and not sample.tried:
        doubted = unsettled(unit, whole, _evaluated(sample, unit))
    evidence = [name for name in differing if name not in doubted]
    if not evidence or (not same and evidence[-1] != list(sample.steps)[-1]):
        return None
    what = f"a sample of {sample.records} records gives a different result"
    return Mismatch(what, evidence[0], place_of(unit, evidence[0]), libraries=not same)


def _evaluated(sample: Sample, unit: Unit) -> Evaluation:
    return evaluated(unit, sample.batches, policy=sample.policy, shards=sample.shards)


def place_of(unit: Unit, step: str) -> str:
    """The user's file and line of a step."""
    places = dict(zip(node_names(unit), unit.nodes, strict=True))
    return str(places[step].location or "") if step in places else ""


def read(folder: StateFolder) -> Sample | None:
    """The sample of a generation; None if there is none that this version can read.

    Raises:
        CheckpointDamagedError: If it is not what was written.
    """
    known = folder.read_sample()
    if known is None or known.pop("format", 1) != _FORMAT:
        return None
    batches = [[(topic, number, _frame(rows)) for topic, number, rows in batch] for batch in known["batches"]]
    return Sample(**{**known, "batches": batches, "steps": dict(known["steps"])})


def _write(folder: StateFolder, sample: Sample) -> None:
    folder.write_sample(document(sample))


def document(sample: Sample) -> dict[str, Any]:
    """A sample as plain values, from which `read` makes it again."""
    known: dict[str, Any] = {
        "format": _FORMAT,
        "fingerprint": sample.fingerprint,
        "libraries": sample.libraries,
        "seen": sample.seen,
        "batches": [[(topic, number, _rows(records)) for topic, number, records in batch] for batch in sample.batches],
        "steps": list(sample.steps.items()),  # in their order, which a JSON object would lose
        "unsettled": sample.unsettled,
        "contradicts": sample.contradicts,
    }
    # A sample that was taken from topics is always evaluated in the same way, and does not say so.
    return known if sample.tried else {**known, "policy": sample.policy, "shards": sample.shards, "tried": False}


def _rows(records: pl.DataFrame) -> list[list[Any]]:
    rows = [[_text(key), _text(value), ts, offset] for key, value, ts, offset in records.select(*_SCHEMA).iter_rows()]
    said = times.heard(records)
    if said is None:
        return rows
    texts = dict(zip(said[OFF], times.text(said), strict=True))
    return [[*row, texts[row[3]]] if row[3] in texts else row for row in rows]


def _frame(rows: list[list[Any]]) -> pl.DataFrame:
    plain = [(_bytes(key), _bytes(value), ts, offset) for key, value, ts, offset, *_ in rows]
    frame = pl.DataFrame(plain, schema=_SCHEMA, orient="row")
    if all(len(row) == len(_SCHEMA) for row in rows):
        return frame
    headers = [[{"name": times.HEADER, "value": row[4].encode()}] if len(row) > len(_SCHEMA) else None for row in rows]
    return frame.with_columns(pl.Series("headers", headers, dtype=HEADERS))


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
