"""Commits as entries of a journal: the last marker of each generation, and the order log.

`commit/<output>/<generation>/<open or closed>` is the last batch. `stop/<output>/<generation>/<kind>/<batch>` is
where a batch ended whose results depend on the order of arrival; 256 of them in a row become one entry under `stops`,
and 256 of those one under `many-stops`: a month of a batch per second is 40 of these, and some hundred others.
`cutover/<output>` is there while a cutover is under way.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from everstate.log import vectors
from everstate.log.descriptions import Commit
from everstate.log.stops import Stops

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from everstate.log.descriptions import Vector
    from everstate.log.kafka.journal import Entry

_VECTORS = ("start", "end")
#: So many stops in a row become one entry.
FOLD: Final = 256
#: What an entry begins with that holds one stop, some hundred, some ten thousand.
_LEVELS: Final = ("stop", "stops", "many-stops")
#: Brokers take records of a megabyte.
_LARGEST: Final = 500_000


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
        """As it is written."""
        document: dict[str, Any] = dict(vars(self.commit))
        document |= {name: json.loads(vectors.to_json(document[name])) for name in (*_VECTORS, "times")}
        document |= {"before": json.loads(vectors.to_json(self.before))}
        return json.dumps(document).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Marker:
        """What `to_bytes` wrote."""
        document = json.loads(data)
        before = vectors.from_offsets(document.pop("before"))
        # An earlier version had these in every marker; now each publisher has an entry of its own (`shares.py`).
        document = {name: value for name, value in document.items() if name not in {"publisher", "of"}}
        document |= {name: vectors.from_offsets(document[name]) for name in _VECTORS}
        document |= {"times": vectors.from_offsets(document.get("times", {}))}
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
    found: list[Stops] = []
    built: dict[str, list[Stops]] = {}
    for _, generation, kind, entry in _stop_entries(entries, output):
        stop = _read_stops(entry)
        if kind == "closed":
            built.setdefault(generation, []).append(stop)
            continue
        found += [*(built.pop(generation, []) if kind == "cutover" else []), stop]
    return Stops.joined(found).advancing()


def folded(entries: Mapping[str, Entry], commit: Commit) -> dict[str, bytes | None]:
    """What becomes of the stops before this batch, so that there are never many: entries to write, None to delete.

    The order of entries is the order of batches, so only those are put together that follow one another: the last ones
    of this generation and kind, up to where somebody else has published.
    """
    if commit.kind == "cutover":
        return {}
    run: list[tuple[str, Entry]] = []
    for key, generation, kind, entry in reversed(list(_stop_entries(entries, commit.output))):
        if (generation, kind) == (commit.generation, commit.kind):
            run.append((key, entry))
        elif generation == commit.generation or "closed" not in (kind, commit.kind):
            break
    run.reverse()
    for level, larger in pairwise(_LEVELS):
        alike = [each for each in run if each[0].startswith(f"{level}/")]
        if len(alike) < FOLD or sum(len(entry.value) for _, entry in alike) > _LARGEST:
            continue
        # With the smaller ones that follow: what is written now comes after them.
        behind = run[run.index(alike[0]) :]
        together = Stops.joined([_read_stops(entry) for _, entry in behind])
        _, _, rest = behind[-1][0].partition("/")
        return {**{key: None for key, _ in behind}, f"{larger}/{rest}": together.to_bytes()}
    return {}


def _stop_entries(entries: Mapping[str, Entry], output: str) -> Iterator[tuple[str, str, str, Entry]]:
    """Key, generation and kind of each entry of the order log, in the order of batches."""
    for key, entry in entries.items():
        level, _, rest = key.partition("/")
        if level in _LEVELS and rest.startswith(f"{output}/"):
            generation, kind, _ = rest.removeprefix(f"{output}/").rsplit("/", 2)
            yield key, generation, kind, entry


def _read_stops(entry: Entry) -> Stops:
    if not entry.value.startswith(b"{"):
        return Stops.from_bytes(entry.value)
    document = json.loads(entry.value)
    return Stops.of([vectors.from_offsets(document["end"])], [int(document["ms"])])


def corrected(last: Marker, batch: Commit, now_ms: int) -> Marker:
    """The marker of a batch that came again with different content."""
    return replace(last, commit=replace(last.commit, digest=batch.digest, token=batch.token, committed_ms=now_ms))


def pending_generation(entry: Entry) -> str:
    """The generation whose cutover is under way."""
    return str(json.loads(entry.value)["generation"])
