"""Whatever happens to the files of a log: it gives the right records, or a named error."""

from __future__ import annotations

import random
import shutil
import signal
import sqlite3
from collections import Counter
from dataclasses import asdict, replace

import polars as pl
import pytest

from everstate.errors import EverstateError, ManifestDamagedError
from everstate.log import Commit, EmbeddedLog, TopicConfig, combined_digest
from tests.figures import DAMAGED

NOW_MS = 1_700_000_000_000
MANIFEST = ("manifest.db", "manifest.db-wal", "manifest.db-shm", "manifest.count", "identity.json")


def clock():
    return NOW_MS


def records(*rows):
    return pl.DataFrame(rows, schema={"key": pl.Binary, "value": pl.Binary, "ts": pl.Int64}, orient="row")


def batch(log, lease, number, **changes):
    staged = log.stage_all("table", records((b"all", b"%d" % number, 5), (b"k%d" % number, b"v", 5)))
    identity = {
        "service": "shop",
        "output": "table",
        "generation": "1",
        "query_id": "q",
        "batch_id": number,
        "start": {"orders": {0: 2 * number, 1: 3 * number}},
        "end": {"orders": {0: 2 * number + 2, 1: 3 * number + 3}},
        "digest": combined_digest(staged),
        "token": lease.token,
    }
    return Commit(**{**identity, **changes}), staged


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """The same log twice: closed in order, and as a killed process leaves it, with its last transactions unmerged."""
    root = tmp_path_factory.mktemp("originals")
    log = EmbeddedLog(root / "live", clock=clock)
    log.create_topic("orders", TopicConfig(partitions=2, retention_ms=10_000_000))
    log.create_topic("table", TopicConfig(compact=True))
    for number in range(6):
        rows = [(b"key-%d" % i, b"%d-%d" % (number, i), NOW_MS + i) for i in range(5)]
        log.append("orders", records(*rows))
    lease = log.acquire("shop")
    for number in range(3):
        log.commit(*batch(log, lease, number))
    log.commit(*batch(log, lease, 0, generation="2", query_id="q2", kind="closed"))
    log.set_meta("shop", "generations/table", '{"generations": [1, 2], "active": "1"}')
    log.compact("table")
    shutil.copytree(root / "live", root / "killed")
    log.close()
    (root / "live").rename(root / "closed")
    return {name: root / name for name in ("closed", "killed")}


def life(folder):
    """All that the log says, and what it says after some more has happened to it."""
    log = EmbeddedLog(folder, clock=clock)
    try:
        before = told(log)
        lease = log.acquire("shop", take_over=True)
        log.append("orders", records((b"key-1", b"later", NOW_MS)))
        log.commit(*batch(log, lease, 3))
        log.set_meta("shop", "more", "1")
        log.compact("table")
        log.compact("orders")
        return before, lease.token, told(log)
    finally:
        log.close()


def told(log):
    topics = log.topics()
    infos = [asdict(replace(log.describe(topic), id="")) for topic in topics]
    rows = [
        log.read(topic, partition, log.begin_offsets([topic])[topic][partition], appended=True).rows()
        for topic in topics
        for partition in log.describe(topic).start
    ]
    commits = [log.last_commit("shop", "table", generation) for generation in (None, "1", "2")]
    holder = log.holder("shop")
    return topics, infos, rows, commits, list(log.order("shop", "table", ["orders"])), log.metas("shop"), holder


def flip(path, rng):
    content = bytearray(path.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def flip_many(path, rng):
    for _ in range(rng.randrange(2, 20)):
        flip(path, rng)


def cut(path, rng):
    path.write_bytes(path.read_bytes()[: rng.randrange(path.stat().st_size)])


def blank(path, rng):
    content = bytearray(path.read_bytes())
    start = rng.randrange(len(content)) // 4096 * 4096
    content[start : start + 4096] = bytes(min(4096, len(content) - start))
    path.write_bytes(content)


def remove(path, rng):
    del rng
    path.unlink()


def outcome(folder, expected):
    signal.alarm(120)  # one that never ends fails the test instead of holding it up
    try:
        found = life(folder)
    except EverstateError as error:
        return "named" if error.hint else "without a hint"
    finally:
        signal.alarm(0)
    assert found == expected
    return "right"


def damaged(original, target, rng):
    shutil.copytree(original, target)
    files = [target / name for name in MANIFEST if (target / name).exists() and (target / name).stat().st_size]
    files += [files[0]] * 4 + sorted(target.rglob("*.arrows"))[: rng.choice([0, 2])]
    path = rng.choice(files)
    way = rng.choice([flip, flip, flip, flip_many, cut, blank, remove])
    way(path, rng)
    return path.name if path.name in MANIFEST else "segment", way.__name__


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "cases"), [(1, 60), *(pytest.param(seed, 1000, marks=pytest.mark.long) for seed in (2, 3, 4))]
)
def test_log_damaged_at_random_is_right_or_named(originals, tmp_path, seed, cases):
    rng = random.Random(seed)
    expected = {}
    for name, original in originals.items():
        shutil.copytree(original, tmp_path / name)
        expected[name] = life(tmp_path / name)
    assert expected["closed"] == expected["killed"]
    seen = Counter()
    for number in range(cases):
        name = rng.choice(sorted(originals))
        folder = tmp_path / f"case-{number}"
        what = damaged(originals[name], folder, rng)
        try:
            seen[f"{' '.join(what)} {outcome(folder, expected[name])}"] += 1
        except BaseException as error:
            raise AssertionError(f"seed {seed}, case {number}: {what} of the {name} log in {folder}") from error
        shutil.rmtree(folder)
    DAMAGED.update(seen)
    assert {what.rpartition(" ")[2] for what in seen} == {"named", "right"}


@pytest.mark.parametrize("table", ["documents", "commits", "segments", "topics", "partitions", "leases"])
def test_manifest_one_flipped_bit_in_a_row_is_named(originals, tmp_path, table):
    shutil.copytree(originals["closed"], tmp_path / "log")
    database = sqlite3.connect(tmp_path / "log" / "manifest.db")
    triggers = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")]
    texts = [row[0] for row in database.execute("SELECT sql FROM sqlite_master WHERE type = 'trigger'")]
    for name in triggers:
        database.execute(f"DROP TRIGGER {name}")
    number = {"documents": "value = value || ' '", "commits": "batch_id = batch_id + 1", "segments": "records = 3"}
    database.execute(f"UPDATE {table} SET {number.get(table, 'seal = seal + 1')}")
    for text in texts:
        database.execute(text)
    database.commit()
    database.close()
    with pytest.raises(ManifestDamagedError, match="does not match its checksum"):
        EmbeddedLog(tmp_path / "log")
