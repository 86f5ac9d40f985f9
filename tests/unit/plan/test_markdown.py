from __future__ import annotations

from dataclasses import replace

from everstate.plan.actions import Estimate, Plan, Recalculate
from everstate.plan.categories import Category, Difference
from everstate.plan.edits import Edit
from everstate.plan.facts import Options
from everstate.plan.shown.markdown import markdown

EDIT = Edit("call", "filter()", "shop.py:3", diff=('-.filter(col("a") != "```")', "+.filter(is_open)"), step="filter()")
PLAN = Plan(
    "shop",
    (
        Recalculate(
            output="big_totals",
            fingerprint="f",
            active=1,
            differences=(Difference(Category.LOGIC, "n", "The filter changed.", "shop.py:3", edits=(EDIT,)),),
            estimate=Estimate(0),
        ),
    ),
    Options(file="shop.py"),
)


def test_markdown_of_a_plan_has_the_same_words_and_the_diff_as_code() -> None:
    assert (
        markdown(PLAN)
        == """\
### Service shop: 1 of 1 output would change.

**What changed:**

- filter() (`shop.py:3`)
  - changed logic of big\\_totals
    ````diff
    - .filter(col("a") != "```")
    + .filter(is_open)
    ````

**What follows:**

- \\~ `big_totals` would be recalculated
  - A new generation is built alongside generation 1; then what differs is published, with a tombstone for each key \
that it does not produce.

Plan: 1 to recalculate. Apply it: `everstate run shop.py`
"""
    )


def test_markdown_of_words_that_mean_something_there_stays_text() -> None:
    action = replace(PLAN.actions[0], warnings=("<b>[x](y)</b> *is* `code`",))
    shown = markdown(replace(PLAN, actions=(action,)))
    assert r"\<b\>\[x\](y)\</b\> \*is\* \`code\`" in shown
