"""Batches that say something of records of a topic to which others write meanwhile; see `Commit.seen`.

Kafka has no commit that depends on where a topic ends. So the tails are read before the transaction, and what has come
between this look and the transaction is looked for after it: a value that lies just below the tombstone of its key was
buried by it, and is reported.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.log.kafka import staging
from everstate.log.kafka.corrections import Correction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everstate.log.descriptions import Commit, Staged, Vector
    from everstate.log.kafka.reading import Reader

logger = logging.getLogger(__name__)

#: So many keys are named in a warning.
_NAMED: Final = 5


@dataclass(frozen=True, eq=False)
class Standing:
    """What of a batch still counts.

    Attributes:
        parts: Its records without those of keys that have got others since.
        left_out: How many were left out on the output's topic.
        looked: How far that is known.
    """

    parts: Sequence[Correction]
    left_out: int
    looked: Vector


def standing(reader: Reader, batch: Commit, staged: Sequence[Staged]) -> Standing:
    """What of a batch still counts at this moment."""
    looked = reader.topics.ends(sorted(batch.seen))
    begins = reader.topics.begins(sorted(batch.seen))
    keys = [pl.Series("key", [], dtype=pl.Binary)]
    for topic, ends in looked.items():
        starts = {number: max(begins[topic][number], batch.seen[topic].get(number, 0)) for number in ends}
        keys += [frame["key"] for frame in reader.scan(topic, starts, ends)]
    touched = pl.concat(keys).unique().implode()
    parts, left_out = [], 0
    for part in staged:
        content = staging.content(part)
        if part.topic in batch.seen or part.topic == batch.output:
            kept = content.filter(~pl.col("key").is_in(touched))
            left_out += content.height - kept.height if part.topic == batch.output else 0
            content = kept
        parts.append(Correction(part.topic, part.partition, content))
    return Standing(parts, left_out, looked)


def buried(reader: Reader, known: Standing) -> int:
    """How many keys have got a value between the look and the transaction, which their tombstone has buried."""
    count = 0
    for topic, starts in known.looked.items():
        ours = pl.concat(
            [
                pl.DataFrame(schema={"key": pl.Binary}),
                *(p.content.select("key") for p in known.parts if p.topic == topic),
            ]
        )
        tails = [
            frame.select("key", "value", "offset", "partition")
            for frame in (reader.scan(topic, starts, reader.topics.ends([topic])[topic]) if ours.height else ())
        ]
        if not tails:
            continue
        tail = pl.concat(tails).join(ours.unique(), on="key", how="semi")
        ends = (
            tail.filter(pl.col("value").is_null()).group_by("key", "partition").agg(pl.col("offset").max().alias("at"))
        )
        values = tail.filter(pl.col("value").is_not_null()).join(ends, on=["key", "partition"], how="inner")
        below = values.filter(pl.col("offset") < pl.col("at"))["key"].unique()
        if len(below):
            count += len(below)
            logger.warning(
                "Topic %s: %d keys got a value at the very moment of their removal, and the removal has buried it: %s",
                topic,
                len(below),
                ", ".join(repr(key) for key in below.head(_NAMED)),
            )
    return count
