"""Random histories on a real broker, compared with the same model as on every other log."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.contract.conftest import KafkaBench
from tests.contract.test_model import STEPS, check_history
from tests.effort import examples

pytestmark = [pytest.mark.kafka, pytest.mark.long]


@settings(deadline=None, max_examples=examples(40, 8))
@given(STEPS)
def test_log_random_histories_equal_the_model(broker, tmp_path_factory, steps):
    check_history(KafkaBench.make(tmp_path_factory), steps)
