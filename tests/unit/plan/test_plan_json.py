"""The page about plans as JSON names every field that is written, and no other."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from everstate.plan.actions import Estimate, Keep, Migrate, Plan, Recalculate, Refuse, Restore
from everstate.plan.categories import Category, Difference
from everstate.plan.document import from_json, to_json
from everstate.plan.edits import Edit
from everstate.plan.guards import Risk
from tests.unit.plan.stories import EXPLAINED, whole_story

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "plan-json.md").read_text(encoding="utf-8")
EDIT = Edit("constant", "LATE", "a.py:1", "1", "2", (), ("f()",), "map()", "b.py:2")
DIFFERENCE = Difference(Category.LOGIC, "n", "The filter changed.", "b.py:2", edits=(EDIT,))
BASE = {"output": "o", "fingerprint": "f", "active": 1, "differences": (DIFFERENCE,)}
EVERY_KIND = Plan(
    "shop",
    (
        Keep(**BASE),
        Recalculate(**BASE, estimate=Estimate(5)),
        Migrate(**BASE, estimate=Estimate(5)),
        Restore(**BASE, generation=1, estimate=Estimate(5)),
        Refuse(**BASE, problem="p", hint="h"),
        *whole_story().actions,
    ),
    previews=tuple(replace(preview, explained=EXPLAINED) for preview in whole_story().previews),
    startup=9.5,
)


def documented(title: str) -> list[str]:
    part = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE)


@pytest.mark.parametrize(
    ("title", "place"),
    [
        ("The plan", ""),
        ("An action", "actions"),
        ("A cause", "causes"),
        ("A preview", "previews"),
        ("A concern", "concerns"),
    ],
)
def test_page_names_every_field_that_a_plan_has(title, place) -> None:
    known = json.loads(to_json(EVERY_KIND))
    written = [known] if not place else known[place]
    assert sorted({name for part in written for name in part}) == sorted(set(documented(title)))


def test_page_names_the_parts_of_fields() -> None:
    known = json.loads(to_json(EVERY_KIND))
    cause = next(cause for cause in known["causes"] if cause["edit"] is not None)
    parts = [
        known["options"],
        known["actions"][1]["differences"][0],
        known["actions"][1]["differences"][0]["edits"][0],
        known["actions"][1]["estimate"],
        known["actions"][5]["sources"][0],
        cause["edit"],
        cause["steps"][0],
        known["previews"][0]["counts"],
        known["previews"][0]["new"][0],
        known["previews"][0]["dead"][0],
        known["previews"][0]["explained"],
        known["previews"][0]["explained"]["contributions"][0],
    ]
    for name in {name for part in parts for name in part}:
        assert f"`{name}`" in PAGE, name


def test_page_names_the_version_and_every_risk() -> None:
    assert f"`version` is {json.loads(to_json(EVERY_KIND))['version']}." in PAGE
    assert [risk for risk in Risk if f"`{risk}`" not in PAGE] == []


def test_document_with_edits_is_read_back_the_same() -> None:
    assert from_json(to_json(EVERY_KIND)) == EVERY_KIND
