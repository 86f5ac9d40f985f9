"""Stream time: the highest timestamp so far of a partition, in offset order.

A task sees one split of a partition. It gives each row the highest timestamp up to that row within the split, and sends
a *mark* (partition, start, end, highest timestamp) to every shard. The shard knows the stream time of every partition
from earlier batches and puts these together, so a row's stream time depends neither on how a partition was cut into
splits nor on where micro-batches ended.

Records that another output has written say themselves which stream time their rows had (`records/times.py`); of these
a mark has the time that no later record of the partition is below.

An output that goes by time also hears of partitions without records: a window is final when *every* partition of the
streams that feed it has passed its close, and the first record of an empty partition may be old.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from everstate.errors import FinalityError, StateError
from everstate.kernels.reasons import TOO_LATE, UNDATED
from everstate.kernels.records.times import running
from everstate.kernels.rows import AFTER_ALL, OFF, PART, STREAM_TIME, TOPIC, TS

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import numpy.typing as npt

    from everstate.kernels.ledger import Ledger
    from everstate.topology.nodes import Node

#: One split that was read: whose, from where to where, and its highest timestamp (null if nothing in it has a time).
MARK: Final[dict[str, pl.DataType]] = {
    TOPIC: pl.UInt16(),
    PART: pl.Int32(),
    "start": pl.Int64(),
    "end": pl.Int64(),
    TS: pl.Int64(),
}


#: What a micro-batch is told besides its records: its clock, and which of the recorded ones it repeats.
TOLD_OF: Final[dict[str, pl.DataType]] = {"clock": pl.Int64(), "first": pl.Int64(), "last": pl.Int64()}


def mark(topic: int, partition: int, start: int, end: int, highest: int | None) -> pl.DataFrame:
    """The mark of one split."""
    return pl.DataFrame([[topic], [partition], [start], [end], [highest]], schema=MARK)


def of_records(records: pl.DataFrame, said: pl.DataFrame | None) -> tuple[pl.Series, pl.DataFrame]:
    """The stream time at each record of a split, taken before any filter; and by offset, what moves time.

    Args:
        records: `offset` and `ts`, in offset order.
        said: What they say themselves; see `heard`.
    """
    times = records.select(pl.col("offset").alias(OFF), pl.col("ts").alias(TS))
    if said is None:
        return records["ts"].cum_max().alias(STREAM_TIME), times
    found = running(times, said)
    return found[STREAM_TIME], found.select(OFF, pl.col("least").alias(TS))


def of_rows(frames: list[pl.DataFrame], said: pl.DataFrame | None) -> tuple[list[pl.DataFrame], pl.DataFrame]:
    """The rows of a split with the stream time at each of them; and by offset, what moves time.

    Args:
        frames: The rows that each source of the topic has made of the split. All of them move its time: a row must
            not have another stream time where the partition is cut between two rows of another source.
        said: What their records say themselves; see `heard`.
    """
    if len(frames) == 1 and said is None:
        return [frames[0].with_columns(pl.col(TS).cum_max().alias(STREAM_TIME))], frames[0].select(OFF, TS)
    times = pl.concat([rows.select(OFF, TS) for rows in frames]).group_by(OFF).agg(pl.col(TS).max()).sort(OFF)
    found = running(times, said)
    timed = [
        rows.drop(STREAM_TIME).join(found.drop("least"), on=OFF, how="left", maintain_order="left").select(rows.columns)
        for rows in frames
    ]
    return timed, found.select(OFF, pl.col("least").alias(TS))


def advance(known: dict[str, int | None], marks: pl.DataFrame) -> pl.DataFrame:
    """Take a batch's marks into the known stream times.

    Args:
        known: Highest timestamp by "topic/partition", None if there was none; it is brought up to date.
        marks: The batch's marks, those of one split at most once.

    Returns:
        For every split, the stream time of its partition before it (null if there is none).
    """
    rows = []
    for topic, partition, start, end, highest in sorted(set(marks.iter_rows()), key=_in_order):
        name = f"{topic}/{partition}"
        before = known.get(name)
        if end > start:  # else it only says that the partition is there, or that its time was moved
            rows.append((topic, partition, start, end, highest, before))
        known[name] = max((time for time in (before, highest) if time is not None), default=None)
    return pl.DataFrame(rows, schema={**MARK, "before": pl.Int64()}, orient="row")


def _in_order(mark: tuple[int, int, int, int, int | None]) -> tuple[int, ...]:
    *place, highest = mark
    return (*place, -1 if highest is None else highest)


def frontier(known: dict[str, int | None], topics: Collection[int]) -> int | None:
    """The stream time that all partitions of these topics have reached; None if one of them has none yet.

    Example:
        >>> frontier({"0/0": 5, "0/1": 7, "1/0": 2}, {0}), frontier({"0/0": 5, "0/1": None}, {0})
        (5, None)
    """
    times = [time for name, time in known.items() if int(name.split("/")[0]) in topics]
    reached = [time for time in times if time is not None]
    return min(reached) if times and len(reached) == len(times) else None


def parts(whole: pl.DataFrame, times: pl.DataFrame, cuts: npt.NDArray[np.int64]) -> pl.DataFrame:
    """The mark of one split, divided.

    Args:
        whole: The mark.
        times: Offset and time of all rows that move time.
        cuts: Offsets inside of it.
    """
    if not len(cuts):
        return whole
    topic, partition, start, end, _ = whole.row(0)
    starts, ends = np.array([start, *cuts], np.int64), np.array([*cuts, end], np.int64)
    part = pl.Series("start", starts[np.searchsorted(starts, times[OFF].to_numpy(), side="right") - 1])
    highest = times.select(TS).with_columns(part).group_by("start").agg(pl.col(TS).max())
    places = pl.DataFrame({"start": starts, "end": ends}).join(highest, on="start", how="left", maintain_order="left")
    return places.select(
        pl.lit(topic, pl.UInt16()).alias(TOPIC), pl.lit(partition, pl.Int32()).alias(PART), "start", "end", TS
    ).cast(MARK)  # type: ignore[arg-type]  # a schema by name


def require_known(known: dict[str, int | None], marks: pl.DataFrame, topics: Sequence[str]) -> None:
    """Refuse a partition of which nobody has said what its first record is not older than.

    Its rows would fall into windows that are final. Whoever plans micro-batches says it of a partition that is new.

    Raises:
        StateError: If there is one.
    """
    if not known or None in known.values():
        return  # nothing is final as long as one of the others has no time
    given = marks.filter(pl.col("start") == pl.col("end"), pl.col(TS).is_not_null())
    unknown = marks.join(given, on=[TOPIC, PART], how="anti")
    for topic, partition in unknown.select(TOPIC, PART).unique().sort(TOPIC, PART).iter_rows():
        if f"{topic}/{partition}" not in known:
            raise StateError(
                f"topic {topics[topic]!r} has a new partition, {partition}, and windows that are final cannot "
                "take its records",
                hint="Rebuild the output with all partitions: everstate run SERVICE.py --recalculate OUTPUT",
            )


def timely(
    node: Node, rows: pl.DataFrame, ledger: Ledger, *, time: str = TS, early: str = UNDATED, until: int = AFTER_ALL
) -> pl.DataFrame:
    """Rows whose time can be calculated with; the others are dead letters.

    Args:
        node: The node.
        rows: Rows.
        ledger: Takes the others.
        time: The column that says it, in milliseconds.
        early: What is said of a time before 1970.
        until: From when on a time is none.
    """
    found = rows[time]
    outside = (found < 0) | (found >= until)
    if not outside.any():
        return rows
    bad = rows.filter(outside)
    ledger.dead(bad, [early if at < 0 else TOO_LATE for at in bad[time]], node)
    return rows.filter(~outside)


def require_open(node: Node, closes: pl.Series, reached: int) -> None:
    """Refuse rows for what has been final since the last micro-batch, which the one rule of time excludes.

    A row's stream time is at or above the frontier of every micro-batch before its own, so a row that is not late by
    its own stream time has a close that lies ahead. Whoever breaks that, with times of partitions or rows that lost
    theirs, would change what was published as final, and in no other run. One minimum a micro-batch is cheap enough to
    be looked at always.

    Args:
        node: The step.
        closes: By row that counts, the stream time at which it would be too late.
        reached: What all that feeds the step had reached before the micro-batch.

    Raises:
        FinalityError: If there is one.
    """
    first = closes.min()
    if isinstance(first, int) and first <= reached:  # None without rows
        raise FinalityError(
            f"a row with a close at {first} has reached {node.operation} after all partitions had reached {reached}: "
            "what it belongs to is already final",
            location=node.location,
        )


def across_splits(rows: pl.DataFrame, splits: pl.DataFrame) -> pl.DataFrame:
    """Raise the rows' stream time to that of their partition before their split."""
    highest, lowest = splits["before"].max(), rows[STREAM_TIME].min()
    if highest is None or lowest is None or highest <= lowest:  # type: ignore[operator]  # numbers both
        return rows
    return rows.with_columns(pl.max_horizontal(STREAM_TIME, _before(rows, splits)).alias(STREAM_TIME))


def _before(rows: pl.DataFrame, splits: pl.DataFrame) -> pl.Series:
    """The stream time of each row's partition before its split; null if there is none."""
    partition = [TOPIC, PART]
    if splits[partition].n_unique() == splits.height:
        known = splits[[*partition, "before"]]
        return rows[partition].join(known, on=partition, how="left", maintain_order="left")["before"]
    earlier = splits.select(TOPIC, PART, pl.col("start").alias(OFF), "before").sort(OFF)
    return (
        rows[[*partition, OFF]]
        .with_row_index("$row")
        .sort(OFF)
        .join_asof(earlier, on=OFF, by=partition, strategy="backward", check_sortedness=False)
        .sort("$row")["before"]
    )
