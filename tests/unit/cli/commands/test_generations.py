from __future__ import annotations

import json
import shutil

import pytest
from typer.testing import CliRunner

from everstate.cli.commands import generations
from everstate.cli.main import app
from everstate.engine.commands.inventory import Entry, Inventory
from everstate.errors import ConfigurationError, GenerationError, LeaseHeldError
from everstate.generations.generation import Status, build_lease
from everstate.generations.registry import Registry
from everstate.log.descriptions import TopicConfig
from everstate.log.opening import open_log
from tests.unit.cli.deployments import SERVICE, deploy, prepare, write


@pytest.fixture
def log(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log = open_log(tmp_path / ".everstate")
    log.create_topic("orders", TopicConfig(partitions=2, compact=True))
    yield log
    log.close()


@pytest.fixture
def file(tmp_path):
    return write(tmp_path / "shop_kept.py")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / ".everstate" / "state" / "shop" / "totals"


def run(*arguments):
    result = CliRunner(env={"COLUMNS": "240"}).invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None:
        raise result.exception
    return result.stdout


def statuses(log):
    return {g.number: g.status for g in Registry(log, "shop").read("totals").generations}


def test_generations_of_a_service_that_was_never_deployed_say_so(log, file):
    assert run("generations", file) == "Service shop has not been deployed on this log.\n"


def test_generations_on_a_log_that_counts_nothing_show_what_there_is_at_the_most():
    known = {"output": "totals", "status": "active", "since_ms": 0, "fingerprint": "f", "shards": 1, "state_bytes": 10}
    sizes = (
        {"topic_bytes": 20, "records": 3, "most_records": 3},
        {"topic_bytes": None, "records": None, "most_records": 9},
    )
    entries = tuple(Entry(number=number, **known, **more) for number, more in enumerate(sizes))
    _, counted, uncounted = generations._table(Inventory(entries, {}))
    assert counted.split()[-3:] == ["20", "B", "3"]
    assert uncounted.split()[-4:] == ["unknown", "at", "most", "9"]


def test_generations_show_status_and_size_of_each(log, file):
    deploy(file, log.url)
    prepare(file, log.url, least=5)
    header, first, second = run("generations", file).splitlines()
    assert header.split()[:3] == ["OUTPUT", "GENERATION", "STATUS"]
    assert first.split()[:3] == ["totals", "1", "active"]
    assert second.split()[:3] == ["totals", "2", "ready"]
    entries = json.loads(run("generations", file, "--json"))["generations"]
    assert [(entry["number"], entry["status"], entry["shards"]) for entry in entries] == [
        (1, "active", 2),
        (2, "ready", 2),
    ]
    assert all(entry["state_bytes"] > 0 for entry in entries)
    assert len({entry["fingerprint"] for entry in entries}) == 2


def test_audit_says_who_did_what_and_why(log, file):
    deploy(file, log.url)
    deploy(file, log.url, least=5)
    shown = run("generations", file, "--audit")
    assert "totals, generation 1: active, by " in shown
    assert "  first deployment\n" in shown
    assert "The setting least changed." in shown
    assert "0 new, 0 changed, 0 stale, 0 unchanged" in shown
    events = json.loads(run("generations", file, "--audit", "--json"))["audit"]["totals"]
    assert [event["what"] for event in events][-1] == "active"


def test_discard_gives_up_what_was_prepared(log, file, folder):
    deploy(file, log.url)
    prepare(file, log.url, least=5)
    assert "would be discarded" in run("discard", file, "totals", "--dry-run")
    assert (folder / "2").is_dir()
    assert run("discard", file, "totals") == "Generation 2 of totals, which was ready, is discarded.\n"
    assert statuses(log) == {1: Status.ACTIVE}
    assert not (folder / "2").exists()
    audit = Registry(log, "shop").read("totals").audit
    assert (audit[-1].what, audit[-1].why) == ("discarded", "requested with everstate discard")


def test_discard_deletes_a_retired_generation_by_its_number(log, file, folder):
    deploy(file, log.url)
    deploy(file, log.url, least=5)
    assert statuses(log) == {1: Status.RETIRED, 2: Status.ACTIVE}
    run("discard", file, "totals", "1")
    assert statuses(log) == {2: Status.ACTIVE}
    assert not (folder / "1").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["totals", "1"], "is the active one"),
        (["totals"], "no generation is being built"),
        (["totals", "7"], "there is no generation 7"),
        (["nope"], "there is no output 'nope'"),
    ],
)
def test_discard_of_anything_else_is_refused(log, file, arguments, message):
    deploy(file, log.url)
    with pytest.raises(GenerationError, match=message):
        run("discard", file, *arguments)
    assert statuses(log) == {1: Status.ACTIVE}


def test_discard_while_a_process_builds_is_refused(log, file):
    deploy(file, log.url)
    prepare(file, log.url, least=5)
    lease = log.acquire(build_lease("shop"))
    with pytest.raises(LeaseHeldError):
        run("discard", file, "totals")
    log.release(lease)


def test_rollback_dry_run_shows_the_way_back_and_changes_nothing(log, file):
    deploy(file, log.url)
    deploy(file, log.url, least=5)
    before = log.metas("shop")
    shown = run("rollback", file, "--dry-run")
    assert "~ totals would be restored\n" in shown
    assert "The setting least changed: 5 -> 0" in shown
    assert "Generation 1 takes over again: it catches up from where it stopped, without a replay" in shown
    named = run("rollback", file, "totals", "--to", "1", "--dry-run")
    assert named == shown.replace(f"everstate rollback {file}", f"everstate rollback {file} totals --to 1")
    assert log.metas("shop") == before


def test_rollback_dry_run_shows_the_edit_that_it_takes_back_in_the_text_of_both_versions(log, file):
    deploy(file, log.url)
    write(file, SERVICE.replace('col("amount") > app.config("least", 0)', 'col("amount") >= 10'))
    deploy(file, log.url)
    shown = run("rollback", file, "--dry-run")
    assert '- .filter(col("amount") >= 10)\n' in shown
    assert '+ .filter(col("amount") > app.config("least", 0))\n' in shown


def test_rollback_gives_up_a_version_that_is_being_built(log, file):
    deploy(file, log.url)
    deploy(file, log.url, least=5)
    prepare(file, log.url, least=7)
    assert "discards generation 3" in run("rollback", file, "--dry-run")


def test_rollback_without_anything_to_go_back_to_is_refused(log, file):
    with pytest.raises(GenerationError, match="no output has a generation"):
        run("rollback", file)
    deploy(file, log.url)
    with pytest.raises(GenerationError, match="'totals' has no generation to go back to"):
        run("rollback", file, "totals")
    with pytest.raises(GenerationError, match="there is no output 'nope'"):
        run("rollback", file, "nope")


def test_rollback_to_another_generation_than_those_kept_is_refused(log, file):
    deploy(file, log.url)
    deploy(file, log.url, least=5)
    with pytest.raises(GenerationError, match="cannot go back to generation 2") as refused:
        run("rollback", file, "totals", "--to", "2")
    assert refused.value.hint == "It can go back to: 1."


def test_rollback_of_one_of_several_outputs_must_be_named(log, tmp_path):
    second = 'kept.group_by("amount").agg(n=es.count()).to("amounts")\n'
    file = write(tmp_path / "shop_both.py", SERVICE + second)
    deploy(file, log.url)
    deploy(file, log.url, least=5)
    with pytest.raises(ConfigurationError, match="several outputs can go back: amounts, totals"):
        run("rollback", file)
    assert "amounts" not in run("rollback", file, "totals", "--dry-run")
    assert "~ amounts would be restored" in run("rollback", file, "totals", "amounts", "--dry-run")


def test_rollback_to_a_generation_whose_state_is_gone_is_refused(log, file, folder):
    deploy(file, log.url)
    deploy(file, log.url, least=5)
    shutil.rmtree(folder / "1")
    with pytest.raises(GenerationError, match="cannot go back to generation 1") as refused:
        run("rollback", file)
    assert "it is recalculated" in refused.value.hint
