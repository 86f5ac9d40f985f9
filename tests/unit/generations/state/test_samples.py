from __future__ import annotations

import itertools
import stat
import time
from dataclasses import replace

import polars as pl
import pytest

import everstate as es
from everstate import col
from everstate.fingerprints import print_unit
from everstate.generations.generation import Generation, Status
from everstate.generations.state import samples
from everstate.generations.state.folder import OutputFolder
from everstate.generations.state.sample_choice import BYTES, RECORDS, taken
from everstate.log.descriptions import TopicConfig
from everstate.log.opening import open_log
from everstate.log.records import HEADERS

SCHEMA = {"id": str, "n": int}


def of(build, **options):
    """The unit of a service with one source and one output."""
    app = es.Service("sampled", **options)
    build(app).to("out")
    return app.units()[0]


def totals(factor=2):
    def build(app):
        rows = app.table("in", key="id", schema=SCHEMA).with_columns(n=col("n") * factor)
        return rows.group_by("n").agg(count=es.count())

    return of(build)


def priced(rate):
    """Versions that differ in a value, which a blind fingerprint would not see."""

    def multiplied(row):
        return {"n": row["n"] * rate}

    return of(
        lambda app: app.table("in", key="id", schema=SCHEMA).map(multiplied, schema={"n": int}).filter(col("n") > 3)
    )


@pytest.fixture
def log(tmp_path):
    log = open_log(tmp_path / "log")
    log.create_topic("in")
    yield log
    log.close()


@pytest.fixture
def folder(tmp_path):
    return OutputFolder(tmp_path / "state")


def generation(unit, **libraries):
    described = print_unit(unit, policy="dead-letter", settings={})
    described = replace(described, libraries={**described.libraries, **libraries})
    facts = {"fingerprint": described.fingerprint, "shards": 1, "initial": {}, "code": "", "policy": "dead-letter"}
    return Generation(number=1, status=Status.ACTIVE, description=described.to_json(), **facts)


def send(log, *values, topic="in", keys=None):
    keys = keys or [f"k{number}".encode() for number in range(len(values))]
    frame = pl.DataFrame({"key": keys, "value": list(values)}, schema={"key": pl.Binary, "value": pl.Binary})
    log.append(topic, frame)


def kept(folder, unit, log):
    samples.keep(folder, unit, generation(unit), log)
    return samples.read(folder)


def test_sample_of_the_same_meaning_agrees_and_of_another_names_the_first_step_that_differs(log, folder):
    send(log, b'{"n": 1}', b'{"n": 2}', b"bad", None, b'{"n": 2}')
    sample = kept(folder, totals(), log)
    assert sample.records == 5
    assert samples.mismatch(sample, totals()) is None
    found = samples.mismatch(sample, totals(factor=3))
    assert (found.what, found.step) == ("a sample of 5 records gives a different result", "in/with_columns")
    assert "test_samples.py:" in found.location


def test_change_behind_equal_fingerprints_is_found_although_the_output_stays_the_same(log, folder):
    send(log, b'{"n": 1}', b'{"n": 1}')
    sample = kept(folder, priced(1), log)
    assert samples.mismatch(sample, priced(1)) is None
    assert samples.mismatch(sample, priced(2)).step == "in/map"  # 1 and 2 are both filtered out


def test_sample_is_taken_again_when_its_topics_have_doubled_and_the_output_agrees(log, folder):
    unit = totals()
    assert kept(folder, unit, log) is None  # there is nothing to sample yet
    send(log, b'{"n": 1}', b'{"n": 2}')
    samples.keep(folder, unit, generation(unit, polars="0.1"), log)
    assert samples.read(folder) is None
    assert kept(folder, unit, log).records == 2
    send(log, b'{"n": 7}')
    assert kept(folder, unit, log).records == 2
    send(log, b'{"n": 7}')
    samples.keep(folder, totals(factor=9), generation(unit), log)
    assert samples.read(folder).records == 2  # what contradicts the sample does not take its place
    assert kept(folder, unit, log).records == 4


def test_sample_of_an_earlier_fingerprint_is_replaced(log, folder):
    send(log, b'{"n": 1}')
    kept(folder, totals(), log)
    assert kept(folder, totals(factor=5), log).fingerprint == generation(totals(factor=5)).fingerprint


def test_sample_under_other_libraries_counts_by_the_output_alone(log, folder):
    send(log, b'{"n": 1}')
    sample = replace(kept(folder, priced(1), log), libraries={"polars": "0.1"})
    assert samples.mismatch(sample, priced(2)) is None
    found = samples.mismatch(sample, priced(4))
    assert (found.libraries, found.step) == (True, "in/map")


def test_sample_is_evaluated_without_side_effects_and_its_file_is_private(log, folder):
    seen = []
    unit = of(lambda app: app.stream("in", key="id", schema={"n": int}).peek(seen.append))
    send(log, b'{"n": 1}')
    assert kept(folder, unit, log).records == 1
    assert seen == []
    assert stat.S_IMODE(folder.sample_file.stat().st_mode) == 0o600


def test_step_that_is_not_deterministic_is_named_and_is_no_evidence(log, folder, caplog):
    counter = itertools.count()

    def build(app):
        drawn = app.stream("in", key="id", schema={"n": int}).filter(col("n") > 0)
        return drawn.map(es.declare(version="1")(lambda row: {"n": next(counter)}), schema={"n": int}).filter(
            col("n") >= 0
        )

    unit = of(build)
    send(log, b'{"n": 1}', b'{"n": 2}', b'{"n": 3}')
    samples.keep(folder, unit, generation(totals()), log)
    sample = samples.read(folder)
    assert "in/map" in caplog.text
    assert "is not deterministic" in caplog.text
    assert sample.unsettled == ["in/map", "in/filter#2", "out/output"]
    assert sample.contradicts == "in/map"
    assert samples.mismatch(sample, unit) is None


@pytest.mark.parametrize("declared", [{"clock": True}, {"random": True}])
def test_step_that_may_differ_as_declared_is_no_evidence(log, folder, declared, caplog):
    def version(rate):
        call = es.declare(version="1", **declared)(lambda row: {"n": row["n"] * rate})
        return of(lambda app: app.stream("in", key="id", schema={"n": int}).map(call, schema={"n": int}))

    send(log, b'{"n": 1}')
    sample = kept(folder, version(1), log)
    assert samples.mismatch(sample, version(2)) is None
    assert "deterministic" not in caplog.text
    assert sample.contradicts == ""


def test_output_that_asks_over_the_network_has_no_sample(log, folder):
    call = es.declare(network="rates of today")(lambda row: {"n": row["n"]})
    send(log, b'{"n": 1}')
    assert kept(folder, of(lambda app: app.stream("in", schema={"n": int}).map(call, schema={"n": int})), log) is None


def test_function_that_fails_gives_the_same_digest_each_time_and_another_once_it_does_not(log, folder):
    def version(limit):
        @es.declare(version="1")
        def checked(row):
            if row["n"] > limit:
                raise ValueError(object())
            return {"n": row["n"]}

        return of(lambda app: app.stream("in", key="id", schema={"n": int}).map(checked, schema={"n": int}))

    send(log, *(b'{"n": %d}' % n for n in range(10)))
    sample = kept(folder, version(5), log)
    assert samples.mismatch(sample, version(5)) is None
    assert samples.mismatch(sample, version(6)).step == "in/map"


def test_slow_output_has_a_small_sample(log, folder, monkeypatch):
    monkeypatch.setattr(samples, "_SECONDS", 0.02)

    @es.declare(version="1")
    def slow(row):
        time.sleep(0.05)
        return {"n": row["n"]}

    unit = of(lambda app: app.stream("in", key="id", schema={"n": int}).map(slow, schema={"n": int}))
    send(log, *(b'{"n": 1}' for _ in range(500)))
    assert 0 < kept(folder, unit, log).records < 150


def test_sample_holds_whole_histories_from_all_over_the_topic(tmp_path):
    log = open_log(tmp_path / "log")
    log.create_topic("in", TopicConfig(partitions=3))
    for round_ in range(30):
        send(log, *(b'{"n": %d}' % (round_ * 1000 + n) for n in range(1000)))
    batches = taken(log, totals())
    rows = pl.concat([piece[2].with_columns(p=piece[1]) for batch in batches for piece in batch])
    assert 0.8 * RECORDS < rows.height <= RECORDS
    assert rows["p"].n_unique() == 3
    # 30,000 records are more than are looked at: ranges from the first records to the last.
    ends = log.end_offsets(["in"])["in"]
    assert all(rows.filter(pl.col("p") == p)["offset"].min() < 0.1 * end for p, end in ends.items())
    assert all(rows.filter(pl.col("p") == p)["offset"].max() > 0.9 * end for p, end in ends.items())
    assert rows.group_by("key").len()["len"].median() >= 10
    assert [sum(piece[2].height for piece in batch) for batch in batches] == sorted(
        sum(piece[2].height for piece in batch) for batch in batches
    )
    for batch in batches:
        for _, _, records in batch:
            assert records["offset"].is_sorted()
    log.close()


def test_sample_of_large_records_and_of_one_key_is_bounded(log):
    send(log, *(b'{"n": 1, "text": "%s"}' % (b"x" * 50_000) for _ in range(100)))
    send(log, b'{"n": 2, "text": "%s"}' % (b"x" * 500_000))
    send(log, *(b'{"n": 1}' for _ in range(5000)), keys=[b"one"] * 5000)
    rows = pl.concat([piece[2] for batch in taken(log, totals()) for piece in batch])
    assert rows["value"].bin.size().sum() <= BYTES
    assert rows.filter(pl.col("key") == b"one").height in {0, 100}


def test_sample_of_a_foreign_key_join_has_both_sides(tmp_path, folder):
    log = open_log(tmp_path / "log")
    for topic in ("orders", "people"):
        log.create_topic(topic)
    people = [f"p{n}".encode() for n in range(10_000)]
    send(log, *(b'{"name": "%d"}' % n for n in range(10_000)), topic="people", keys=people)
    orders = [b'{"person": "p%d"}' % n for n in range(10_000)]
    send(log, *orders, topic="orders", keys=[f"o{n}".encode() for n in range(10_000)])
    app = es.Service("sampled")
    left = app.table("orders", key="id", schema={"id": str, "person": str})
    right = app.table("people", key="person", schema={"person": str, "name": str})
    left.join(right, on="person").to("out")
    unit = app.units()[0]
    rows = [(topic, row) for batch in taken(log, unit) for topic, _, frame in batch for row in frame.iter_rows()]
    sampled = {row[1].decode()[12:-2] for topic, row in rows if topic == "orders"}
    assert len(sampled) == RECORDS
    assert sampled <= {row[0].decode() for topic, row in rows if topic == "people"}
    log.close()


def test_sample_keeps_what_records_say_of_time(log, folder):
    said = [{"name": "es-st", "value": b"9,5"}]
    records = pl.DataFrame({"key": [b"a", b"b"], "value": [b"{}", None], "ts": [7, 8], "offset": [0, 1]})
    batches = [[("in", 0, records.with_columns(pl.Series("headers", [said, None], dtype=HEADERS)))]]
    sample = samples.Sample(fingerprint="f", libraries={}, seen=2, batches=batches, steps={}, unsettled=[])
    folder.write_sample(samples.document(sample))
    ((_, _, kept),) = samples.read(folder).batches[0]
    assert kept["headers"].to_list() == [said, None]


def test_mismatch_of_a_sample_of_an_older_format_is_unknown(folder):
    from everstate.generations.state.folder import write_document

    write_document(folder.sample_file, {"inputs": {"in": []}, "digest": "x"})
    assert samples.read(folder) is None
