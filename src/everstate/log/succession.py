"""How one batch of an output follows another: what is new, what was there before, what is corrected, what does not fit.

A batch is known by all that identifies it, not by its number alone: a lost checkpoint, one restored from a copy, or a
second query would count the same numbers again.

If the last batch comes again with different content, the difference is published on a table's topic, key by key: what
changed, what is new, and for a key that the batch no longer publishes, the value it had before the batch (or a
tombstone if it had none). What a stream has published stands, so there other content is a conflict.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import polars as pl

from everstate.errors import CommitConflictError
from everstate.log.records import CONTENT

if TYPE_CHECKING:
    from everstate.log.descriptions import Commit


def judge(last: Commit | None, batch: Commit) -> Literal["new", "same", "differs"]:
    """Whether a batch follows on the last one, is the last one, or is the last one with different content.

    Raises:
        CommitConflictError: If it is none of these.
    """
    if last is None:
        return "new"
    if batch.generation != last.generation:
        raise conflict(batch, f"the log was written by generation {last.generation}, but this is {batch.generation}")
    if last.batch_id < 0:
        return "new"  # its generation took over before it had a batch
    if batch.query_id != last.query_id:
        raise conflict(batch, f"the log was written by query {last.query_id}, but this is query {batch.query_id}")
    if batch.batch_id == last.batch_id:
        if (batch.start, batch.end) != (last.start, last.end):
            raise conflict(
                batch, f"the log has this batch from {last.start} to {last.end}, not {batch.start} to {batch.end}"
            )
        if batch.seen and batch.digest != last.digest:
            raise conflict(batch, "it does not remove the same keys as before")  # what was removed is gone
        # What a batch wrote to topics of its own has reached the output topic, or will, by way of a cutover.
        return "same" if batch.digest == last.digest or batch.kind != last.kind else "differs"
    if batch.batch_id != last.batch_id + 1:
        raise conflict(batch, f"the last batch in the log is {last.batch_id}, so the next is {last.batch_id + 1}")
    if batch.start != last.end:
        raise conflict(batch, f"it begins at {batch.start}, but the batch before ended at {last.end}")
    return "new"


def conflict(batch: Commit, reason: str) -> CommitConflictError:
    """The error for a batch that does not fit, with its cure."""
    return CommitConflictError(
        f"batch {batch.batch_id} of output {batch.output!r} of service {batch.service!r} does not fit: {reason}",
        hint="Nothing of it was published. Its checkpoint was lost, replaced or restored from a copy. "
        "Rebuild its state: everstate clear SERVICE.py, then run it again.",
    )


def changes(now: pl.DataFrame, then: pl.DataFrame, before: pl.DataFrame) -> pl.DataFrame:
    """Records that turn what a batch has published to a table into what it says now.

    Args:
        now: The last record of each key of the batch as it is now.
        then: The same as it was published.
        before: The last records, before the batch, of the keys that were published.
    """
    was = then.select("key", pl.col("value").alias("was"))
    changed = now.join(was, on="key", how="inner", maintain_order="left").filter(
        pl.col("value").ne_missing(pl.col("was"))
    )
    added = now.join(was, on="key", how="anti", maintain_order="left")
    restored = (
        then.join(now, on="key", how="anti", maintain_order="left")
        .select("key", pl.col("value").alias("was"), pl.col("ts").alias("then_ts"))
        .join(before.select(*CONTENT), on="key", how="left", maintain_order="left")
        .filter(pl.col("value").ne_missing(pl.col("was")))
        .with_columns(pl.coalesce("ts", "then_ts").alias("ts"))
    )
    content = list(CONTENT)
    return pl.concat([changed.select(content), added.select(content), restored.select(content)])
