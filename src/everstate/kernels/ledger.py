"""What happened to records that did not become rows: dead letters and counts of one batch."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.errors import RecordError
from everstate.kernels.reasons import stable
from everstate.kernels.rows import KEY, OFF, OP, PART, TOPIC, TS, user_columns
from everstate.topology.names import node_names, step_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everstate.topology.nodes import Node
    from everstate.topology.unit import Unit

#: A dead letter: the record's position, what it held, why it could not be processed, and in which step; and which of
#: the timers that the record had set, if it was one of those.
DEAD: Final[dict[str, pl.DataType]] = {
    TOPIC: pl.UInt16(),
    PART: pl.Int32(),
    OFF: pl.Int64(),
    TS: pl.Int64(),
    KEY: pl.Binary(),
    "value": pl.Binary(),
    "reason": pl.String(),
    "step": pl.String(),
    "timer": pl.String(),
}
_NO_LETTERS: Final = pl.DataFrame(schema=DEAD)


class Ledger:
    """Collects dead letters and counts while a stage runs.

    Args:
        topics: The unit's topics, to name a position in an error.
        policy: "dead-letter" collects, "skip" only counts, "fail" raises on the first.
        unit: The output, which has names for its steps; without it they are called by what they do.
    """

    def __init__(self, topics: Sequence[str], policy: str = "dead-letter", unit: Unit | None = None) -> None:
        self.topics = topics
        self.policy = policy
        self._unit = unit
        self.counts: Counter[str] = Counter()
        self._dead: list[pl.DataFrame] = []
        self._aside: dict[str, list[pl.DataFrame]] = {}

    @classmethod
    def of(cls, unit: Unit, policy: str) -> Ledger:
        """The ledger of a stage."""
        return cls(unit.topics, policy, unit)

    def apart(self) -> Ledger:
        """A ledger of the same output that begins empty, and refuses nothing."""
        return Ledger(self.topics, "dead-letter", self._unit)

    def take(self, letters: pl.DataFrame, node: Node) -> None:
        """Record dead letters that another ledger has collected, of one step."""
        if letters.is_empty():
            return
        self.counts["dead"] += letters.height
        if self.policy == "fail":
            raise self._failure(letters.row(0, named=True), node)
        if self.policy == "dead-letter":
            self._dead.append(letters)

    def drop(self, reason: str, rows: int) -> None:
        """Count rows that the semantics leave out, such as those with a null group key."""
        if rows:
            self.counts[f"dropped.{reason}"] += rows

    def note(self, name: str, rows: int) -> None:
        """Count rows that pass, but about which people may want to know."""
        if rows:
            self.counts[name] += rows

    def dead(self, rows: pl.DataFrame, reasons: Sequence[str] | pl.Series, node: Node) -> None:
        """Record rows that cannot be processed; retractions failed when they were added, so they do not count.

        Args:
            rows: A rows frame; or one that has `value`, the record's raw bytes, and no `$op`. For timers it also has
                `timer`, the name, and their times as `$ts`.
            reasons: Why, by row.
            node: In which step.
        """
        value = rows["value"] if OP not in rows.columns else _texts(rows)
        frame = rows.select(TOPIC, PART, OFF, TS, KEY, *([OP] if OP in rows.columns else [])).with_columns(
            value.alias("value"),
            pl.Series("reason", [stable(reason) for reason in reasons], dtype=pl.String),
            pl.lit(self.step_of(node)).alias("step"),
            rows["timer"] if "timer" in rows.columns else pl.lit(None, pl.String).alias("timer"),
        )
        if OP in frame.columns:
            frame = frame.filter(pl.col(OP) > 0)
        if frame.is_empty():
            return
        self.counts["dead"] += frame.height
        if self.policy == "fail":
            raise self._failure(frame.row(0, named=True), node)
        if self.policy == "dead-letter":
            self._dead.append(frame.select([pl.col(name).cast(kind) for name, kind in DEAD.items()]))

    def aside(self, topic: str, records: pl.DataFrame) -> None:
        """Put records (key, value, ts, what they tell of time) on a further topic of the output; see `Unit.sides`."""
        if records.height:
            self._aside.setdefault(topic, []).append(records)

    def route(self, side: str) -> str | None:
        """The topic to which rows of a processor's side go; None if they go nowhere."""
        return None if self._unit is None else dict(self._unit.output.routes).get(side)

    def sides(self) -> dict[str, pl.DataFrame]:
        """The records for further topics so far."""
        return {topic: pl.concat(frames) for topic, frames in self._aside.items()}

    def step_of(self, node: Node) -> str:
        """What a letter calls a step."""
        names = [] if self._unit is None else zip(self._unit.nodes, node_names(self._unit), strict=True)
        return step_text(next((name for other, name in names if other is node), node.verb), node.location)

    def letters(self) -> pl.DataFrame:
        """All dead letters so far."""
        return pl.concat(self._dead) if self._dead else _NO_LETTERS

    def _failure(self, row: dict[str, object], node: Node) -> RecordError:
        topic = self.topics[int(str(row[TOPIC]))]
        return RecordError(
            f"record {topic}/{row[PART]} offset {row[OFF]} cannot be processed: {row['reason']}",
            location=node.location,
            hint=f"See it: everstate consume {topic} --from-beginning --json. "
            'Let such records go to the dead-letter topic with Service(..., on_error="dead-letter").',
        )


def _texts(rows: pl.DataFrame) -> pl.Series:
    """The user's columns of each row as readable text."""
    values = [repr(row).encode() for row in rows.select(user_columns(rows)).iter_rows(named=True)]
    return pl.Series(values, dtype=pl.Binary)
