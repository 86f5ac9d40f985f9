from __future__ import annotations

from everstate.generations.compare.sampling import chosen, sample
from everstate.plan.preview import FieldChange, Sample


def rows(count: int) -> list[tuple[bytes, bytes, bytes]]:
    return [(f"k{n:03}".encode(), b'{"total": 10}', f'{{"total": {10 + n}}}'.encode()) for n in range(count)]


def test_samples_are_the_largest_changes_then_some_by_chance() -> None:
    found = chosen(rows(100))
    assert [key for key, _, _ in found[:3]] == [b"k099", b"k098", b"k097"]
    assert len(found) == 5
    assert [key for key, _, _ in found[3:]] != [b"k000", b"k001"]


def test_samples_do_not_depend_on_the_order_of_rows() -> None:
    assert chosen(reversed(rows(100))) == chosen(rows(100))


def test_samples_of_what_is_no_number_are_chosen_all_the_same() -> None:
    odd = [(b"a", None, b"text"), (b"b", b"NaN", b"1"), (b"c", b"1" * 400, b"2"), (b"d", b"\xff", None)]
    assert sorted(chosen(odd)) == sorted(odd)  # type: ignore[type-var]


def test_sample_of_fields_shows_those_that_differ() -> None:
    found = sample((b"ada", b'{"total": 1.5, "orders": 2, "gone": true}', b'{"orders": 2, "total": 3, "came": "x"}'))
    assert found.fields == (
        FieldChange("total", "1.5", "3"),
        FieldChange("gone", "true", None),
        FieldChange("came", None, '"x"'),
    )
    assert found.equal == 1


def test_sample_of_a_long_value_is_cut_unless_all_of_it_is_wanted() -> None:
    row = (b"k", None, b'"' + b"x" * 300 + b'"')
    assert sample(row).new == '"' + "x" * 199 + "..."
    assert sample(row, longest=None) == Sample("k", None, '"' + "x" * 300 + '"')
