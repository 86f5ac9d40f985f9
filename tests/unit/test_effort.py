"""How many examples random tests try at each level."""

from __future__ import annotations

import pytest

from tests.effort import SHARES, examples


def test_examples_full_level_tries_the_full_number():
    assert examples(200, 30, level="full") == 200


@pytest.mark.parametrize("level", ["quick", "usual"])
def test_examples_other_levels_try_a_share_of_the_usual_number(level):
    assert examples(200, 40, level=level) == 40 * SHARES[level]
    assert examples(40, level=level) == 40 * SHARES[level]


@pytest.mark.parametrize("level", SHARES)
def test_examples_a_small_number_is_never_none(level):
    assert examples(1, level=level) == 1
