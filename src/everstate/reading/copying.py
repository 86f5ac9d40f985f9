"""Topics from one log to another: keys, values, times, headers, and where it can be, partitions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from everstate.errors import LogError
from everstate.log.records import CONTENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from everstate.log.descriptions import TopicInfo
    from everstate.log.protocol import Log

#: Records that become visible together, and are in memory at once.
CHUNK: Final = 50_000


@dataclass(frozen=True)
class Copied:
    """What a copy came to.

    Attributes:
        topic: Which topic.
        records: How many records it has got.
        created: It was not there before.
        moved: Records lie in other partitions than they did, by their keys, since there are more or fewer of them.
    """

    topic: str
    records: int
    created: bool
    moved: bool


def copy_topic(
    source: Log,
    target: Log,
    topic: str,
    *,
    append: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
) -> Copied:
    """Copy all records that a topic has now; of each partition in order.

    A topic that the target lacks is created with the same partitions, retention and compaction.

    Args:
        source: Where the records are.
        target: Where they go.
        topic: The topic, which has the same name in both.
        append: The target's topic may have records; without it, it has to be empty.
        progress: Is told the topic, how many offsets of it are done, and how many there are.

    Raises:
        TopicNotFoundError: If there is no such topic.
        LogError: If the target's topic has records, or changes what it is given.
    """
    found = source.describe(topic)
    created = not target.has_topic(topic)
    if created:
        # How many copies of it there are, and where, is the target's own affair.
        target.create_topic(topic, replace(found.config, replication=None, min_isr=None, append_time=False))
    there = target.describe(topic)
    _require_room(there, append=append)
    same = there.config.partitions == found.config.partitions
    begins, ends = source.begin_offsets([topic])[topic], source.end_offsets([topic])[topic]
    total, done, records = sum(ends[number] - begins[number] for number in ends), 0, 0
    for number in sorted(ends):
        at = begins[number]
        while at < ends[number]:
            frame = source.read(topic, number, at, limit=CHUNK)
            frame = frame.filter(frame["offset"] < ends[number])
            if frame.is_empty():
                break  # what is left are gaps: of transactions, or what compaction has taken
            target.append(topic, frame.select(*CONTENT, *(["partition"] if same else [])))
            done, at = done + int(frame["offset"][-1]) + 1 - at, int(frame["offset"][-1]) + 1
            records += frame.height
            if progress is not None:
                progress(topic, done, total)
    return Copied(topic, records, created, not same)


def _require_room(there: TopicInfo, *, append: bool) -> None:
    if there.config.append_time:
        raise LogError(
            f"topic {there.name!r} of the target replaces the time of each record with its own",
            hint=f"kafka-configs.sh --bootstrap-server HOST:PORT --alter --topic {there.name} "
            "--add-config message.timestamp.type=CreateTime",
        )
    if not append and any(end > there.start[number] for number, end in there.end.items()):
        raise LogError(
            f"topic {there.name!r} of the target is not empty",
            hint="To add to what it has: --append. If an earlier copy was interrupted, delete the topic first: "
            f"everstate topic delete {there.name} --log TARGET",
        )
