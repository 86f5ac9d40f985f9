"""Commits as entries of a journal: the last marker of each generation, and the order log.

`commit/<output>/<generation>/<open or closed>` is the last batch. `stop/<output>/<generation>/<kind>/<batch>` is
where a batch ended whose results depend on the order of arrival; those stay. `cutover/<output>` is there while a
cutover is under way.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from everstate.log import vectors
from everstate.log.descriptions import Commit
from everstate.log.stops import Stops

if TYPE_CHECKING:
    from collections.abc import Mapping

    from everstate.log.descriptions import Vector
    from everstate.log.kafka.journal import Entry

_VECTORS = ("start", "end")


@dataclass(frozen=True)
class Marker:
    """A commit as the log knows it.

    Attributes:
        commit: The batch.
        before: Where its topics ended before it: all that it has published comes after.
    """

    commit: Commit
    before: Vector

    @property
    def key(self) -> str:
        """Of its entry."""
        return marker_key(self.commit)

    def to_bytes(self) -> bytes:
        """As it is written; `publisher` and `of` say which share of a batch it stands for."""
        document: dict[str, Any] = dict(vars(self.commit))
        document |= {name: json.loads(vectors.to_json(document[name])) for name in _VECTORS}
        document |= {"before": json.loads(vectors.to_json(self.before)), "publisher": 0, "of": 1}
        return json.dumps(document).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Marker:
        """What `to_bytes` wrote."""
        document = json.loads(data)
        before = vectors.from_offsets(document.pop("before"))
        document = {name: value for name, value in document.items() if name not in {"publisher", "of"}}
        document |= {name: vectors.from_offsets(document[name]) for name in _VECTORS}
        return cls(Commit(**document), before)


def marker_key(commit: Commit) -> str:
    """The entry that holds the last batch of a generation."""
    return f"commit/{commit.output}/{commit.generation}/{'closed' if commit.kind == 'closed' else 'open'}"


def last_marker(entries: Mapping[str, Entry], output: str, generation: str | None) -> Marker | None:
    """The last batch that an output has published, or the last one of a generation, published or not."""
    found = None
    for key, entry in entries.items():  # in the order in which they were written
        kind, _, rest = key.partition("/")
        if kind != "commit" or not rest.startswith(f"{output}/"):
            continue
        version, _, state = rest.removeprefix(f"{output}/").rpartition("/")
        if state != "closed" if generation is None else version == generation:
            found = entry
    return None if found is None else Marker.from_bytes(found.value)


def stop_entry(commit: Commit, now_ms: int) -> tuple[str, bytes] | None:
    """Where a batch ended, for the order log; None if its output does not depend on the order."""
    if not commit.ordered:
        return None
    key = f"stop/{commit.output}/{commit.generation}/{commit.kind}/{commit.batch_id}"
    return key, json.dumps({"end": json.loads(vectors.to_json(commit.end)), "ms": now_ms}).encode()


def stops(entries: Mapping[str, Entry], output: str) -> Stops:
    """Where published batches ended, and when; what a generation did while it was built counts from its cutover on."""
    ends: list[Vector] = []
    times: list[int] = []
    built: dict[str, list[tuple[Vector, int]]] = {}
    for key, entry in entries.items():
        if not key.startswith(f"stop/{output}/"):
            continue
        generation, kind, _ = key.removeprefix(f"stop/{output}/").rsplit("/", 2)
        document = json.loads(entry.value)
        stop = (vectors.from_offsets(document["end"]), int(document["ms"]))
        if kind == "closed":
            built.setdefault(generation, []).append(stop)
            continue
        for end, ms in [*(built.pop(generation, []) if kind == "cutover" else []), stop]:
            ends.append(end)
            times.append(ms)
    return Stops.of(ends, times).advancing()


def corrected(last: Marker, batch: Commit, now_ms: int) -> Marker:
    """The marker of a batch that came again with other content."""
    return replace(last, commit=replace(last.commit, digest=batch.digest, token=batch.token, committed_ms=now_ms))


def pending_generation(entry: Entry) -> str:
    """The generation whose cutover is under way."""
    return str(json.loads(entry.value)["generation"])
