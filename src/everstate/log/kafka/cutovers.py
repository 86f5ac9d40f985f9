"""Cutovers: the difference between two generations, in transactions that are short enough.

One transaction has a time limit, and a difference may have any size. So it is published in chunks: values first,
tombstones last, and with the last chunk the marker, the documents and the tables that are kept. A process that ends
between chunks leaves a topic that is partly new; the next comparison finds what is left, and publishes only that.
"""

from __future__ import annotations

import json
import logging
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.log.crash import crash_point
from everstate.log.descriptions import CommitResult, Staged
from everstate.log.kafka import staging
from everstate.log.kafka.clients import TRANSACTION_MS, told
from everstate.log.kafka.failures import held_back
from everstate.log.kafka.markers import Marker
from everstate.log.kafka.private import entry_key
from everstate.log.timing import wall_clock
from everstate.schema.topic_names import is_internal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from everstate.log.descriptions import Cutover, Vector
    from everstate.log.kafka.commits import Commits
    from everstate.log.kafka.journal import Entry
    from everstate.log.kafka.private import Table
    from everstate.log.kafka.writer import Fill, Transaction

logger = logging.getLogger(__name__)

#: The most records of one transaction: a few seconds' work, of the minute that it may take.
CHUNK: Final = 1_000_000
#: The brokers end a transaction that takes too long, if somewhat late.
_DECIDED_S: Final = 1.5 * TRANSACTION_MS / 1000
_LOOK_S: Final = 0.02


def pending_key(output: str) -> str:
    """The entry that is there between the first chunk and the last."""
    return f"cutover/{output}"


@dataclass(frozen=True)
class Piece:
    """Records of one partition that go into one transaction."""

    topic: str
    partition: int
    content: pl.DataFrame


def cutover(commits: Commits, request: Cutover, staged: Sequence[Staged]) -> CommitResult | None:
    """Publish the difference; None if a topic has grown since it was made."""
    crash_point("log.cutover.before_transaction")
    commit = request.commit
    commits.registry.commits(commit.service).create()
    writer = commits.registry.output_writer(commit.service, commit.output)
    total = max(1, -(-sum(part.rows for part in staged) // CHUNK))
    course = _Course(commits, request, staged, total)
    result: CommitResult | None = None
    for chunk in range(total):
        result = writer.run(request.leases, lambda fresh, chunk=chunk: course.attempt(chunk, fresh=fresh))  # type: ignore[misc]
        if result is None:
            break
    crash_point("log.cutover.after_transaction")
    commits.give_up(staged)
    if result is not None:
        course.look_again()
        for name in request.drops:
            commits.private.remove(name)
    return result


class _Course:
    """One cutover on its way."""

    def __init__(self, commits: Commits, request: Cutover, staged: Sequence[Staged], total: int) -> None:
        self._commits = commits
        self._request = request
        self._staged = [part for part in staged if part.rows]
        self._total = total
        self._kept: list[Table] | None = None
        self._before = dict(request.expected)

    def attempt(self, chunk: int, *, fresh: bool) -> tuple[CommitResult | None, Fill | None]:
        """One of the transactions."""
        commit = self._request.commit
        entries = self._commits.registry.commits(commit.service).read(settled=fresh)
        if fresh and self._is_done(entries):
            return CommitResult("committed", None), None
        staging.check(self._staged)
        self._commits.before(self._staged)
        if chunk == 0:
            self._commits.finish(commit.output, entries, self._request.leases[0])
            if not self._as_expected():
                return None, None
        if chunk + 1 < self._total:
            return CommitResult("committed", None), lambda transaction: self._part(transaction, chunk)
        tables = self._tables(entries)
        return CommitResult("committed", None), lambda transaction: self._last(transaction, chunk, tables, entries)

    def _is_done(self, entries: Mapping[str, Entry]) -> bool:
        """Whether the last transaction has been committed, although that was not heard."""
        known = entries.get(Marker(self._request.commit, {}).key)
        if known is None:
            return False
        commit = replace(Marker.from_bytes(known.value).commit, committed_ms=None)
        return commit == self._request.commit and self._kept is not None

    def _as_expected(self) -> bool:
        """Whether no record has come since the difference was made; what was undone takes an offset, too."""
        expected = self._request.expected
        names = sorted(expected)
        with told("Waiting up to %.0f s for an open transaction that has written to %s", _DECIDED_S, ", ".join(names)):
            ends = self._decided(names)
        return all(self._quiet(name, expected[name], ends[name]) for name in names)

    def _decided(self, names: Sequence[str]) -> Vector:
        """Where topics end once every transaction that has written to them by now is over."""
        topics, deadline = self._commits.reader.topics, time.monotonic() + _DECIDED_S
        written = topics.ends(names, committed=False)
        while True:
            ends = topics.ends(names)
            hidden = [name for name in names if any(ends[name].get(at, end) < end for at, end in written[name].items())]
            if not hidden:
                return ends
            if time.monotonic() > deadline:
                raise held_back(hidden[0])
            time.sleep(_LOOK_S)

    def look_again(self) -> None:
        """Say so if somebody else has written meanwhile: the last look before a transaction is not part of it."""
        topics, starts = self._commits.reader.topics, self._request.expected
        ends = topics.ends(sorted(starts)) if starts else {}
        for topic in sorted(starts):
            for frame in self._commits.reader.scan(topic, starts[topic], ends[topic]):
                others = frame.filter(~_made_by(self._request.commit.generation))
                for number, offset in others.select("partition", "offset").head(1).iter_rows():
                    logger.warning(
                        "Another program wrote to %s (partition %d, offset %d) while a new version took it over, so "
                        "the topic may not hold its table. Stop that program, then: "
                        "everstate run SERVICE.py --recalculate %s",
                        topic,
                        number,
                        offset,
                        self._request.commit.output,
                    )

    def _quiet(self, topic: str, starts: Mapping[int, int], ends: Mapping[int, int]) -> bool:
        if starts.keys() != ends.keys():
            return False
        return not any(frame.height for frame in self._commits.reader.scan(topic, starts, ends))

    def _part(self, transaction: Transaction, chunk: int) -> None:
        commit = self._request.commit
        self._publish(transaction, chunk)
        pending = {"generation": commit.generation, "chunk": chunk + 1, "of": self._total}
        topic = self._commits.registry.commits(commit.service).topic
        transaction.put(topic, pending_key(commit.output), json.dumps(pending).encode())

    def _last(self, transaction: Transaction, chunk: int, tables: list[Table], entries: Mapping[str, Entry]) -> None:
        request, commits = self._request, self._commits
        commit, now_ms = request.commit, wall_clock()
        self._publish(transaction, chunk)
        topic = commits.registry.commits(commit.service).topic
        for name in request.drops:
            dropped = commits.private.find(name, entries)
            if dropped is not None:
                transaction.put(topic, entry_key(name), dropped.entry(dropped=True))
        for name, value in request.documents.items():
            commits.registry.put_document(transaction, commit.service, name, value)
        if pending_key(commit.output) in entries or self._total > 1:
            transaction.put(topic, pending_key(commit.output), None)
        commits.drop_shares(transaction, commit, entries)
        commits.conclude(
            transaction, Marker(replace(commit, committed_ms=now_ms), self._before), tables, now_ms, entries
        )
        crash_point("log.cutover.inside_transaction")

    def _publish(self, transaction: Transaction, chunk: int) -> None:
        for number, pieces in enumerate(_chunks(self._staged)):
            if number == chunk:
                for piece in pieces:
                    transaction.rows(piece.topic, piece.partition, piece.content, self._request.commit.generation)

    def _tables(self, entries: Mapping[str, Entry]) -> list[Table]:
        """What is kept of the generation that is replaced, and what the new one has staged for itself."""
        commit, private = self._request.commit, self._commits.private
        if self._kept is None:
            self._kept = []
            for name, copy in self._request.copies.items():
                partitions = len(self._commits.reader.topics.partitions([copy.original])[copy.original])
                private.own(name, commit.service)
                self._kept.append(private.kept(name, copy.table, partitions))
        del entries
        return self._kept


def _made_by(generation: str) -> pl.Expr:
    """Which records a generation has written: true or false, never null."""
    mark = pl.struct(pl.lit("es-generation").alias("name"), pl.lit(generation.encode()).alias("value"))
    return pl.col("headers").list.contains(mark).fill_null(value=False)


def _chunks(staged: Sequence[Staged]) -> Iterator[list[Piece]]:
    """All records in chunks: values first, tombstones last, so that what is new is there before what is old goes."""
    pieces: list[Piece] = []
    room = CHUNK
    for tombstones in (False, True):
        for part in staged:
            if is_internal(part.topic):
                continue
            content = staging.content(part)
            chosen = content.filter(pl.col("value").is_null() == tombstones)
            while chosen.height:
                pieces.append(Piece(part.topic, part.partition, chosen.head(room)))
                chosen, room = chosen.slice(room), room - min(room, chosen.height)
                if room == 0:
                    yield pieces
                    pieces, room = [], CHUNK
    yield pieces
