"""A batch that several publishers send: each the partitions that are its own, in a transaction of its own.

Above some 300,000 records a second one producer is the limit. Partition p then belongs to publisher p mod k, and a
batch is decided before it is sent: the transaction of its marker notes what is to be sent by whom (`shares/<output>`),
and each publisher's own transaction ends with an entry that says that its share is there (`share/<output>/<number>`).
What is noted and not yet said is sent by whoever comes next and holds the lease, and nothing is decided before that.

A share is sent with its own id in the same way in which all else is written: init, read, write in that epoch. So it may
be tried by any number of tasks at once, on any machine: the last init wins, and the others find that all has been done.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from everstate.errors import LogUnavailableError
from everstate.log.crash import crash_point
from everstate.log.descriptions import Staged
from everstate.log.kafka import staging

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from everstate.log.descriptions import Commit, Lease
    from everstate.log.kafka.journal import Entry
    from everstate.log.kafka.markers import Marker
    from everstate.log.kafka.registry import Registry
    from everstate.log.kafka.writer import Fill, Transaction

    Places: TypeAlias = "dict[tuple[str, int], int]"
    Run: TypeAlias = "Callable[[Sequence[Share]], Sequence[Places]]"

#: Brokers take records of a megabyte.
_LARGEST: Final = 500_000
#: What one producer sends in the time that it takes to start several.
WORTH: Final = 50_000


@dataclass(frozen=True)
class Share:
    """What one publisher sends of a batch, as it travels to where it is sent.

    Attributes:
        commit: The batch.
        lease: Under which.
        number: Which publisher it is.
        of: How many there are.
        parts: What it sends.
    """

    commit: Commit
    lease: Lease
    number: int
    of: int
    parts: tuple[Staged, ...]

    @property
    def entry(self) -> tuple[str, bytes]:
        """Key and value of the entry that says that it was sent."""
        return _said(self.commit, self.number, self.of)


@dataclass(frozen=True)
class Begun:
    """A batch that was decided, and that some of its publishers have not sent yet.

    Attributes:
        of: How many publishers it has.
        parts: What all of them send, where it was when it was decided.
        left: The publishers that have not.
    """

    of: int
    parts: tuple[Staged, ...]
    left: tuple[int, ...]

    @classmethod
    def at_first(cls, parts: Sequence[Staged], of: int) -> Begun:
        """A batch of which nothing was sent."""
        return cls(of, tuple(parts), tuple(sorted({part.partition % of for part in parts})))

    def missing(self, partition: int) -> bool:
        """Whether a partition's records were not sent."""
        return partition % self.of in self.left

    def shares(self, commit: Commit, lease: Lease, parts: Sequence[Staged]) -> list[Share]:
        """What is left to be sent of a batch that has these parts."""
        return [
            Share(commit, lease, number, self.of, tuple(part for part in parts if part.partition % self.of == number))
            for number in self.left
        ]


def identity(commit: Commit) -> list[Any]:
    """What a batch is known by."""
    return [commit.generation, commit.query_id, commit.batch_id, commit.digest]


def shares_key(output: str) -> str:
    """The entry that says what is to be sent by whom."""
    return f"shares/{output}"


def noted(commit: Commit, parts: Sequence[Staged], of: int) -> bytes | None:
    """That entry for a batch; None if one publisher will do, or has to."""
    if of == 1 or sum(part.rows for part in parts) < WORTH or len({part.partition % of for part in parts}) == 1:
        return None
    files: dict[str, dict[str, Any]] = {}
    for part in parts:
        place = staging.Place.of(part)
        known = files.setdefault(
            place.file, {"topic": part.topic, "id": place.topic_id, "size": place.size, "parts": []}
        )
        known["parts"].append([part.partition, place.first, part.rows])
    data = json.dumps({"batch": identity(commit), "of": of, "files": files}).encode()
    return data if len(data) <= _LARGEST else None


def begun(entries: Mapping[str, Entry], last: Marker | None) -> Begun | None:
    """What is left to be sent of the last batch; None if nothing is."""
    if last is None or (entry := entries.get(shares_key(last.commit.output))) is None:
        return None
    document = json.loads(entry.value)
    if document["batch"] != identity(last.commit):
        return None
    parts = tuple(_parts(document["files"]))
    found = Begun.at_first(parts, int(document["of"]))
    left = tuple(number for number in found.left if not _holds(entries, *_said(last.commit, number, found.of)))
    return Begun(found.of, parts, left) if left else None


def _parts(files: Mapping[str, Any]) -> list[Staged]:
    found = []
    for file, about in files.items():
        for partition, first, rows in about["parts"]:
            place = staging.Place(file, about["size"], first, about["id"])
            found.append(Staged(about["topic"], partition, rows, "", place.location()))
    return found


def _said(commit: Commit, number: int, of: int) -> tuple[str, bytes]:
    """The entry of a publisher that has sent its share."""
    document = {"batch": identity(commit), "publisher": number, "of": of}
    return f"share/{commit.output}/{number}", json.dumps(document).encode()


def _holds(entries: Mapping[str, Entry], key: str, value: bytes) -> bool:
    entry = entries.get(key)
    return entry is not None and entry.value == value


def _wanted(entries: Mapping[str, Entry], share: Share) -> bool:
    """Whether this is what is to be sent: what was corrected or taken over meanwhile is not."""
    entry = entries.get(shares_key(share.commit.output))
    if entry is None or _holds(entries, *share.entry):
        return False
    document = json.loads(entry.value)
    return bool(document["batch"] == identity(share.commit) and document["of"] == share.of)


class Shares:
    """Has shares sent.

    Args:
        registry: Leases and journals.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self.of = 1
        self._run: Run | None = None

    def spread(self, publishers: int, run: Run) -> None:
        """From now on, have batches sent by so many publishers.

        Args:
            publishers: How many.
            run: Calls `send` for each share, wherever that is, and gives what it gave.
        """
        self.of, self._run = publishers, run

    def announce(self, commit: Commit, lease: Lease, of: int) -> None:
        """Have all ids known before one is used: a takeover fences those that it knows."""
        self._registry.announce([self._registry.share_id(commit, number) for number in range(of)], [lease])

    def publish(self, batch: Commit, left: Begun, parts: Sequence[Staged], lease: Lease, *, here: bool = False) -> None:
        """Send what is left of a batch.

        Args:
            batch: The batch.
            left: What is left.
            parts: All that the batch has.
            lease: Under which.
            here: In this process.

        Raises:
            FencedError: If the lease belongs to another process.
            LogUnavailableError: If something is left all the same.
        """
        crash_point("kafka.shares.before")
        self.announce(batch, lease, left.of)
        shares = left.shares(batch, lease, parts)
        run = self._run if self._run is not None and not here else self._here
        for places in run(shares):
            self._registry.wrote(places)
        crash_point("kafka.shares.after")
        entries = self._registry.commits(batch.service).read(settled=True)
        if not all(_holds(entries, *share.entry) for share in shares):
            self._registry.require([lease])
            raise LogUnavailableError(
                f"batch {batch.batch_id} of output {batch.output!r} was not sent by all of its publishers",
                hint="Nothing is lost: what is left is sent when the batch comes again.",
            )

    def _here(self, shares: Sequence[Share]) -> list[Places]:
        return [self.send(share) for share in shares]

    def send(self, share: Share) -> Places:
        """Send a share, unless it was sent before; gives where its last records are.

        Raises:
            FencedError: If the lease belongs to another process.
        """
        journal = self._registry.commits(share.commit.service)
        sent: list[Transaction] = []

        def attempt(_fresh: bool) -> tuple[None, Fill | None]:  # noqa: FBT001 - the writer's word
            # To the end in any case: what this process has sent itself may not be shown yet.
            if not _wanted(journal.read(settled=True), share):
                return None, None
            staging.check(share.parts)
            return None, fill

        def fill(transaction: Transaction) -> None:
            for part in share.parts:
                transaction.rows(part.topic, part.partition, staging.content(part), share.commit.generation)
            crash_point("kafka.share.inside_transaction")
            transaction.put(journal.topic, *share.entry)
            sent[:] = [transaction]

        self._registry.share_writer(share.commit, share.number).run([share.lease], attempt)
        crash_point("kafka.share.after_transaction")
        return sent[0].places if sent else {}

    def take(self, commit: Commit, left: Begun) -> None:
        """Have nobody send any more what is left of a batch, whoever may be about to."""
        for number in left.left:
            writer = self._registry.share_writer(commit, number)
            writer.open()
            writer.drop()
