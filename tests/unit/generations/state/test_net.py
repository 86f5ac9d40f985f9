"""What the samples of generations say of a service that is planned."""

from __future__ import annotations

import json
import subprocess

import polars as pl
import pytest

import everstate as es
from everstate.engine.spark_run import SparkRun
from everstate.fingerprints.prints import UnitPrint
from everstate.generations.deploy import transitions
from everstate.generations.deploy.outputs import create_topics
from everstate.generations.registry import Registry
from everstate.generations.state import samples
from everstate.generations.state.folder import OutputFolder
from everstate.log.opening import open_log
from everstate.plan.differences import Category


@es.declare(version="1")
def outside(path):
    """Something that nothing can see into."""
    return int(subprocess.run(["cat", path], check=True, capture_output=True).stdout)


def service(path="", factor=1):
    app = es.Service("svc", shards=1)
    rows = app.table("in", key="id", schema={"id": str, "n": int})
    if path:
        rows.map(lambda row: {"n": row["n"] * outside(path)}, schema={"n": int}).to("out")
    else:
        rows.map(lambda row: {"n": row["n"] * factor}, schema={"n": int}).to("out")
    return app


@pytest.fixture
def log(tmp_path):
    log = open_log(tmp_path / "log")
    log.create_topic("in")
    log.append("in", pl.DataFrame({"key": [b"a", b"b"], "value": [b'{"n": 1}', b'{"n": 2}'], "ts": [0, 0]}))
    yield log
    log.close()


def deploy(app, log):
    with SparkRun(app, log=log.url) as run:
        site = run.site
        create_topics(app.units(), log, app.on_error)
        site.leases.take_publishing()
        site.leases.take_building()
        transitions.begin(run.plan(), "out", site)
        sample(app, log, site.home)


def sample(app, log, home):
    generation = Registry(log, "svc").read("out").active
    folder = OutputFolder(home / "out" / generation.name)
    folder.sample_file.unlink(missing_ok=True)
    samples.keep(folder, app.units()[0], generation, log)
    return home


def planned(app, log):
    with SparkRun(app, log=log.url) as run:
        site = run.site
        return run.plan().plan.action("out"), site.home


def note_missed(log, step):
    """As if the active generation had been made because of a step."""
    known = json.loads(log.get_meta("svc", "generations/out"))
    known["generations"][0]["missed"] = step
    log.set_meta("svc", "generations/out", json.dumps(known))


def test_plan_finds_what_the_fingerprint_missed_once_and_warns_when_it_happens_by_itself(log, tmp_path):
    file = tmp_path / "value"
    file.write_text("2")
    app = service(str(file))
    deploy(app, log)
    assert planned(app, log)[0].kind == "nothing"
    file.write_text("3")
    action, home = planned(app, log)
    assert (action.kind, action.differences[0].category) == ("recalculate", Category.MISSED)
    assert "test_net.py:" in action.differences[0].location
    # The generation that it leads to; then the value changes once more.
    note_missed(log, "in/map")
    sample(app, log, home)
    assert planned(app, log)[0].kind == "nothing"
    file.write_text("4")
    action, _ = planned(app, log)
    assert action.kind == "nothing"
    assert "same records again" in action.warnings[0]
    assert "--recalculate out" in action.warnings[0]


def test_plan_finds_every_change_of_code_that_the_fingerprint_misses(log, monkeypatch):
    blind = property(lambda self: repr([(node.name, node.operation) for node in self.nodes]))
    monkeypatch.setattr(UnitPrint, "fingerprint", blind)
    deploy(service(), log)
    note_missed(log, "in/map")  # its archived code still gives what it gave, so this is a change
    assert planned(service(), log)[0].kind == "nothing"
    action, _ = planned(service(factor=2), log)
    assert (action.kind, action.differences[0].node, action.warnings) == ("recalculate", "in/map", ())


def test_samples_are_evaluated_once_by_a_process_that_plans_several_times(log, monkeypatch):
    deploy(service(), log)
    calls = []
    known = samples.mismatch
    monkeypatch.setattr(samples, "mismatch", lambda *given: calls.append(1) or known(*given))
    with SparkRun(service(), log=log.url) as run:
        for _ in range(3):
            run.plan()
    assert len(calls) == 1
