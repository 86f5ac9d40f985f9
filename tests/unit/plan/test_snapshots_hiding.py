"""What plans keep to themselves: secrets in the text, and what else the environment holds."""

from __future__ import annotations

import pytest

from tests.unit.plan.projects import Project


def test_plan_shows_no_secret_that_stands_in_the_text(tmp_path) -> None:
    project = Project(tmp_path, 'flights.filter(checks.is_late).to("late")\n')
    project.edit("rules.py", "LATE_MINUTES = 15.0\n", 'LATE_MINUTES = 15.0\nAPI_TOKEN = "first-secret-1"\n')
    secret = 'row["delay"] > rules.LATE_MINUTES and row["status"] != rules.API_TOKEN'
    project.edit("checks.py", 'row["delay"] > rules.LATE_MINUTES', secret)
    project.deploy()
    project.edit("rules.py", "first-secret-1", "other-secret-2")
    stored = "".join(kept.read_text() for kept in (tmp_path / "log" / "state").rglob("sources.json"))
    assert "secret-" not in stored
    assert "API_TOKEN *** -> ***" in project.causes()


@pytest.mark.parametrize(("imported", "taken"), [("import os", "os.environ"), ("from os import environ", "environ")])
def test_plan_names_what_is_taken_of_the_environment_and_shows_nothing_else_of_it(
    tmp_path, monkeypatch, imported, taken
) -> None:
    monkeypatch.setenv("NEIGHBOUR", "what-nobody-asked-for")
    monkeypatch.setenv("LIMIT", "15")
    body = f'{imported}\nLIMIT = int({taken}.get("LIMIT", "1"))\nflights.filter(col("delay") > LIMIT).to("late")\n'
    project = Project(tmp_path, body)
    project.deploy()
    stored = "".join(kept.read_text() for kept in (tmp_path / "log" / "state").rglob("sources.json"))
    monkeypatch.setenv("LIMIT", "20")
    causes = project.causes()
    assert "LIMIT 15 -> 20" in causes
    assert "what-nobody-asked-for" not in stored + causes
