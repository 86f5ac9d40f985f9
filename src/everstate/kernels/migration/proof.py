"""A sample of keys, recalculated from history: what proves that converted state is right.

History is read once and only the rows of the sample are processed, so the cost is that of decoding. Which keys are in
it depends on their hashes alone; the more keys there are, the smaller the part of them that is taken. Where a table is
brought together by another key, history is read twice: first to see which records the sample's keys are made of.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import polars as pl

from everstate.kernels.keying import rekeyed
from everstate.kernels.ledger import Ledger
from everstate.kernels.migration.convert import EVERY, place, sample_of
from everstate.kernels.pages.page_store import MemoryPages
from everstate.kernels.parcel import MARKS, OUT, Parcel
from everstate.kernels.pipeline import Piece, ShardStages, ingested, run_stages
from everstate.kernels.rows import CONTRIBUTION, KEY, OP
from everstate.topology.unit import silenced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy.typing as npt

    from everstate.kernels.migration.convert import Sample
    from everstate.kernels.order import Order
    from everstate.topology.unit import Unit

#: Gives history as micro-batches, from the beginning, each time it is called.
Batches: TypeAlias = "Callable[[], Iterable[list[Piece]]]"

#: So many keys at the least, if there are so many.
ENOUGH: Final = 256
_POLICY: Final = "skip"


def recalculated(unit: Unit, batches: Batches, order: Order | None = None, *, enough: int = ENOUGH) -> Sample:
    """What a sample of an output's keys has after all of history.

    Args:
        unit: The output, of one keyed stage or, of tables, two.
        batches: Its history; where the order of arrival matters, batches end where live ones ended.
        order: Where live batches ended, if it matters.
        enough: So many keys at the least, if there are so many.

    Example:
        >>> import everstate as es
        >>> app = es.Service("docs")
        >>> _ = app.stream("clicks", key="user", schema={"n": int}).group_by("user").agg(n=es.count()).to("counts")
        >>> clicks = pl.DataFrame({"key": [b"ada"], "value": [b'{"n": 1}'], "ts": [0], "offset": [0]})
        >>> len(recalculated(app.units()[0], lambda: [[("clicks", 0, clicks)]]).blocks)
        1
    """
    choice = _Choice(enough)
    unit = silenced(unit)
    contributors = _contributors(unit, batches, choice) if unit.depth > 1 else None

    def admit(stage: int, waiting: list[Parcel]) -> list[Parcel]:
        return choice.of(waiting, grow=contributors is None) if stage == unit.depth else waiting

    # What cannot be processed is no part of a table; only the count of it would differ.
    shard = ShardStages(unit, MemoryPages(), policy=_POLICY, order=order)
    for batch in batches():
        parcels = ingested(unit, batch, _POLICY, order=order)
        if contributors is not None:
            parcels = [_only(parcel, contributors) for parcel in parcels]
        run_stages([shard], range(1, unit.depth + 1), parcels, admit=admit)
    return sample_of(unit, shard.shard(unit.depth), choice.limit)


class _Choice:
    """Which keys are in the sample; the limit sinks as more of them are seen."""

    def __init__(self, enough: int) -> None:
        self.limit = EVERY
        self._enough = enough
        self._seen: set[bytes] = set()

    def of(self, parcels: list[Parcel], *, grow: bool) -> list[Parcel]:
        """The rows of the sample."""
        data = [parcel for parcel in parcels if parcel.node != MARKS]
        if grow:
            self.note(parcel.frame[KEY] for parcel in data)
        kept = [replace(p, frame=p.frame.filter(self.has(p.frame[KEY]))) for p in data]
        return [parcel for parcel in parcels if parcel.node == MARKS] + kept

    def has(self, keys: pl.Series) -> pl.Series:
        """Whether keys are in the sample."""
        return pl.Series(self._below(keys), dtype=pl.Boolean) & keys.is_not_null()

    def note(self, found: Iterable[pl.Series]) -> None:
        """Take notice of keys, and lower the limit if there are more than enough."""
        for keys in found:
            self._seen.update(keys.filter(self.has(keys)).unique())
        while len(self._seen) > 2 * self._enough and self.limit > 1:
            self.limit //= 2
            known = pl.Series(list(self._seen), dtype=pl.Binary)
            self._seen = set(known.filter(self.has(known)))

    def _below(self, keys: pl.Series) -> npt.NDArray[np.bool_]:
        below: npt.NDArray[np.bool_] = place(keys.fill_null(b"")) < np.uint64(self.limit)
        return below


def _only(parcel: Parcel, keys: pl.DataFrame) -> Parcel:
    if parcel.node == MARKS or parcel.stage == OUT:
        return parcel
    return replace(parcel, frame=parcel.frame.join(keys, on=KEY, how="semi"))


def _contributors(unit: Unit, batches: Batches, choice: _Choice) -> pl.DataFrame:
    """The keys of records that the sample's keys were ever made of.

    A batch on empty state tells where each of its rows belongs; that a row went elsewhere later does no harm, since
    then its later record is in the recalculation as well.
    """
    ledger = Ledger(unit.topics, _POLICY)
    found: list[pl.DataFrame] = []

    def witness(number: int, rows: pl.DataFrame) -> None:
        for edge in unit.out_of(number):
            target = unit.nodes[edge.target]
            keying = target.regrouping if edge.exchange and target.rekeys_input(edge.port) else None
            if keying is not None and rows.height:
                moved = rekeyed(keying, rows.filter(pl.col(OP) > 0), ledger, target)
                choice.note([moved[KEY]])
                found.append(moved.filter(choice.has(moved[KEY])).select(KEY, CONTRIBUTION).unique())

    for batch in batches():
        shard = ShardStages(unit, MemoryPages(), policy=_POLICY)
        run_stages([shard], [1], ingested(unit, batch, _POLICY), witness=witness)
        if found:
            together = pl.concat(found)
            found = [together.filter(choice.has(together[KEY])).unique()]
    if not found:
        return pl.DataFrame(schema={KEY: pl.Binary})
    return found[0].select(pl.col(CONTRIBUTION).alias(KEY)).unique()
