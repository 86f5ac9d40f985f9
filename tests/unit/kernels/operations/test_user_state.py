import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everstate.errors import EverstateError, StateValueError
from everstate.kernels.operations.user_state import MAX_DEPTH, Held, decode, encode

ZONES = st.none() | st.just(UTC) | st.timedeltas(timedelta(hours=-23), timedelta(hours=23)).map(timezone)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**200), 2**200)
    | st.floats()
    | st.text()
    | st.text(alphabet="\ud800\u0000$é")
    | st.binary()
    | st.dates()
    | st.datetimes(timezones=ZONES)
    | st.decimals()
)
NAMES = st.text() | st.sampled_from(["$dict", "$bytes", "$date", "$x"])
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(NAMES, inner), max_leaves=10)


def stored(value):
    """The value after a micro-batch has ended and another has begun."""
    held = Held(b"")
    with held.opened() as state:
        state.set("x", value)
    with Held(held.blob()).opened() as state:
        return state.get("x")


@given(VALUES)
def test_state_any_supported_value_comes_back_the_same(value):
    held = Held(b"")
    with held.opened() as state:
        state.set("x", value)
        at_once = state.get("x")
    later = stored(value)
    assert repr(later) == repr(at_once)
    assert encode(decode(held.blob())) == held.blob()


def test_state_get_of_absent_key_gives_the_default():
    with Held(b"").opened() as state:
        assert state.get("n") is None
        assert state.get("n", 3) == 3
        assert not state.exists("n")


def test_state_null_value_exists_and_hides_the_default():
    with Held(b"").opened() as state:
        state.set("n", None)
        assert state.exists("n")
        assert state.get("n", 3) is None


def test_state_deleted_key_is_gone_and_deleting_again_is_silent():
    with Held(b"").opened() as state:
        state.set("n", 1)
        state.delete("n")
        state.delete("n")
        assert not state.exists("n")


def test_state_changing_a_value_got_or_set_does_not_change_the_state():
    items = [1, {"a": [2]}]
    with Held(b"").opened() as state:
        state.set("items", items)
        items[1]["a"].append(3)
        got = state.get("items")
        got.append(4)
        assert state.get("items") == [1, {"a": [2]}]


def test_state_equal_states_are_equal_bytes_whatever_the_order_of_setting():
    assert encode({"a": 1, "b": 2}) == encode({"b": 2, "a": 1})


def test_state_order_of_a_dict_is_kept():
    assert list(stored({"z": 1, "a": 2})) == ["z", "a"]


def test_state_zone_comes_back_as_its_offset():
    when = datetime(2024, 7, 1, 12, tzinfo=ZoneInfo("Europe/Berlin"))
    assert stored(when) == when
    assert stored(when).utcoffset() == timedelta(hours=2)
    assert stored(datetime(2024, 7, 1, tzinfo=ZoneInfo("UTC"))).tzinfo is UTC


def test_state_special_numbers_come_back():
    assert math.isnan(stored(math.nan))
    assert stored(-math.inf) == -math.inf
    assert str(stored(Decimal("1.500"))) == "1.500"
    assert stored(date(2024, 2, 29)) == date(2024, 2, 29)


class Strange(str):
    __slots__ = ()


@pytest.mark.parametrize(
    "value", [(1, 2), {1, 2}, object(), Strange("x"), {1: 2}, [{"a": (1,)}], timedelta(1), 1j, bytearray(b"x"), 2**9000]
)
def test_state_unsupported_value_is_refused_at_set(value):
    with Held(b"").opened() as state:
        with pytest.raises(StateValueError, match=r"state\.set"):
            state.set("x", value)
        assert not state.exists("x")
    assert issubclass(StateValueError, EverstateError)
    assert issubclass(StateValueError, TypeError)


def test_state_refusal_names_the_place_and_the_type():
    with Held(b"").opened() as state, pytest.raises(StateValueError, match=r"state.set\('x'\)\['a'\]\[1\]: .* tuple"):
        state.set("x", {"a": [1, (2,)]})


def test_state_value_that_holds_itself_is_refused():
    loop: list = []
    loop.append(loop)
    with Held(b"").opened() as state, pytest.raises(StateValueError, match=str(MAX_DEPTH)):
        state.set("x", loop)


def test_state_key_that_is_not_text_is_refused():
    with Held(b"").opened() as state, pytest.raises(StateValueError, match="int"):
        state.get(1)


def test_state_used_after_its_row_is_refused():
    held = Held(b"")
    with held.opened() as state:
        pass
    with held.opened(), pytest.raises(StateValueError, match="has been processed"):
        state.set("x", 1)


def test_state_of_a_call_that_raises_is_undone():
    def fail(held):
        with held.opened() as state:
            state.set("a", 5)
            state.set("a", 6)
            state.delete("b")
            state.set("c", 7)
            raise ZeroDivisionError

    held = Held(encode({"a": 1, "b": 2}))
    with pytest.raises(ZeroDivisionError):
        fail(held)
    assert held.values == {"a": 1, "b": 2}
    assert not held.written


def test_state_that_became_empty_is_an_empty_blob():
    held = Held(encode({"a": 1}))
    with held.opened() as state:
        state.delete("a")
    assert held.written
    assert held.blob() == b""
