"""Which records `consume` shows: those of a key, and those for which a condition holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from everstate.errors import ConfigurationError
from everstate.errors.calls import suggestion
from everstate.kernels.records.typed_rows import OFFSET, PARTITION
from everstate.reading.bad_records import BadRecords
from everstate.reading.inference import Inference

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass
class Condition:
    """An SQL condition on the columns of records, as they are inferred.

    Args:
        topic: Of the records.
        text: The condition, such as `amount > 100 AND status = 'paid'`.
        lenient: Fields that no record has had yet are null: records that come later may have them.
    """

    topic: str
    text: str
    lenient: bool = False
    bad: BadRecords = field(init=False)
    _inference: Inference = field(default_factory=Inference)

    def __post_init__(self) -> None:
        self.bad = BadRecords(self.topic, skip=True, hint="")
        try:
            # Parses one expression: it has no way to a file, a table or a function of Python's.
            self._expression = pl.sql_expr(self.text)
        except (pl.exceptions.PolarsError, ValueError) as error:
            raise ConfigurationError(f"--where {self.text!r} is not a condition: {error}", hint=_HINT) from error
        if any(name.startswith("_POLARS_TMP") for name in self._expression.meta.root_names()):
            raise ConfigurationError(f"--where {self.text!r} is not a condition: it has a query in it", hint=_HINT)

    def learn(self, frames: Iterable[pl.DataFrame]) -> None:
        """Look at records, so that columns have the types of all of them."""
        for frame in frames:
            self._inference.add(frame)

    def holds(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The records for which it holds.

        Raises:
            ConfigurationError: If it names a column that is not there, or is no condition.
        """
        self._inference.add(frame)
        rows = self._inference.form().rows(frame)
        self.bad.add(rows.bad)
        known = self._completed(rows.frame)
        try:
            held = known.select(PARTITION, OFFSET, self._expression.alias("$holds"))
        except pl.exceptions.PolarsError as error:
            # What follows the first line is Polars' own way to write the condition.
            reason = str(error).partition("\n")[0]
            raise ConfigurationError(
                f"--where {self.text!r} cannot be evaluated: {reason}", hint=f"{self._texts(known)}{_HINT}"
            ) from error
        if held.schema["$holds"] not in (pl.Boolean, pl.Null):
            raise ConfigurationError(
                f"--where {self.text!r} is neither true nor false, but {held.schema['$holds']}", hint=_HINT
            )
        places = held.filter(pl.col("$holds").cast(pl.Boolean)).select(
            pl.col(PARTITION).alias("partition"), pl.col(OFFSET).alias("offset")
        )
        return frame.join(places, on=["partition", "offset"], how="semi", maintain_order="left")

    def _texts(self, frame: pl.DataFrame) -> str:
        """Which of its fields are text: where some values are numbers and others are not, all are."""
        texts = [name for name in dict.fromkeys(self._expression.meta.root_names()) if frame.schema[name] == pl.String]
        verb = "is" if len(texts) == 1 else "are"
        return f"{', '.join(texts)} {verb} text here, since not all values are numbers. " if texts else ""

    def _completed(self, frame: pl.DataFrame) -> pl.DataFrame:
        absent = [name for name in self._expression.meta.root_names() if name not in frame.columns]
        if absent and not self.lenient:
            columns = [name for name in frame.columns if not name.startswith("$")]
            raise ConfigurationError(
                f"--where {self.text!r}: no record of topic {self.topic!r} has the field {absent[0]!r}",
                hint=f"{suggestion(absent[0], columns)}There are: {', '.join(columns)}.",
            )
        return frame.with_columns(pl.lit(None).alias(name) for name in absent)


_HINT = "Write it as in SQL, with single quotes around text: --where \"amount > 100 AND status = 'paid'\""


def of_key(frame: pl.DataFrame, key: str | None) -> pl.DataFrame:
    """The records of a key; all if none is asked for."""
    return frame if key is None else frame.filter(pl.col("key") == key.encode())
