from __future__ import annotations

import json

import polars as pl
import pytest

import everstate as es
from everstate import col
from everstate.engine.commands.preview import preview_service
from everstate.plan.document import from_json, to_json
from everstate.plan.preview import Contribution, FieldChange
from everstate.plan.shown.markdown import markdown
from everstate.plan.text import plain, text
from tests.unit.engine.commands.test_preview import deploy, log  # noqa: F401 - a fixture

KEYS = [b"x", b"x", b"y"]
VALUES = [b'{"n": 1}', b'{"n": 5}', b'{"n": 3}']


def service(least=0, factor=1, topic="out"):
    app = es.Service("svc", shards=1)
    rows = app.stream("in", key="id", schema={"id": str, "n": int}).filter(col("n") >= least)
    rows = rows.with_columns(n=col("n") * factor)
    rows.group_by("id").agg(total=col("n").sum(), largest=col("n").max()).to(topic)
    return app


@pytest.fixture
def running(log):  # noqa: F811 - the fixture
    """A service that has published what it makes of three records."""
    deploy(service(), log)
    log.append("in", pl.DataFrame({"key": KEYS, "value": VALUES, "ts": [1, 2, 3], "partition": [0, 0, 0]}))
    published = [b'{"total":6,"largest":5}', b'{"total":3,"largest":3}']
    log.append("out", pl.DataFrame({"key": [b"x", b"y"], "value": published, "ts": [1, 2]}))
    return log


def explained(new, log, key, **options):  # noqa: F811 - the fixture's value
    (preview,) = preview_service(new, log=log.url, show=False, key=key, **options).previews
    return preview.explained


def place(found: Contribution) -> tuple[str, str | None, str]:
    return found.counts, found.key, found.value


def test_changed_key_is_told_field_by_field_with_the_records_that_no_longer_count(running):
    found = explained(service(least=2), running, "x")
    assert (found.change, found.records) == ("changed", 2)
    assert found.fields == (FieldChange("total", "6", "5"), FieldChange("largest", "5", "5"))
    assert list(map(place, found.contributions)) == [("old", "x", '{"n": 1}'), ("both", "x", '{"n": 5}')]


def test_records_of_which_the_steps_make_something_else_are_told_with_what_they_make(running):
    found = explained(service(factor=10), running, "y")
    assert [(one.counts, one.fields) for one in found.contributions] == [("both", (FieldChange("n", "3", "30"),))]


def test_key_that_gets_a_tombstone_and_one_that_neither_version_has_are_told(running):
    gone = explained(service(least=4), running, "y")
    assert (gone.change, gone.new) == ("tombstone", None)
    assert list(map(place, gone.contributions)) == [("old", "y", '{"n": 3}')]
    nobody = explained(service(least=4), running, "nobody")
    assert (nobody.change, nobody.records) == ("absent", 0)


def test_unchanged_key_is_told_with_its_records(running):
    found = explained(service(least=2), running, "y")
    assert (found.change, found.old, found.new) == ("unchanged", *['{"total":3,"largest":3}'] * 2)
    assert list(map(place, found.contributions)) == [("both", "y", '{"n": 3}')]


def test_key_of_a_removed_output_is_told_from_the_archived_code(running):
    (out,) = [
        preview
        for preview in preview_service(service(topic="other"), log=running.url, show=False, key="x").previews
        if preview.output == "out"
    ]
    assert out.explained.change == "tombstone"
    assert {one.counts for one in out.explained.contributions} == {"old"}


def test_key_of_a_stream_is_told_by_its_last_record(log):  # noqa: F811 - the fixture
    def counting(step):
        def counted(row, state):
            state.set("n", state.get("n", 0) + step)
            return {"n": state.get("n")}

        app = es.Service("svc", shards=1)
        app.stream("in", key="id", schema={"id": str, "n": int}).apply(counted, stateful=True, schema={"n": int}).to(
            "out"
        )
        return app

    deploy(counting(1), log)
    log.append("in", pl.DataFrame({"key": KEYS, "value": VALUES, "ts": [1, 2, 3], "partition": [0, 0, 0]}))
    found = explained(counting(2), log, "x")
    assert found.change == "changed"
    assert [one.new for one in found.fields if one.name == "n"] == ["4"]
    assert found.records == 2


def test_sources_that_are_too_large_are_not_explained_and_the_limit_is_named(running, monkeypatch):
    from everstate.engine.commands import preview

    monkeypatch.setattr(preview, "_is_short", lambda *_: True)
    found = explained(service(least=2), running, "x", preview_records=2)
    assert (found.change, found.contributions) == ("changed", ())
    assert "more than 2 records" in found.unknown


def test_more_records_than_are_shown_are_counted_and_all_of_them_shown_on_request(running):
    many = pl.DataFrame({"key": [b"x"] * 20, "value": [b'{"n": 9}'] * 20, "ts": [4] * 20, "partition": [0] * 20})
    running.append("in", many)
    some = explained(service(least=2), running, "x")
    assert (some.records, len(some.contributions)) == (22, 10)
    assert len(explained(service(least=2), running, "x", every=True).contributions) == 22


def test_explanation_is_shown_as_text_markdown_and_json(running):
    plan = preview_service(service(least=2), log=running.url, show=False, key="x")
    shown = plain(text(plan, width=100))
    assert (
        "      ~ key x changes\n"
        "        total    6 -> 5\n"
        "        largest  5\n"
        "        made of 2 records:\n"
        '          - in x no longer counts: {"n": 1} (partition 0, offset 0)\n'
        '          = in x counts in both: {"n": 5} (partition 0, offset 1)\n'
    ) in shown
    assert '- `-` in x no longer counts: `{"n": 1}` (partition 0, offset 0)' in markdown(plan)
    document = to_json(plan)
    assert json.loads(document)["previews"][0]["explained"]["contributions"][0]["counts"] == "old"
    assert from_json(document).previews == plan.previews
