"""Files of rows: whole, or not there."""

from __future__ import annotations

import gc

import pytest

from everstate.reading.files import writing
from everstate.schema.types import DataType


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv", "jsonl"])
def test_file_that_is_given_up_leaves_nothing_and_says_nothing_later(tmp_path, ending) -> None:
    with pytest.raises(LookupError), writing(tmp_path / f"t.{ending}", {"n": DataType("int64")}):
        raise LookupError
    gc.collect()  # a writer that was left open would complain here, and a complaint fails the test
    assert not list(tmp_path.iterdir())
