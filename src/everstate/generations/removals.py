"""The tombstone service as a service like any other: one output a topic, described here instead of by a user."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.dsl.service import Service
from everstate.errors import ConfigurationError, LogError, TopicNotFoundError
from everstate.formats.descriptions import KEYS
from everstate.kernels.operations.removal import waiting
from everstate.kernels.pages.page_store import MemoryPages
from everstate.kernels.parcel import OUT, RECORDS
from everstate.kernels.pipeline import ShardStages, ingested, run_stages, told
from everstate.log.records import empty
from everstate.schema import durations
from everstate.schema.keys import KeySpec
from everstate.schema.schema import Schema
from everstate.schema.topic_names import LONGEST, REMOVALS, check_topic_name, is_internal, removals_topic
from everstate.topology.nodes import Kind, Output, Source
from everstate.topology.nodes.removal import Removal
from everstate.topology.unit import built

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from everstate.kernels.pipeline import Piece
    from everstate.log.protocol import Log
    from everstate.topology.unit import Unit

_PLACE: Final = pl.Struct({"partition": pl.Int32(), "offset": pl.Int64()})
_DUE: Final[dict[str, pl.DataType]] = {
    "key": pl.Binary(),
    "partition": pl.Int32(),
    "offset": pl.Int64(),
    "ts": pl.Int64(),
}
_KEY: Final = KeySpec.of({"key": pl.Binary()})
_NO_VALUES: Final = Schema(())
#: A service's name is no longer than this.
_LONGEST: Final = 100
#: Records that are read at once to see what is due.
_AT_ONCE: Final = 1_000_000


def service_name(topic: str) -> str:
    """What the tombstone service of a topic is called; its state and its lease go by it.

    Example:
        >>> service_name("customers")
        'tombstone.customers'
    """
    whole = f"tombstone.{topic}"
    if len(whole) <= _LONGEST:
        return whole
    return f"{whole[: _LONGEST - 17]}-{hashlib.sha256(topic.encode()).hexdigest()[:16]}"


def removal_service(
    topic: str, after: str, *, clock: str = "event", log: str | None = None, state_dir: Path | None = None
) -> Service:
    """The service that removes the quiet keys of a topic.

    Args:
        topic: The topic.
        after: How long a key is quiet before it is removed.
        clock: Which clock says so.
        log: Where topics live.
        state_dir: Where state and checkpoints live.
    """
    service = Service(service_name(topic), log=log, state_dir=state_dir, on_error="skip")
    keys = Schema.of({"key": bytes})
    source = Source(inputs=(), kind=Kind.TABLE, key=_KEY, schema=keys, topic=topic, format=KEYS, declared=_NO_VALUES)
    removals = Schema.of({"key": bytes, "partition": pl.Int32(), "offset": int})
    removal = Removal(
        inputs=(source,), kind=Kind.STREAM, key=_KEY, schema=removals, topic=topic, after=after, clock=clock
    )
    output = Output(
        inputs=(removal,),
        kind=Kind.STREAM,
        key=_KEY,
        schema=removals,
        topic=removals_topic(topic),
        format="json",
        partitions=None,
    )
    service.add(output)
    return service


def require_removable(log: Log, topic: str) -> None:
    """Refuse a topic from which no key can be removed.

    Raises:
        LogError: With the command that helps.
    """
    check_topic_name(topic)
    if not log.has_topic(topic):
        raise TopicNotFoundError(topic, hint="See which topics there are: everstate topic list")
    if is_internal(topic) or topic.endswith(REMOVALS):
        raise LogError(
            f"topic {topic!r} belongs to Everstate itself, so nothing is removed from it",
            hint="Name the topic of a table: everstate topic list",
        )
    room = LONGEST - len(REMOVALS)
    if len(topic) > room:
        raise LogError(
            f"the name of topic {topic!r} is too long: what is removed goes to a topic of that name and {REMOVALS!r}",
            hint=f"Copy the table to a topic whose name has at most {room} characters.",
        )
    config = log.describe(topic).config
    if config.compact:
        return
    what = f"topic {topic!r} is not compacted: it holds a stream, in which a tombstone would remove nothing"
    if config.replication is not None:
        raise LogError(
            what,
            hint="If it is a table, say so: kafka-configs.sh --bootstrap-server HOST:PORT --alter --topic "
            f"{topic} --add-config cleanup.policy=compact",
        )
    raise LogError(
        what,
        hint="If it is a table, copy its records to a topic that is compacted: everstate topic create NAME --compact",
    )


def require_after(after: str) -> str:
    """How long a key has to be quiet, if that can be.

    Raises:
        ConfigurationError: If it is no duration, or none at all.
    """
    if durations.milliseconds(after) < 1:
        raise ConfigurationError(
            "--after 0 would remove every key as soon as it arrives",
            hint="Write how long a key may be quiet: --after 7d",
        )
    return after


def due(log: Log, service: Service, now_ms: int) -> tuple[pl.DataFrame, int]:
    """What would be removed if the service had read all that is there, and how many keys would stay.

    Args:
        log: Where the topic is; nothing is written to it.
        service: The service.
        now_ms: The wall clock.

    Returns:
        `key`, `partition`, `offset` and `ts` of the youngest record of each key that would go, the oldest first.
    """
    (unit,) = service.units()
    pages = MemoryPages()
    stages = ShardStages(built(unit), pages, policy=service.on_error)
    quiet = [(topic, number, empty()) for topic, number in _partitions(log, unit)]
    for piece in _pieces(log, unit):
        pieces = [piece, *(other for other in quiet if other[:2] != piece[:2])]
        run_stages([stages], range(1, unit.depth + 1), ingested(unit, pieces, service.on_error))
    last = ShardStages(unit, pages, stages.books, policy=service.on_error)
    # A micro-batch without records: what is due now comes out.
    clock = now_ms if unit.clocked else None
    sent = run_stages(
        [last], range(1, unit.depth + 1), [*ingested(unit, quiet, service.on_error), *told(unit, clock, None, ())]
    )
    found = [parcel.frame for parcel in sent if parcel.stage == OUT and parcel.port == RECORDS and parcel.frame.height]
    if not found:
        return pl.DataFrame(schema=_DUE), waiting(last.shard(1), unit)
    rows = pl.concat(found).select("key", pl.col("value").cast(pl.String).str.json_decode(_PLACE).alias("place"), "ts")
    return rows.unnest("place").select(*_DUE).sort("ts", "key"), waiting(last.shard(1), unit)


def _partitions(log: Log, unit: Unit) -> list[tuple[str, int]]:
    """The partitions that have records; the service passes over the others after a minute."""
    begins = log.begin_offsets(unit.topics)
    ends = log.end_offsets(unit.topics)
    return [(topic, n) for topic, places in ends.items() for n in sorted(places) if begins[topic][n] < places[n]]


def _pieces(log: Log, unit: Unit) -> Iterator[Piece]:
    begins, ends = log.begin_offsets(unit.topics), log.end_offsets(unit.topics)
    for topic, number in _partitions(log, unit):
        for split in log.splits(topic, number, begins[topic][number], ends[topic][number], max_records=_AT_ONCE):
            yield topic, number, log.read_split(split)
