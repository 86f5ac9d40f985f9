"""Which records of the sources a key of an output was made of.

Every row that a step gives is looked at while a history is processed; then the way is gone back from the output. A step
that keeps the key asks for the rows of that key, one that groups rows for those that came to the key, a foreign-key
join for a row and what it refers to, and a step that sees each row alone for the same row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.kernels.keying import key_parts, rekeyed
from everstate.kernels.ledger import Ledger
from everstate.kernels.operations.table_records import newest
from everstate.kernels.records.keys import decode_keys, encode_keys
from everstate.kernels.rows import CONTRIBUTION, KEY, OFF, OP, PART, TOMBSTONE, TOPIC, TS, empty, user_columns
from everstate.topology.nodes import Kind

if TYPE_CHECKING:
    from everstate.topology.nodes import Node
    from everstate.topology.unit import Edge, Unit

#: What a row is known by: a step that sees each row alone passes it on.
_PLACE: Final = [TOPIC, PART, OFF]


class Lineage:
    """Collects the rows of an output's steps, and tells where a key came from.

    Args:
        unit: The output.

    Example:
        >>> import everstate as es
        >>> from everstate.kernels.pipeline import ingested
        >>> app = es.Service("docs")
        >>> _ = app.stream("words", key="word", schema={"word": str, "n": int}).filter(es.col("n") > 1).to("long")
        >>> unit = app.units()[0]
        >>> values = [b'{"n": 1}', b'{"n": 2}']
        >>> words = pl.DataFrame({"key": [b"a", b"a"], "value": values, "ts": [0, 0], "offset": [7, 8]})
        >>> lineage = Lineage(unit)
        >>> _ = ingested(unit, [("words", 0, words)], "skip", lineage.witness)
        >>> [frame["$off"].to_list() for frame in lineage.records(b"a").values()]
        [[8]]
    """

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._frames: dict[int, list[pl.DataFrame]] = {}
        self._ledger = Ledger(unit.topics, "skip")

    def witness(self, number: int, rows: pl.DataFrame) -> None:
        """Is shown the rows that a step gives."""
        if rows.height:
            self._frames.setdefault(number, []).append(rows)

    def records(self, key: bytes) -> dict[int, pl.DataFrame]:
        """By the number of a source, the rows of its records that the key is made of."""
        wanted = self._wanted(key)
        return {n: rows for n, rows in wanted.items() if not self._unit.nodes[n].inputs and rows.height}

    def results(self, key: bytes) -> pl.DataFrame:
        """The rows of the key that go to the output, in their order."""
        (edge,) = self._unit.into(len(self._unit.nodes) - 1)
        return self._wanted(key)[edge.source]

    def entering(self, key: bytes) -> pl.DataFrame:
        """The rows that went into the last step which keeps state, as the steps before it made them."""
        nodes, wanted = self._unit.nodes, self._wanted(key)
        last = max((n for n, node in enumerate(nodes) if node.traits.keeps_state and n in wanted), default=None)
        feeders = [] if last is None else sorted({edge.source for edge in self._unit.into(last)})
        frames = [wanted[n].select(*_PLACE, KEY, *user_columns(wanted[n])) for n in feeders if n in wanted]
        return frames[0] if len(frames) == 1 else empty({})

    def _wanted(self, key: bytes) -> dict[int, pl.DataFrame]:
        """By the number of a step, those of its rows that matter."""
        last = len(self._unit.nodes) - 1
        asked = pl.DataFrame({KEY: [key]}, schema={KEY: pl.Binary})
        wanted: dict[int, pl.DataFrame] = {last: asked}
        for number in range(last, 0, -1):
            if number not in wanted:
                continue
            for edge in self._unit.into(number):
                found = self._asked(self._unit.nodes[number], edge, wanted[number])
                known = wanted.get(edge.source)
                wanted[edge.source] = found if known is None else pl.concat([known, found]).unique(maintain_order=True)
        return wanted

    def _asked(self, node: Node, edge: Edge, results: pl.DataFrame) -> pl.DataFrame:
        """The rows of the step before that some results of a step are made of."""
        keys = results[[KEY]].unique()
        if not node.traits.on_shard:
            same = _PLACE if node.regrouping is not None else [*_PLACE, KEY]
            rows = self.rows(edge.source).filter(pl.col(OP) > 0)
            return rows.join(results[same].unique(), on=same, how="semi", nulls_equal=True)
        rows = self._live(edge.source)
        if node.traits.holds_source or edge.everywhere:
            if node.traits.refers:
                keys = self._referred(node, edge, keys)
            return newest(rows).filter(~pl.col(TOMBSTONE)).join(keys, on=KEY, how="semi")
        keying = node.regrouping
        if keying is None or (node.traits.refers and edge.port == 0):
            return rows.join(keys, on=KEY, how="semi", nulls_equal=True)
        if node.traits.refers:
            return rows.join(self._referred(node, edge, keys), on=KEY, how="semi")
        moved = rekeyed(keying, rows, self._ledger, node)
        windowed = node.key.names != keying.key.names
        moved = _in_windows(moved, node, keys) if windowed else moved.join(keys, on=KEY, how="semi")
        own = moved.select(*_PLACE, pl.col(CONTRIBUTION).alias(KEY)).unique()
        return rows.join(own, on=[*_PLACE, KEY], how="semi", nulls_equal=True)

    def _referred(self, node: Node, edge: Edge, keys: pl.DataFrame) -> pl.DataFrame:
        """The keys of the table to which the left rows of some keys refer."""
        left = self._live(self._unit.into(edge.target)[0].source).join(keys, on=KEY, how="semi", nulls_equal=True)
        keying = node.regrouping
        assert keying is not None
        _, parts = key_parts(keying, left, self._ledger, node)
        return encode_keys(parts, keying.key).alias(KEY).to_frame().unique().drop_nulls()

    def rows(self, number: int) -> pl.DataFrame:
        """All rows that a step has given."""
        frames = self._frames.get(number)
        return pl.concat(frames, how="diagonal_relaxed") if frames else _none(self._unit.nodes[number])

    def _live(self, number: int) -> pl.DataFrame:
        """The rows of a step that no later change has taken back."""
        rows, node = self.rows(number), self._unit.nodes[number]
        if node.kind is Kind.STREAM or not node.inputs:
            return rows
        same = [KEY, *user_columns(rows)]
        others = [name for name in rows.columns if name not in {*same, OP}]
        added = pl.col(others).filter(pl.col(OP) > 0)  # what takes a row back has the place of its cause
        net = rows.group_by(same, maintain_order=True).agg(pl.col(OP).sum(), added.last())
        return net.filter(pl.col(OP) > 0).select(rows.columns)


def _in_windows(rows: pl.DataFrame, node: Node, keys: pl.DataFrame) -> pl.DataFrame:
    """The rows of some windows: of their group, and of their time. Of those that came too late nothing is known."""
    *group, start, end = node.key.names
    columns, _ = decode_keys(keys[KEY], node.key)
    windows = pl.DataFrame([series.alias(f"$of:{name}") for name, series in columns.items()])
    found = rows.join(windows, left_on=group, right_on=[f"$of:{name}" for name in group], how="inner")
    first, last = (pl.col(f"$of:{name}").dt.timestamp("ms") for name in (start, end))
    # Where rows make the windows, they end with one.
    before_end = pl.col(TS) <= last if node.traits.scatters else pl.col(TS) < last
    return found.filter((pl.col(TS) >= first) & before_end).select(rows.columns)


def _none(node: Node) -> pl.DataFrame:
    rows = empty(node.schema.polars)
    return rows if node.inputs else rows.with_columns(pl.lit(value=False).alias(TOMBSTONE))
