"""Every part of a checkpoint, missing or damaged alone: named at start, never taken for empty state."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

import everstate as es
from everstate import col
from everstate.errors import CheckpointDamagedError, CheckpointMissingError, StateError
from everstate.generations.deploy.planning import make_plan, unchanged
from everstate.log.opening import open_log
from everstate.plan.facts import Options
from tests.sites import site_of
from tests.spark_session import Topics

#: One process for all: what they damage takes longer to build than to try.
pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("damage")]

BATCHES = 4


def service():
    app = es.Service("damaged", shards=2)
    payments = app.table("payments", key="id", schema={"id": str, "account": str, "amount": int})
    payments.group_by("account").agg(total=col("amount").sum()).to("sums")
    return app


@pytest.fixture(scope="module")
def built(spark, tmp_path_factory):
    """A log with a service that has run four batches and was stopped in an orderly way."""
    from everstate.engine.commands.runner import Runner

    path = tmp_path_factory.mktemp("built") / "log"
    log = open_log(path)
    topics = Topics(log)
    topics.create("payments", partitions=1, compact=True)
    topics.send("payments", [(f"p{n}", {"account": f"a{n % 5}", "amount": n}) for n in range(20 * BATCHES)])
    Runner(service(), log=log.url, session=spark, show=False, cores=2, max_records=20).run(once=True)
    log.close()
    return path


@pytest.fixture
def copy(built, tmp_path):
    path = tmp_path / "log"
    shutil.copytree(built, path)
    return path


def start(path):
    """What a run does before Spark is started."""
    log = open_log(path)
    try:
        app = service()
        with site_of(app, log) as site:
            return unchanged(make_plan(app, site, Options()), site)
    finally:
        log.close()


def output_folder(path):
    return path / "state" / "damaged" / "sums" / "1"


def newest(folder, suffix=""):
    return max((p for p in folder.glob(f"[0-9]*{suffix}")), key=lambda p: int(p.name.split("_")[0].split(".")[0]))


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x10
    path.write_bytes(bytes(content))


def truncate(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


PARTS = {
    "output.json": lambda c: c.parent / "output.json",
    "metadata": lambda c: c / "metadata",
    "first offsets": lambda c: c / "offsets" / "0",
    "offsets in the middle": lambda c: c / "offsets" / "2",
    "last offsets": lambda c: newest(c / "offsets"),
    "commit in the middle": lambda c: c / "commits" / "1",
    "last commit": lambda c: newest(c / "commits"),
    "last changes of the first step": lambda c: newest(c / "state/0/0", ".changelog"),
    "last changes of the second step": lambda c: newest(c / "state/1/1", ".changelog"),
    "changes in the middle": lambda c: next((c / "state/0/1").glob("3_*.changelog")),
    "snapshot": lambda c: newest(c / "state/0/0", ".zip"),
    "description of a step": lambda c: c / "state/0/_metadata/v2/0",
    "schema of a step": lambda c: next((c / "state/1/_stateSchema/default").glob("0_*")),
}
FOLDERS = ["", "offsets", "commits", "state", "state/0", "state/1/0", "state/0/_metadata"]


def test_undamaged_state_is_accepted(copy):
    assert start(copy)["sums"].generation.shards == 2


#: Without the snapshot of the first version, Spark replays the changes from the beginning.
NEEDED = [part for part in PARTS if part != "snapshot"]


@pytest.mark.parametrize("part", NEEDED)
def test_file_missing_is_named(copy, part):
    path = PARTS[part](output_folder(copy) / "checkpoint")
    remove(path)
    with pytest.raises(CheckpointMissingError) as caught:
        start(copy)
    named = path.name if part not in {"description of a step", "schema of a step"} else path.parents[1].name
    assert named in str(caught.value)
    assert "--recalculate" in str(caught.value)


@pytest.mark.parametrize("damage", [flip, truncate])
@pytest.mark.parametrize("part", PARTS)
def test_file_damaged_is_named(copy, part, damage):
    path = PARTS[part](output_folder(copy) / "checkpoint")
    damage(path)
    with pytest.raises(StateError) as caught:
        start(copy)
    assert isinstance(caught.value, CheckpointDamagedError) or part == "output.json"
    assert path.name in str(caught.value)


@pytest.mark.parametrize("folder", FOLDERS)
def test_folder_missing_is_named(copy, folder):
    remove(output_folder(copy) / "checkpoint" / folder)
    with pytest.raises(CheckpointMissingError):
        start(copy)


def test_everything_missing_is_not_taken_for_a_new_output(copy):
    remove(output_folder(copy))
    with pytest.raises(CheckpointMissingError, match="has published batch 3"):
        start(copy)


@pytest.fixture(scope="module")
def long_built(spark, tmp_path_factory):
    """A log with a service whose state has snapshots of later versions than the first."""
    from everstate.engine.commands.runner import Runner

    path = tmp_path_factory.mktemp("long") / "log"
    log = open_log(path)
    topics = Topics(log)
    topics.create("payments", partitions=1, compact=True)
    runner = Runner(service(), log=log.url, session=spark, show=False, cores=2, trigger=0.1)
    runner.start()
    stores = output_folder(path) / "checkpoint" / "state"
    deadline = time.monotonic() + 900
    sent = 0
    # Spark uploads snapshots once a minute. Some batches more, and the newest version is not a snapshot itself.
    while time.monotonic() < deadline and not _snapshots_between(stores):
        topics.send("payments", [(f"p{sent}", {"account": f"a{sent % 5}", "amount": sent})])
        sent += 1
        time.sleep(0.3)
    runner.stop()
    log.close()
    assert _snapshots_between(stores), "Spark has uploaded no later snapshot"
    return path, sent


def _snapshots_between(stores):
    """Whether every store has a snapshot after the first version, and changes after that."""
    shards = [shard for shard in stores.glob("[01]/[01]") if shard.is_dir()]
    found = [
        (version(newest(shard, ".zip")), version(newest(shard, ".changelog")))
        for shard in shards
        if list(shard.glob("[0-9]*.zip")) and list(shard.glob("[0-9]*.changelog"))
    ]
    return len(found) == 4 and all(1 < snapshot < changes - 2 for snapshot, changes in found)


def version(path):
    return int(path.name.split("_")[0])


@pytest.mark.long
@pytest.mark.parametrize("damage", [remove])  # each takes minutes; cut and flipped files are told by their checksums
def test_every_file_damaged_in_turn_is_named_or_not_needed(spark, long_built, tmp_path, damage):
    from everstate.engine.commands.runner import Runner

    built, sent = long_built
    path = tmp_path / "log"
    shutil.copytree(built, path)
    files = sorted(file for file in (output_folder(path) / "checkpoint").rglob("*") if file.is_file())
    harmless = [file for file in files if file.stat().st_size and not _refused(path, file, damage)]
    print(f"{damage.__name__}: {len(files)} files of a checkpoint in turn, {len(harmless)} of them not needed")
    log = open_log(path)
    topics = Topics(log)
    topics.send("payments", [("last", {"account": "a0", "amount": 7})])
    Runner(service(), log=log.url, session=spark, show=False, cores=2).run(once=True)
    sums = {f"a{n}": {"total": sum(range(n, sent, 5))} for n in range(5)}
    sums["a0"]["total"] += 7
    assert topics.table("sums") == sums
    log.close()


def _refused(path, file, damage):
    """Whether a start on a checkpoint with this damage ends with a named error; the file is then as before.

    Where it does not, the damage stays: what is not needed together must not be needed by Spark.
    """
    content = file.read_bytes()
    damage(file)
    try:
        start(path)
    except StateError as error:
        file.write_bytes(content)
        return "--recalculate" in str(error)
    return False


def test_rocksdb_table_missing_is_named(copy):
    tables = list((output_folder(copy) / "checkpoint" / "state").rglob("*.sst"))
    if not tables:
        pytest.skip("Spark has uploaded no table yet")
    remove(tables[0])
    with pytest.raises(CheckpointMissingError, match=tables[0].name):
        start(copy)


def test_checkpoint_of_an_earlier_moment_is_named(copy):
    checkpoint = output_folder(copy) / "checkpoint"
    for name in ("offsets", "commits"):
        for batch in ("2", "3"):
            remove(checkpoint / name / batch)
    with pytest.raises(CheckpointMissingError, match="is missing"):
        start(copy)


def test_checkpoint_of_another_query_is_named(copy):
    metadata = output_folder(copy) / "checkpoint" / "metadata"
    metadata.write_text('{"id":"00000000-0000-0000-0000-000000000000"}')
    Path(metadata.parent / ".metadata.crc").unlink()
    with pytest.raises(CheckpointMissingError, match="not the one that published"):
        start(copy)


def test_crash_between_publishing_and_completing_a_batch_is_no_damage(copy):
    folder = output_folder(copy)
    remove(folder / "stopped.json")
    remove(newest(folder / "checkpoint" / "commits"))
    assert start(copy)
