"""The end of a unit: changes or rows as records of the output topic, and dead letters as records of their own."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.kernels.changes import sides
from everstate.kernels.pages.hashing import murmur2
from everstate.kernels.records.encode import encode_values
from everstate.kernels.records.keys import rewritten
from everstate.kernels.records.times import TOLD, headers, told
from everstate.kernels.rows import KEY, OFF, OP, PART, STREAM_TIME, TOPIC, TS
from everstate.schema.partitioner import partition_of
from everstate.topology.nodes import Kind

if TYPE_CHECKING:
    from everstate.formats.descriptions import Format
    from everstate.kernels.shard import Shard
    from everstate.schema.schema import Schema
    from everstate.schema.windowed_keys import WindowedKeys
    from everstate.topology.nodes import Output, Side
    from everstate.topology.unit import Unit

#: From so many records on, they are ordered by the hashes of their keys.
_MANY: Final = 20_000

#: Of a tombstone for a record that lies somewhere: its offset, for which it has a header.
REMOVED: Final = "removed"

#: The header, and on the way there the column, that says which input has caused a record.
CAUSED: Final = "es-cause"
#: The header of a removal that says how far the topic's owner had read its inputs.
READ: Final = "es-read"

#: A record on its way to a topic.
RECORD: Final[dict[str, pl.DataType]] = {"key": pl.Binary(), "value": pl.Binary(), "ts": pl.Int64()}


def update(
    node: Output, rows: pl.DataFrame, shard: Shard, *, settled: bool = False, sources: tuple[str, ...] = ()
) -> pl.DataFrame:
    """The records to publish, in an order that depends on their content alone.

    A table's changes become at most one record per key, a tombstone where only the retraction is left, and none where
    the value did not change. A stream's rows all go out, in order of their stream time and position.

    Args:
        node: The node.
        rows: Rows, or changes.
        shard: Knows how far time has come.
        settled: The changes are a stateful step's own: one of each side a key at the most, and none without effect.
        sources: The names of the unit's topics, if a table's records have to say which input has caused them.
    """
    if rows.is_empty():
        return pl.DataFrame(schema=RECORD)
    if node.kind is Kind.STREAM:
        before, now = shard.reached()
        return stream_records(rows, node.record, node.format, before, now if shard.shards == 1 else None)
    if settled:
        gone, added = rows.filter(pl.col(OP) < 0), rows.filter(pl.col(OP) > 0)
    else:
        gone, added = sides(rows, node.record.names)
    if gone.height and added.height:
        gone = gone.join(added[[KEY]], on=KEY, how="anti")
    records = []
    if added.height:
        records.append(_caused(_records(_keyed(node, added), _values(added, node.record, node.format)), added, sources))
    if gone.height:
        nothing = pl.Series([None], dtype=pl.Binary).new_from_index(0, gone.height)
        records.append(_caused(_records(_keyed(node, gone), nothing), gone, sources))
    return _in_order(pl.concat(records)) if records else pl.DataFrame(schema=RECORD)


def _keyed(node: Output, rows: pl.DataFrame) -> pl.DataFrame:
    """Rows under the key that is written on the topic."""
    return (
        rows if node.windows is None else rows.with_columns(rewritten(rows[KEY], node.key, node.topic_key).alias(KEY))
    )


def _in_order(records: pl.DataFrame) -> pl.DataFrame:
    """Records of different keys in an order that depends on their keys alone."""
    if records.height < _MANY:
        return records.sort("key")
    # Numbers are sorted in a fraction of the time. Few keys share their hash, these are put in order among themselves.
    hashes = pl.Series(murmur2(records["key"]))
    order = hashes.arg_sort()
    ordered, hashes = records[order], hashes.gather(order)
    alike = hashes == hashes.shift(1)
    if not alike.any():
        return ordered
    shared = (alike | alike.shift(-1, fill_value=False)).fill_null(value=False)
    again = ordered.with_columns(hashes.alias("$hash")).filter(shared).sort("$hash", "key").drop("$hash")
    added = pl.int_range(ordered.height, ordered.height + again.height, eager=True)
    numbers = pl.int_range(ordered.height, eager=True).scatter(shared.arg_true(), added)
    return pl.concat([ordered, again])[numbers]


def stream_records(
    rows: pl.DataFrame, schema: Schema, fmt: Format, before: int | None, now: int | None = None
) -> pl.DataFrame:
    """The records of a stream's rows, in order of their stream time and position; they also tell their stream time.

    Args:
        rows: The rows.
        schema: The columns of their values.
        fmt: How those are written.
        before: The frontier before the micro-batch.
        now: The frontier after it, if these are all rows of it; else None.
    """
    rows = rows.sort(STREAM_TIME, TOPIC, PART, OFF, maintain_order=True)
    return _records(rows, _values(rows, schema, fmt)).hstack(told(rows, before, now))


def _values(rows: pl.DataFrame, schema: Schema, fmt: Format) -> pl.Series:
    if not schema.names and fmt == "json":
        # Polars knows no frame that has rows but no columns.
        return pl.repeat(b"{}", rows.height, dtype=pl.Binary, eager=True)
    return encode_values(rows, schema, fmt)


def _records(rows: pl.DataFrame, values: pl.Series) -> pl.DataFrame:
    return pl.DataFrame([rows[KEY].alias("key"), values.alias("value"), rows[TS].alias("ts")])


def _caused(records: pl.DataFrame, rows: pl.DataFrame, sources: tuple[str, ...]) -> pl.DataFrame:
    """Records with the place of the input that has caused each, if that is asked for."""
    if not sources:
        return records
    names = rows[TOPIC].replace_strict(dict(enumerate(sources)), default="", return_dtype=pl.String)
    place = pl.select(pl.concat_str([pl.lit(names), pl.lit(rows[PART]), pl.lit(rows[OFF])], separator="/"))
    return records.with_columns(place.to_series().cast(pl.Binary).alias(CAUSED))


def cause_of(header: bytes) -> tuple[str, int, int]:
    """Topic, partition and offset of the input that has caused a record.

    Example:
        >>> cause_of(b"orders/1/17")
        ('orders', 1, 17)
    """
    topic, partition, offset = header.decode().rsplit("/", 2)
    return topic, int(partition), int(offset)


def places(keys: pl.Series, partitions: int, windows: WindowedKeys | None) -> pl.Series:
    """The partition of each key; windows of one group are together."""
    return partition_of(keys if windows is None else keys.bin.head(-windows.width), partitions).alias("partition")


def addressed(
    records: pl.DataFrame,
    partitions: int,
    service: str,
    generation: str,
    *,
    turn: int = 0,
    more: tuple[tuple[str, bytes], ...] = (),
    windows: WindowedKeys | None = None,
) -> pl.DataFrame:
    """Records with their partition and headers.

    A record without a key goes round-robin, and a replay must send it to the same partition: its place decides.

    Args:
        records: The records.
        partitions: How many the topic has.
        service: Whose they are.
        generation: Which version made them.
        turn: Where the round begins, so that shards do not all begin at the first partition.
        more: Further headers of all of them.
        windows: Keys are those of windows as Kafka Streams writes them.
    """
    by_key = places(records["key"], partitions, windows)
    in_turn = ((pl.int_range(pl.len(), dtype=pl.Int64) + turn) % partitions).cast(pl.Int32)
    placed = records.with_columns(by_key).with_columns(pl.col("partition").fill_null(in_turn))
    named = with_headers(placed, service, generation, more)
    return _with_header(named, CAUSED, CAUSED) if CAUSED in named.columns else named


def with_headers(
    records: pl.DataFrame, service: str, generation: str, more: tuple[tuple[str, bytes], ...] = ()
) -> pl.DataFrame:
    """Records that say which generation of which service made them, and those of streams what time it was."""
    own = [("es-service", service.encode()), ("es-generation", generation.encode()), *more]
    if set(TOLD) <= set(records.columns):
        return records.drop(*TOLD).with_columns(headers(own, records))
    kind = pl.List(pl.Struct({"name": pl.String, "value": pl.Binary}))
    same = pl.Series([[{"name": name, "value": value} for name, value in own]], dtype=kind)
    return records.with_columns(pl.lit(same).first().alias("headers"))


def dead_letter_records(unit: Unit, letters: pl.DataFrame) -> pl.DataFrame:
    """Dead letters as records of their topic, a table keyed by (topic, partition, offset).

    A record that failed in several steps has one entry, that of the first step by name. A timer has an entry of its
    own, by the record that has set it, its name and its time.
    """
    due = pl.when(pl.col("timer").is_not_null()).then(pl.col(TS)).alias("due")
    distinct = (
        letters.with_columns(due)
        .sort(TOPIC, PART, OFF, "timer", "due", "step", "reason")
        .unique([TOPIC, PART, OFF, "timer", "due"], keep="first", maintain_order=True)
    )
    keys, values = [], []
    for row in distinct.iter_rows(named=True):
        place = (unit.topics[row[TOPIC]], row[PART], row[OFF])
        timer = () if row["timer"] is None else (row["timer"], row[TS])
        keys.append(place_key((*place, *timer)))
        values.append(letter(place, row["reason"], row["step"], row[KEY], _readable(row["value"])))
    return pl.DataFrame({"key": keys, "value": values, "ts": distinct[TS]}, schema=RECORD)


def side_records(
    side: Side, records: pl.DataFrame, partitions: int, service: str, generation: str, *, turn: int = 0
) -> pl.DataFrame:
    """The records of a further topic with their partition and headers; a table gets one for each key, by content.

    Args:
        side: The topic.
        records: key, value and ts, from all tasks; of tombstones, also the partition and `REMOVED`.
        partitions: How many the topic has.
        service: Whose they are.
        generation: Which version made them.
        turn: As for `addressed`.
    """
    if REMOVED in records.columns:
        return _removing(records, service, generation)
    if side.kind is Kind.TABLE:
        records = records.sort("key", "value").unique("key", keep="first", maintain_order=True)
    return addressed(records, partitions, service, generation, turn=turn)


def _removing(records: pl.DataFrame, service: str, generation: str) -> pl.DataFrame:
    """Tombstones in the partitions of the records that they remove, which they name."""
    # Their generation is none of the topic's own writer, which knows its records by that.
    placed = with_headers(records.sort("key", "partition"), service, f"{service}.{generation}")
    offsets = placed.with_columns(pl.col(REMOVED).cast(pl.String).cast(pl.Binary))
    return _with_header(offsets, REMOVED, "es-removed")


def _with_header(records: pl.DataFrame, column: str, name: str) -> pl.DataFrame:
    """Records with a column as one more header."""
    header = pl.struct(pl.lit(name).alias("name"), pl.col(column).alias("value"))
    return records.with_columns(pl.col("headers").list.concat(pl.concat_list(header))).drop(column)


def place_key(place: tuple[str | int, ...]) -> bytes:
    """The key of what is said of a record: its topic, partition and offset; of a timer, also its name and time."""
    return json.dumps(place, separators=(",", ":"), ensure_ascii=False).encode()


def letter(place: tuple[str, int, int], reason: str, step: str, key: bytes | None, value: object) -> bytes:
    """What is said of a record: where it lies, why it does not count, in which step, and what it held."""
    said = {
        "topic": place[0],
        "partition": place[1],
        "offset": place[2],
        "reason": reason,
        "step": step,
        "key": _readable(key),
        "value": value,
    }
    return json.dumps(said, ensure_ascii=False).encode()


def _readable(data: bytes | None) -> object:
    """Bytes as text where they are text, else as base64."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"$bytes": base64.b64encode(data).decode()}
