from __future__ import annotations

import pytest

import everstate as es
from everstate.engine.spark_run import SparkRun
from everstate.errors import ConfigurationError
from everstate.generations.deploy.options import Wishes
from everstate.plan.actions import Plan
from everstate.plan.document import to_json
from everstate.plan.facts import Options

PLAN = Plan("svc", (), Options(recalculate=("a",), keep_topic=True, shards=5))


def test_wishes_are_told_apart_from_settings_by_their_names():
    run = SparkRun(es.Service("svc", shards=2), approve=True, recalculate="a", accept_truncated=["b"], cores=1)
    assert (run.wishes.approve, run.wishes.recalculate) == (True, ("a",))
    assert run.wishes.accept_truncated == ("b",)
    assert (run.settings.cores, run.settings.shards) == (1, 2)
    with pytest.raises(ConfigurationError, match="unknown setting aprove"):
        SparkRun(es.Service("svc"), aprove=True)


def test_plan_brings_the_options_that_it_was_made_with(tmp_path):
    (tmp_path / "plan.json").write_text(to_json(PLAN))
    run = SparkRun(es.Service("svc", shards=2), plan=str(tmp_path / "plan.json"), file="svc.py")
    assert run.wishes.options(run.settings.shards) == Options(
        recalculate=("a",), keep_topic=True, shards=5, file="svc.py"
    )
    assert run.settings.shards == 5


def test_plan_allows_nothing_beside_it():
    with pytest.raises(ConfigurationError, match="a plan already says what happens"):
        Wishes(plan=PLAN, keep_topic=True)
