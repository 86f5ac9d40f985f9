"""A micro-batch in one transaction: its records, its dead letters and its marker, which comes last."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from everstate.errors import LogError, TopicNotFoundError
from everstate.log import leasing
from everstate.log.crash import crash_point
from everstate.log.descriptions import CommitResult, Lease, Staged
from everstate.log.kafka import corrections, markers, overtaken, staging
from everstate.log.kafka.markers import Marker
from everstate.log.kafka.private import entry_key, maker_of
from everstate.log.kafka.shares import Begun, begun, noted, shares_key
from everstate.log.succession import judge
from everstate.log.timing import wall_clock
from everstate.schema.topic_names import is_internal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from everstate.log.descriptions import Commit, Vector
    from everstate.log.kafka.corrections import Correction
    from everstate.log.kafka.journal import Entry
    from everstate.log.kafka.private import PrivateTables, Table
    from everstate.log.kafka.reading import Reader
    from everstate.log.kafka.registry import Registry
    from everstate.log.kafka.shares import Shares
    from everstate.log.kafka.writer import Fill, Transaction

Part = TypeVar("Part", bound="Staged | Correction")


@dataclass(frozen=True)
class Commits:
    """Publishes batches."""

    registry: Registry
    reader: Reader
    private: PrivateTables
    shares: Shares

    def commit(self, batch: Commit, staged: Sequence[Staged]) -> CommitResult:
        """Publish a batch unless the log has it; publish the difference if the log has it with different content."""
        crash_point("log.commit.before_transaction")
        self.registry.commits(batch.service).create()
        lease = Lease(batch.lease_name, batch.token, leasing.this_process())
        closed = batch.kind == "closed"
        writer = (
            self.registry.lease_writer(lease.name)
            if closed
            else self.registry.output_writer(batch.service, batch.output)
        )

        def attempt(fresh: bool) -> tuple[tuple[CommitResult, Begun | None], Fill | None]:  # noqa: FBT001 - the writer's word
            entries = self.registry.commits(batch.service).read(settled=fresh)
            last = markers.last_marker(entries, batch.output, batch.generation if closed else None)
            verdict = judge(None if last is None else last.commit, batch)
            if last is not None and verdict == "same":
                left = None if closed else begun(entries, last)
                return (CommitResult("skipped" if left is None else "committed", None), left), None
            staging.check(staged)
            if last is not None and verdict == "differs":
                return (CommitResult("corrected", None), None), self._correction(last, batch, staged, entries)
            if not closed:
                self.finish(batch.output, entries, lease)
            if batch.may_be_overtaken(staged):  # goes by a look at the topic, which tasks elsewhere do not have
                known.append(overtaken.standing(self.reader, batch, staged))
                result = CommitResult("committed", None, known[-1].left_out)
                return (result, None), self._publication(batch, known[-1].parts, entries, None)
            shares = noted(batch, _public(staged), self.shares.of)
            left = None if shares is None else Begun.at_first(_public(staged), self.shares.of)
            return (CommitResult("committed", None), left), self._publication(batch, staged, entries, shares)

        known: list[overtaken.Standing] = []
        result, left = writer.run([lease], attempt)
        crash_point("log.commit.after_transaction")
        if known and result.status == "committed":
            result = replace(result, buried=overtaken.buried(self.reader, known[-1]))
        if left is not None:
            self.shares.publish(batch, left, _public(staged), lease)
            staging.remove(staging.Place.of(part).file for part in left.parts)
        self.give_up(staged)
        return result

    def finish(self, output: str, entries: Mapping[str, Entry], lease: Lease) -> None:
        """Have a batch that was decided sent to its end, from the files that are left of it, in this process.

        Raises:
            LogError: If it cannot be, and a stream would lack what it would have had.
        """
        last = markers.last_marker(entries, output, None)
        left = begun(entries, last)
        if last is None or left is None:
            return
        try:
            staging.check(left.parts)
        except LogError as error:
            self.shares.take(last.commit, left)
            lacking = sorted({part.topic for part in left.parts if left.missing(part.partition)})
            streams = [topic for topic in lacking if not self.reader.topics.config(topic).compact]
            if streams:
                raise LogError(
                    f"batch {last.commit.batch_id} of output {output!r} was not sent to all partitions of "
                    f"{', '.join(streams)} before its process ended, and its files are gone: {error.message}",
                    hint="Run the version that made it: it makes the batch again, and sends what is left of it.",
                ) from error
            return
        self.before(left.parts)
        self.shares.publish(last.commit, left, left.parts, lease, here=True)
        staging.remove(staging.Place.of(part).file for part in left.parts)

    def unsent(self, service: str) -> set[str]:
        """The files of a service that are still to be sent."""
        entries = self.registry.commits(service).read()
        outputs = [key.removeprefix("shares/") for key in entries if key.startswith("shares/")]
        found = [begun(entries, markers.last_marker(entries, output, None)) for output in outputs]
        return {staging.Place.of(part).file for left in found if left is not None for part in left.parts}

    def _publication(
        self, batch: Commit, staged: Sequence[Part], entries: Mapping[str, Entry], shares: bytes | None
    ) -> Fill:
        now_ms = wall_clock()
        public = _public(staged)
        marker = Marker(replace(batch, committed_ms=now_ms), self.before(public))
        tables = self._extended(batch, [part for part in staged if isinstance(part, Staged)], entries)

        def fill(transaction: Transaction) -> None:
            for part in public if shares is None else ():
                content = staging.content(part) if isinstance(part, Staged) else part.content
                transaction.rows(part.topic, part.partition, content, batch.generation)
            if shares is not None:
                transaction.put(self.registry.commits(batch.service).topic, shares_key(batch.output), shares)
            self.conclude(transaction, marker, tables, now_ms, entries)
            crash_point("log.commit.inside_transaction")

        return fill

    def _correction(self, last: Marker, batch: Commit, staged: Sequence[Staged], entries: Mapping[str, Entry]) -> Fill:
        public = [part for part in staged if not is_internal(part.topic)]
        left = begun(entries, last) if batch.kind != "closed" else None
        if left is not None:
            # Nobody sends what was decided any more; what was sent until now is known.
            self.shares.take(batch, left)
            entries = self.registry.commits(batch.service).read(settled=True)
            left = begun(entries, last)
        missing = left.missing if left is not None else lambda _: False
        found = corrections.difference(self.reader, last, batch, public, missing)
        changed = self._corrected_tables(batch, staged, entries)
        # A topic to which the batch publishes only now begins where it is now, for a correction of the correction.
        before = {**self.before(found), **last.before}
        marker = replace(markers.corrected(last, batch, wall_clock()), before=before)

        def fill(transaction: Transaction) -> None:
            for part in found:
                transaction.rows(part.topic, part.partition, part.content, batch.generation)
            self.drop_shares(transaction, batch, entries)
            self.conclude(transaction, marker, changed, None, entries)
            crash_point("log.commit.inside_transaction")

        return fill

    def drop_shares(self, transaction: Transaction, batch: Commit, entries: Mapping[str, Entry]) -> None:
        """What was to be sent by whom is over."""
        if shares_key(batch.output) in entries:
            transaction.put(self.registry.commits(batch.service).topic, shares_key(batch.output), None)

    def conclude(
        self,
        transaction: Transaction,
        marker: Marker,
        tables: Sequence[Table],
        stop_ms: int | None,
        entries: Mapping[str, Entry],
    ) -> None:
        """The end of a transaction: which files count now, where the batch ended, and the marker."""
        topic = self.registry.commits(marker.commit.service).topic
        for table in tables:
            transaction.put(topic, entry_key(table.name), table.entry())
        stop = None if stop_ms is None else markers.stop_entry(marker.commit, stop_ms)
        if stop is not None:
            for key, value in markers.folded(entries, marker.commit).items():
                transaction.put(topic, key, value)
            transaction.put(topic, *stop)
        transaction.put(topic, marker.key, marker.to_bytes())

    def before(self, parts: Sequence[Staged | Correction]) -> Vector:
        """Where topics end, in all that is written to them; they are still those that was staged for.

        Raises:
            TopicNotFoundError: If one is gone, also if there is another of its name.
        """
        names = sorted({part.topic for part in parts})
        ids = self.reader.topics.ids(names)
        for part in parts:
            if isinstance(part, Staged) and staging.Place.of(part).topic_id != ids[part.topic]:
                raise TopicNotFoundError(part.topic)
        return self.reader.topics.ends(names, committed=False) if names else {}

    def _extended(self, batch: Commit, staged: Sequence[Staged], entries: Mapping[str, Entry]) -> list[Table]:
        """Private tables with what a batch has staged for them."""
        tables = []
        for name in sorted({part.topic for part in staged if part.rows and is_internal(part.topic)}):
            mine = [part for part in staged if part.topic == name and part.rows]
            table = self.private.find(name, entries)
            if table is None or any(staging.Place.of(part).topic_id != table.id for part in mine):
                raise TopicNotFoundError(name)
            self.private.own(name, batch.service)
            tables.append(self.private.extended(table, mine, maker_of(batch), batch.batch_id))
        return tables

    def _corrected_tables(self, batch: Commit, staged: Sequence[Staged], entries: Mapping[str, Entry]) -> list[Table]:
        names = {part.topic for part in staged if is_internal(part.topic)}
        names |= {key.removeprefix("private/") for key in entries if key.startswith("private/")}
        tables = []
        for name in sorted(names) if batch.kind == "closed" else ():
            table = self.private.find(name, entries)
            mine = [part for part in staged if part.topic == name and part.rows]
            known = (maker_of(batch), batch.batch_id)
            if table is None or not (mine or any((file.maker, file.batch) == known for file in table.files)):
                continue
            found = corrections.private_difference(table, batch, mine)
            if found:
                parts = self.private.stage(name, [(part.partition, part.content) for part in found])
                tables.append(self.private.extended(table, parts, maker_of(batch), batch.batch_id))
        return tables

    def give_up(self, staged: Sequence[Staged]) -> None:
        """Delete staged files, but for those of private tables that a commit has named."""
        files = {staging.Place.of(part).file: part.topic for part in staged if part.rows}
        tables = {name: self.private.find(name) for name in set(files.values()) if is_internal(name)}
        staging.remove(
            file
            for file, topic in files.items()
            if (table := tables.get(topic)) is None or not self.private.named(table, file)
        )

    def forget(self, service: str) -> None:
        """Drop a service's commits; its topics, private tables among them, stay."""
        journal = self.registry.commits(service)
        for key in journal.read():
            if not key.startswith("private/"):
                self.registry.say(journal.topic, key, None)


def _rows(part: Staged | Correction) -> int:
    return part.rows if isinstance(part, Staged) else part.content.height


def _public(staged: Sequence[Part]) -> list[Part]:
    """What goes to topics of Kafka's."""
    return [part for part in staged if _rows(part) and not is_internal(part.topic)]
