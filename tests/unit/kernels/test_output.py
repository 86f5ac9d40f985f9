import numpy as np
import polars as pl
import pytest

from everstate.kernels import output


@pytest.fixture
def records():
    numbers = range(1_000)
    return pl.DataFrame({"key": [b"key-%d" % n for n in numbers], "value": [b"%d" % n for n in numbers], "ts": numbers})


@pytest.mark.parametrize("distinct", [1, 50, 100_000, 2**32])
def test_output_many_records_have_an_order_that_depends_on_their_keys_alone(records, distinct, monkeypatch):
    murmur2 = output.murmur2
    monkeypatch.setattr(output, "_MANY", 10)
    monkeypatch.setattr(output, "murmur2", lambda keys: (murmur2(keys) % np.uint64(distinct)).astype(np.uint32))
    ordered = [output._in_order(records.sample(fraction=1, shuffle=True, seed=seed)) for seed in range(3)]
    assert ordered[0].equals(ordered[1])
    assert ordered[0].equals(ordered[2])
    assert ordered[0].sort("ts").equals(records.cast({"ts": pl.Int64}))


def test_output_few_records_are_ordered_by_key(records):
    assert output._in_order(records.reverse())["key"].is_sorted()
