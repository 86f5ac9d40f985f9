"""A sample of keys, recalculated alone, has what a recalculation of all keys gives them."""

from __future__ import annotations

import json
import random

import polars as pl
import pytest
from polars import col

import everstate as es
from everstate.errors import MigrationError
from everstate.kernels.migration.convert import EVERY, Migration, Sample, migrate, place
from everstate.kernels.migration.proof import recalculated
from everstate.kernels.pages.page_store import MemoryPages
from everstate.kernels.parcel import from_block
from everstate.kernels.pipeline import ShardStages, ingested, run_stages

pytestmark = pytest.mark.slow

ORDER = {"id": str, "customer": str, "amount": int}


def unit_of(build, source="table"):
    app = es.Service("shop")
    build(getattr(app, source)("orders", key="id", schema=ORDER)).to("out")
    return app.units()[0]


def history(seed, batches=10, records=60, keys=200):
    """Orders that come, change and go, in batches of two partitions."""
    dice = random.Random(seed)
    offsets = [0, 0]
    made = []
    for number in range(batches):
        pieces = []
        for partition in (0, 1):
            rows = []
            for _ in range(records):
                key = dice.randrange(keys) * 2 + partition
                value = {"customer": f"c{dice.randrange(60)}", "amount": dice.randrange(100)}
                text = None if dice.random() < 0.1 else json.dumps(value).encode()
                rows.append((f"o{key}".encode(), text, number, offsets[partition]))
                offsets[partition] += 1
            schema = {"key": pl.Binary, "value": pl.Binary, "ts": pl.Int64, "offset": pl.Int64}
            pieces.append(("orders", partition, pl.DataFrame(rows, schema=schema, orient="row")))
        made.append(pieces)
    return made


BUILDS = {
    "table": lambda orders: orders.filter(col("amount") > 20),
    "aggregate": lambda orders: orders.group_by("customer").agg(total=col("amount").sum(), best=col("amount").max()),
    "fold": lambda orders: orders.group_by("customer").aggregate(
        lambda: 0, lambda total, row: total + row["amount"], schema=int
    ),
    "rekey": lambda orders: orders.rekey("customer"),
}


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("source", ["table", "stream"])
def test_sample_is_part_of_a_recalculation_of_all_keys(build, source):
    unit = unit_of(BUILDS[build], source)
    batches = history(build)
    whole = recalculated(unit, lambda: batches)
    part = recalculated(unit, lambda: batches, enough=8)
    assert whole.limit == EVERY
    assert part.limit < EVERY
    for number, block in part.blocks.items():
        everything = from_block(whole.blocks[number])
        expected = everything.filter(pl.Series(place(everything["$key"]) < part.limit))
        assert from_block(block).equals(expected)
        assert 4 <= expected.height <= 16 or not expected.height


def test_sample_does_not_depend_on_how_history_is_cut():
    unit = unit_of(BUILDS["aggregate"])
    batches = history(3)
    together = [[piece for batch in batches[at : at + 5] for piece in batch] for at in (0, 5)]
    one, other = (recalculated(unit, lambda cut=cut: cut, enough=8) for cut in (batches, together))
    assert one.limit == other.limit
    assert [from_block(block).rows() for block in one.blocks.values()] == [
        from_block(block).rows() for block in other.blocks.values()
    ]


def processed(unit, batches):
    """The state after history, on one shard."""
    shard = ShardStages(unit, MemoryPages(), policy="skip")
    for batch in batches:
        run_stages([shard], range(1, unit.depth + 1), ingested(unit, batch, "skip"))
    return shard.shard(unit.depth)


@pytest.mark.parametrize("build", BUILDS)
def test_sample_agrees_with_state_as_it_is(build):
    unit = unit_of(BUILDS[build])
    batches = history(5)
    sample = recalculated(unit, lambda: batches, enough=16)
    migrate(unit, unit.depth, processed(unit, batches), Migration(mark="2", sample=sample))


def test_sample_with_a_key_more_or_less_does_not_agree():
    unit = unit_of(BUILDS["aggregate"])
    batches = history(6)
    shard = processed(unit, batches)
    sample = recalculated(unit, lambda: batches, enough=16)
    fewer = recalculated(unit, lambda: batches[:2], enough=16)
    with pytest.raises(MigrationError, match="if it is recalculated"):
        migrate(unit, unit.depth, shard, Migration(mark="2", sample=Sample(sample.limit, fewer.blocks)))
    # A key of which history does not tell is not compared.
    everything = frozenset(key for block in sample.blocks.values() for key in from_block(block)["$key"])
    unknown = Sample(sample.limit, fewer.blocks, everything)
    migrate(unit, unit.depth, shard, Migration(mark="2", sample=unknown))
    empty = processed(unit, [])
    with pytest.raises(MigrationError, match=r"for key 'c\d+' the .* has nothing after the conversion"):
        migrate(unit, unit.depth, empty, Migration(mark="2", sample=sample))
