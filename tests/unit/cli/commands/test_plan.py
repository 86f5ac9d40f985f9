from __future__ import annotations

import json

import polars as pl
import pytest
from typer.testing import CliRunner

from everstate.cli.exit_codes import CHANGES, HISTORY
from everstate.cli.main import app
from everstate.errors import ConfigurationError, PlanDriftError
from everstate.log.descriptions import TopicConfig
from everstate.log.embedded import EmbeddedLog
from everstate.log.embedded.store import wall_clock
from everstate.log.opening import open_log
from everstate.plan.document import from_json
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
    return write(tmp_path / "shop_planned.py")


def run(*arguments, code=0):
    result = CliRunner(env={"COLUMNS": "240"}).invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def contents(log):
    """Everything that a command that only looks must leave as it is."""
    return log.topics(), log.metas("shop"), {topic: log.describe(topic) for topic in log.topics()}


def send(log, count):
    keys = [f"o{n}".encode() for n in range(count)]
    values = [json.dumps({"customer": "c", "amount": 1}).encode()] * count
    log.append("orders", pl.DataFrame({"key": keys, "value": values, "ts": [0] * count}))


def test_plan_of_a_first_deployment_creates_nothing(log, file):
    send(log, 3)
    before = contents(log)
    shown = run("plan", file).stdout
    assert "+ totals would begin (shop_planned.py:8)\n" in shown
    assert "reads 3 records from orders" in shown
    assert contents(log) == before


def test_plan_of_a_changed_setting_names_it_and_tells_machines_with_a_code(log, file):
    deploy(file, log.url)
    assert run("plan", file, "--detailed-exitcode").stdout.startswith("Service shop: nothing changes.\n")
    before = contents(log)
    shown = run("plan", file, "--set", "least=5", "--detailed-exitcode", code=CHANGES).stdout
    assert "The setting least changed: 0 -> 5" in shown
    assert "(shop_planned.py:" in shown
    assert contents(log) == before


def test_plan_as_json_is_the_document_that_is_written_to_a_file(log, file, tmp_path):
    deploy(file, log.url)
    shown = run("plan", file, "--json", "--recalculate", "totals", "--out", tmp_path / "p.json").stdout
    assert json.loads(shown) == json.loads((tmp_path / "p.json").read_text())
    plan = from_json(shown)
    assert plan.options.recalculate == ("totals",)
    assert plan.action("totals").asked


def test_plan_options_that_name_nothing_are_refused(log, file):
    with pytest.raises(ConfigurationError, match="--recalculate nope"):
        run("plan", file, "--recalculate", "nope")
    with pytest.raises(ConfigurationError, match="--accept-truncated nope"):
        run("plan", file, "--accept-truncated", "nope")


def test_plan_of_a_missing_source_is_refused_and_shown(log, file):
    log.delete_topic("orders")
    shown = run("plan", file, code=1).stdout
    assert "topic orders does not exist." in shown
    assert "everstate topic create orders" in shown


def test_plan_of_several_missing_sources_names_the_commands_for_all_of_them_at_once(log, tmp_path):
    text = """import everstate as es
app = es.Service("shop")
people = app.table("people", key="id", schema={"id": str, "n": int})
clicks = app.stream("clicks", key="id", schema={"id": str})
clicks.group_by("id").agg(clicks=es.count()).join(people).to("seen")
"""
    shown = run("plan", write(tmp_path / "clicks_of_people.py", text), code=1).stdout
    commands = "everstate topic create clicks; everstate topic create people --compact"
    assert f"Create them: {commands}" in " ".join(shown.split())
    assert shown.count("topic create people") == 1


def test_plan_over_lost_history_ends_with_a_code_of_its_own(log, tmp_path):
    log.create_topic("clicks", TopicConfig(retention_ms=1000))
    stream = 'import everstate as es\napp = es.Service("shop")\nrows = app.stream("clicks", schema={"n": int})\n'
    counting = 'rows.group_by("n").agg(hits=es.count()).to("hits")\n'
    file = write(tmp_path / "clicks_planned.py", stream + counting)
    deploy(file, log.url)
    log.append("clicks", pl.DataFrame({"key": [b"k"], "value": [b'{"n": 1}'], "ts": [0]}))
    EmbeddedLog(log.url, clock=lambda: wall_clock() + 3_600_000).compact("clicks")  # an hour later
    write(file, stream + counting.replace("es.count()", "es.count() * 2"))
    shown = run("plan", file, code=HISTORY).stdout
    assert "! hits is refused\n" in shown
    assert f"everstate run {file} --accept-truncated clicks" in shown
    shown = run("plan", file, "--log", log.url, "--set", "api_token=abc", code=HISTORY).stdout
    assert f"everstate run {file} --log {log.url} --set 'api_token=***' --accept-truncated clicks" in shown
    assert "~ hits would be recalculated\n" in run("plan", file, "--accept-truncated", "clicks").stdout


def test_plan_of_a_source_that_cannot_be_read_says_why(log, file, tmp_path):
    send(log, 3)
    for segment in (tmp_path / ".everstate").rglob("*"):
        if segment.is_file() and "orders" in str(segment.parent):
            segment.write_bytes(b"damaged")
    shown = run("plan", file, code=1).stdout
    assert "topic orders cannot be read" in shown


def test_plan_of_a_removed_output_asks_for_approval_unless_it_keeps_the_topic(log, tmp_path):
    second = 'kept.group_by("amount").agg(n=es.count()).to("amounts")\n'
    file = write(tmp_path / "shop_two.py", SERVICE + second)
    deploy(file, log.url)
    log.append("amounts", pl.DataFrame({"key": [b"1"], "value": [b'{"n": 1}'], "ts": [0]}))
    write(file)
    shown = run("plan", file).stdout
    assert "- amounts would be retired (" in shown
    assert "needs approval: amounts is no longer declared and would be retired: 1 key would be tombstoned." in shown
    assert "its topic stays" in run("plan", file, "--keep-topic").stdout


def test_plan_after_a_preview_goes_on_with_what_was_prepared(log, file):
    deploy(file, log.url)
    prepare(file, log.url, least=5)
    assert "resumes generation 2, which was prepared" in run("plan", file, "--set", "least=5").stdout
    assert "discards generation 2" in run("plan", file, "--set", "least=6").stdout
    assert "discards generation 2" in run("plan", file, "--set", "least=5", "--shards", "3").stdout


def test_dry_run_prints_the_plan_and_ends(log, file):
    deploy(file, log.url)
    before = contents(log)
    shown = run("run", file, "--set", "least=5", "--dry-run", "--approval", "fail").stdout
    assert "~ totals would be recalculated\n" in shown
    assert contents(log) == before


def test_run_of_a_plan_whose_code_has_drifted_is_refused_before_anything_happens(log, file, tmp_path):
    deploy(file, log.url)
    run("plan", file, "--set", "least=5", "--out", tmp_path / "p.json")
    before = contents(log)
    with pytest.raises(PlanDriftError, match="the code or configuration of output totals has changed"):
        run("run", file, "--set", "least=6", "--plan", tmp_path / "p.json")
    assert contents(log) == before
    assert "recalculate" in run("run", file, "--set", "least=5", "--plan", tmp_path / "p.json", "--dry-run").stdout


def test_run_of_a_plan_whose_source_was_made_anew_is_refused(log, file, tmp_path):
    deploy(file, log.url)
    send(log, 5)
    run("plan", file, "--set", "least=5", "--out", tmp_path / "p.json")
    log.delete_topic("orders")
    log.create_topic("orders", TopicConfig(partitions=2, compact=True))
    with pytest.raises(PlanDriftError, match="topic orders was created again"):
        run("run", file, "--set", "least=5", "--plan", tmp_path / "p.json")


@pytest.mark.parametrize("option", [["--recalculate", "totals"], ["--accept-truncated", "orders"], ["--keep-topic"]])
def test_run_of_a_plan_takes_no_option_that_the_plan_should_say(log, file, tmp_path, option):
    run("plan", file, "--out", tmp_path / "p.json")
    with pytest.raises(ConfigurationError, match="a plan already says what happens"):
        run("run", file, "--plan", tmp_path / "p.json", *option)


def test_run_of_something_that_is_no_plan_is_refused(log, file, tmp_path):
    (tmp_path / "p.json").write_text("{}")
    with pytest.raises(ConfigurationError, match="this is not a plan"):
        run("run", file, "--plan", tmp_path / "p.json")
    with pytest.raises(ConfigurationError, match=r"missing\.json cannot be read"):
        run("run", file, "--plan", tmp_path / "missing.json")


def test_plan_of_a_key_previews_and_says_so_where_nothing_can_be_explained(log, file):
    nothing = run("plan", file, "--key", "c")
    assert "nothing to explain for key c" in nothing.stderr
    deploy(file, log.url)
    send(log, 2)
    shown = run("plan", file, "--set", "least=5", "--key", "c", "--quiet").stdout
    assert "= key c is in neither version\n" in shown
