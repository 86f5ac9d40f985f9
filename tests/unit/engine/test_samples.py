from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

import everstate as es
from everstate import col
from everstate.engine import samples
from everstate.engine.folder import OutputFolder
from everstate.generations.generation import Generation, Status
from everstate.log.opening import open_log
from everstate.topology.fingerprints import print_unit


def unit(factor=2, on_error="dead-letter"):
    app = es.Service("sampled", on_error=on_error)
    rows = app.table("in", key="id", schema={"id": str, "n": int}).with_columns(n=col("n") * factor)
    rows.group_by("n").agg(count=es.count()).to("out")
    return app.units()[0]


@pytest.fixture
def log(tmp_path):
    log = open_log(tmp_path / "log")
    log.create_topic("in")
    yield log
    log.close()


@pytest.fixture
def folder(tmp_path):
    return OutputFolder(tmp_path / "state")


def generation(**libraries):
    described = print_unit(unit(), policy="dead-letter", settings={})
    described = replace(described, libraries={**described.libraries, **libraries})
    facts = {"fingerprint": "f", "shards": 1, "initial": {}, "code": "", "policy": "dead-letter"}
    return Generation(number=1, status=Status.ACTIVE, description=described.to_json(), **facts)


def send(log, *values):
    keys = [f"k{number}".encode() for number in range(len(values))]
    log.append("in", pl.DataFrame({"key": keys, "value": list(values)}, schema={"key": pl.Binary, "value": pl.Binary}))


def test_sample_of_the_same_meaning_agrees_and_of_another_does_not(log, folder):
    send(log, b'{"n": 1}', b'{"n": 2}', b"bad", None, b'{"n": 2}')
    samples.keep(folder, unit(), generation(), log)
    assert samples.mismatch(folder, unit(), "dead-letter") == ""
    assert samples.mismatch(folder, unit(factor=3), "dead-letter") == "a sample of 5 records gives another result"
    assert "fails" in samples.mismatch(folder, unit(), "fail")


def test_sample_is_taken_once_and_only_with_the_libraries_of_the_generation(log, folder):
    samples.keep(folder, unit(), generation(), log)
    assert not folder.sample_file.exists()  # there is nothing to sample yet
    send(log, b'{"n": 1}')
    samples.keep(folder, unit(), generation(polars="0.1"), log)
    assert not folder.sample_file.exists()
    samples.keep(folder, unit(), generation(), log)
    before = folder.sample_file.read_bytes()
    send(log, b'{"n": 7}')
    samples.keep(folder, unit(factor=9), generation(), log)
    assert folder.sample_file.read_bytes() == before


def test_mismatch_without_a_sample_is_none(folder):
    assert samples.mismatch(folder, unit(), "skip") == ""


def test_sample_is_evaluated_without_side_effects(log, folder):
    seen = []
    app = es.Service("sampled")
    app.stream("in", key="id", schema={"n": int}).peek(seen.append).to("out")
    send(log, b'{"n": 1}')
    samples.keep(folder, app.units()[0], generation(), log)
    assert folder.sample_file.exists()
    assert seen == []
