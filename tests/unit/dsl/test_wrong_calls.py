"""Every wrong call gives a named error with the user's line and what to do; right calls near them are taken."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path

import pytest

import everstate as es
from everstate.errors import AbsentError, EverstateError
from tests.unit.dsl.right_calls import RIGHT_CALLS
from tests.unit.dsl.wrong_arguments import WRONG_ARGUMENTS
from tests.unit.dsl.wrong_functions import WRONG_FUNCTIONS
from tests.unit.dsl.wrong_names import WRONG_NAMES
from tests.unit.dsl.wrong_processors import RIGHT_PROCESSORS, WRONG_PROCESSORS
from tests.unit.dsl.wrong_windows import RIGHT_WINDOWS, WRONG_WINDOWS

WRONG_CALLS = [*WRONG_FUNCTIONS, *WRONG_ARGUMENTS, *WRONG_NAMES, *WRONG_WINDOWS, *WRONG_PROCESSORS]
TAKEN = [*RIGHT_CALLS, *RIGHT_WINDOWS, *RIGHT_PROCESSORS]

ADDRESS = re.compile(r"0x[0-9a-f]{6,}")


@pytest.mark.parametrize(
    ("kind", "call"), [wrong[1:] for wrong in WRONG_CALLS], ids=[wrong[0] for wrong in WRONG_CALLS]
)
def test_wrong_call_is_a_named_error_with_line_and_hint(kind, call) -> None:
    with pytest.raises(EverstateError) as caught:
        call()
    error = caught.value
    assert isinstance(error, kind), f"{type(error).__name__}: {error}"
    assert error.hint, str(error)
    assert error.location is not None, str(error)
    assert Path(error.location.file).parent == Path(__file__).parent, str(error)
    assert not ADDRESS.search(str(error)), str(error)
    assert len(str(error)) < 1500


@pytest.mark.parametrize("call", [right[1] for right in TAKEN], ids=[right[0] for right in TAKEN])
def test_right_call_near_a_wrong_one_is_taken(call) -> None:
    call()


def test_tables_of_calls_are_large_enough() -> None:
    assert len({wrong[0] for wrong in WRONG_CALLS}) == len(WRONG_CALLS) >= 250
    assert len({right[0] for right in RIGHT_CALLS}) == len(RIGHT_CALLS) >= 60


def test_absent_names_leave_hasattr_copy_and_pickle_as_they_are() -> None:
    app = es.Service("shop")
    table = app.table("orders", key="id", schema={"id": str, "amount": float})
    assert not hasattr(table, "mapValues")
    assert getattr(table, "mapValues", None) is None
    assert not hasattr(table, "__array__")
    assert copy.copy(table).schema == table.schema
    assert copy.deepcopy(table.group_by("amount"))._by.key == table.group_by("amount")._by.key
    assert pickle.loads(pickle.dumps(app)).name == "shop"
    assert not hasattr(es, "nothing_like_it")


def test_absent_name_is_an_attribute_error_with_a_suggestion() -> None:
    with pytest.raises(AttributeError) as caught:
        es.Service("shop").tabel("orders")
    assert isinstance(caught.value, AbsentError)
    assert "Did you mean 'table'?" in str(caught.value)
