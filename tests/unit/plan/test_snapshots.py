"""Plans as people see them, at 80 columns: the edited line is the line shown, with what it was and what it is."""
# ruff: noqa: E501 - services and edits are written as they stand in a file

from __future__ import annotations

from dataclasses import dataclass

import pytest

from everstate.fingerprints import reach
from tests.unit.plan.projects import Project


@dataclass(frozen=True)
class Case:
    """A service, an edit of it, and the causes and circumstances that a plan shows then."""

    name: str
    body: str
    edits: list[tuple[str, str, str]]
    shown: str
    circumstances: tuple[str, ...] = ()


#: What a plan of one changed table looks like around its causes and circumstances.
FRAME = """\
Service board: 1 of 1 output would change.

What changed:
{causes}

What follows:
  ~ totals would be recalculated
{circumstances}      A new generation is built alongside generation 1; then what differs is
        published, with a tombstone for each key that it does not produce.

Plan: 1 to recalculate. Apply it: everstate run board.py"""
KINDS = [
    Case(
        "new source topic",
        'totals = flights.group_by("carrier").agg(n=es.count())\ntotals.to("totals")\n',
        [
            (
                "board.py",
                'totals.to("totals")',
                'people = app.table("people", key="carrier", schema={"carrier": str, "name": str})\ntotals.join(people).to("totals")',
            )
        ],
        """\
  The topic people is now read (board.py:13)
    new source topic of totals

  join() (board.py:14)
    more intermediate state of totals
    + .join(people)""",
    ),
    Case(
        "removed source topic",
        'people = app.table("people", key="carrier", schema={"carrier": str, "name": str})\ntotals = flights.group_by("carrier").agg(n=es.count())\ntotals.join(people).to("totals")\n',
        [("board.py", 'totals.join(people).to("totals")', 'totals.to("totals")')],
        """\
  The topic people is no longer read (was at board.py:12)
    removed source topic of totals

  join() (was at board.py:14)
    less intermediate state of totals
    - .join(people)""",
    ),
    Case(
        "changed source key",
        'flights.group_by("carrier").agg(n=es.count()).to("totals")\n',
        [("board.py", 'key="carrier", schema={"carrier"', 'key="flight", schema={"flight": str, "carrier"')],
        """\
  The key of the source flights changed: carrier -> flight (board.py:11)
    changed source key of totals

  column flight added: text (board.py:11)
    changed private schema of totals""",
    ),
    Case(
        "more intermediate state",
        'rows = flights\nrows.group_by("carrier").agg(n=es.count()).to("totals")\n',
        [
            (
                "board.py",
                "rows = flights\n",
                'rows = flights.rekey("carrier").apply(\n    streaks.streak, stateful=True, schema={"carrier": str, "streak": int})\n',
            )
        ],
        """\
  apply(stateful=True) (board.py:12)
    more intermediate state of totals
    + .apply(
    +     streaks.streak, stateful=True, schema={"carrier": str, "streak": int})

  rekey() (board.py:12)
    changed grouping of totals
    + .rekey("carrier")""",
        ("depends on the order of arrival: flights/stateful",),
    ),
    Case(
        "less intermediate state",
        'rows = flights.rekey("carrier").apply(\n    streaks.streak, stateful=True, schema={"carrier": str, "streak": int})\nrows.group_by("carrier").agg(n=es.count()).to("totals")\n',
        [
            (
                "board.py",
                'flights.rekey("carrier").apply(\n    streaks.streak, stateful=True, schema={"carrier": str, "streak": int})',
                "flights",
            )
        ],
        """\
  apply(stateful=True) (was at board.py:12)
    less intermediate state of totals
    - .apply(
    -     streaks.streak, stateful=True, schema={"carrier": str, "streak": int})

  rekey() (was at board.py:12)
    changed grouping of totals
    - .rekey("carrier")""",
    ),
    Case(
        "changed private schema",
        'flights.group_by("carrier").agg(n=es.count()).to("totals")\n',
        [("board.py", '"delay": float', '"delay": int, "gate": str')],
        """\
  column delay float -> integer (board.py:11)
  column gate added: text (board.py:11)
    changed private schema of totals""",
    ),
    Case(
        "changed configuration",
        'flights.filter(col("delay") > app.config("least", 10)).group_by("carrier").agg(n=es.count()).to("totals")\n',
        [("board.py", '"least", 10', '"least", 25')],
        """\
  The setting least changed: 10 -> 25 (board.py:12)
    changed configuration of totals""",
    ),
    Case(
        "changed logic",
        'flights.filter(checks.is_late).group_by("carrier").agg(n=es.count()).to("totals")\n',
        [("rules.py", "LATE_MINUTES = 15.0", "LATE_MINUTES = 30.0")],
        """\
  LATE_MINUTES 15.0 -> 30.0 (rules.py:4) <- is_late() in filter() (board.py:12)
    changed logic of totals""",
    ),
    Case(
        "changed grouping",
        'flights.group_by("carrier").agg(n=es.count()).to("totals")\n',
        [("board.py", 'group_by("carrier")', 'group_by("status")')],
        """\
  agg() (board.py:12)
    changed grouping of totals
    - .group_by("carrier").agg(n=es.count())
    + .group_by("status").agg(n=es.count())""",
    ),
]
EDITS = [
    Case(
        "size of a window",
        'flights.group_by("carrier").window(es.tumbling("1h")).agg(n=es.count()).to("totals")\n',
        [("board.py", 'es.tumbling("1h")', 'es.tumbling("2h")')],
        """\
  agg() (board.py:12)
    changed logic of totals
    - .group_by("carrier").window(es.tumbling("1h")).agg(n=es.count())
    + .group_by("carrier").window(es.tumbling("2h")).agg(n=es.count())""",
    ),
    Case(
        "constant three modules away",
        'flights.apply(streaks.streak, stateful=True, schema={"streak": int}).to("streaks")\n',
        [("rules.py", "LATE_MINUTES = 15.0", "LATE_MINUTES = 30.0")],
        """\
  LATE_MINUTES 15.0 -> 30.0 (rules.py:4) <- is_late() <- streak() in
      apply(stateful=True) (board.py:12)
    changed logic of streaks""",
    ),
    Case(
        "constant that another is made of",
        'flights.filter(checks.is_half).to("half")\n',
        [("rules.py", "LATE_MINUTES = 15.0", "LATE_MINUTES = 30.0")],
        """\
  LATE_MINUTES 15.0 -> 30.0 (rules.py:4) <- HALF <- is_half() in filter()
      (board.py:12)
    changed logic of half""",
    ),
    Case(
        "helper",
        'flights.apply(streaks.streak, stateful=True, schema={"streak": int}).to("streaks")\n',
        [("checks.py", 'row["delay"] > rules', 'row["delay"] >= rules')],
        """\
  is_late() (checks.py:9) <- streak() in apply(stateful=True) (board.py:12)
    changed logic of streaks
          \"\"\"Whether a flight is late.\"\"\"
    -     return row["delay"] > rules.LATE_MINUTES
    +     return row["delay"] >= rules.LATE_MINUTES""",
    ),
    Case(
        "default",
        'flights.map(checks.measured, schema={"delay": float}).to("measured")\n',
        [("rules.py", "factor=2", "factor=3")],
        """\
  default factor=2 -> 3 (rules.py:19) <- weighted() <- measured() in map()
      (board.py:12)
    changed logic of measured""",
    ),
    Case(
        "member of a class",
        'flights.map(checks.graded, schema={"delay": float}).to("graded")\n',
        [("rules.py", "worst = 3", "worst = 4")],
        """\
  Grades (rules.py:12) <- GRADES <- graded() in map() (board.py:12)
    changed logic of graded
    -     worst = 3
    +     worst = 4""",
    ),
    Case(
        "method",
        'flights.map(checks.graded, schema={"delay": float}).to("graded")\n',
        [("rules.py", "min(int(delay), self.worst)", "max(int(delay), self.worst)")],
        """\
  Grades.grade() (rules.py:16) <- Grades <- GRADES <- graded() in map()
      (board.py:12)
    changed logic of graded
          \"\"\"The grade of a delay.\"\"\"
    -     return min(int(delay), self.worst)
    +     return max(int(delay), self.worst)""",
    ),
    Case(
        "entry of a dict",
        'flights.map(checks.weighed, schema={"delay": float}).to("weighed")\n',
        [("rules.py", '"long": 2', '"long": 5')],
        """\
  WEIGHTS {'short': 1, 'long': 2} -> {'short': 1, 'long': 5} (rules.py:6) <-
      scaled() <- weighed() in map() (board.py:12)
    changed logic of weighed""",
    ),
    Case(
        "closure value from a constant",
        'flights.filter(streaks.above(LEAST)).to("above")\n',
        [("board.py", "LEAST = 50", "LEAST = 60")],
        """\
  LEAST 50 -> 60 (board.py:9) <- filter() (board.py:12)
    changed logic of above""",
    ),
    Case(
        "closure value in the call",
        'flights.filter(streaks.above(250)).to("above")\n',
        [("board.py", "above(250)", "above(300)")],
        """\
  filter() (board.py:12)
    changed logic of above
    - .filter(streaks.above(250))
    + .filter(streaks.above(300))""",
    ),
    Case(
        "function that a function makes",
        'flights.filter(streaks.above(250)).to("above")\n',
        [("streaks.py", 'row["delay"] > limit', 'row["delay"] < limit')],
        """\
  above() (streaks.py:11) <- filter() (board.py:12)
    changed logic of above
      def above(limit):
    -     return lambda row: row["delay"] > limit
    +     return lambda row: row["delay"] < limit""",
    ),
    Case(
        "constant in a named expression",
        'flights.filter(is_long).to("long")\n',
        [("board.py", "LEAST = 50", "LEAST = 60")],
        """\
  LEAST 50 -> 60 (board.py:9) <- is_long in filter() (board.py:12)
    changed logic of long""",
    ),
    Case(
        "expression",
        'flights.filter(col("status") != "void").to("open")\n',
        [("board.py", 'col("status") != "void"', 'col("delay") >= 50')],
        """\
  filter() (board.py:12)
    changed logic of open
    - .filter(col("status") != "void")
    + .filter(col("delay") >= 50)""",
    ),
    Case(
        "one aggregate of several",
        '(flights\n    .group_by("carrier")\n    .agg(n=es.count(),\n         total=col("delay").sum())\n    .to("totals"))\n',
        [("board.py", 'col("delay").sum()', 'col("delay").max()')],
        """\
  agg() (board.py:15)
    changed logic of totals
      .agg(n=es.count(),
    -      total=col("delay").sum())
    +      total=col("delay").max())""",
    ),
    Case(
        "group of several lines",
        '(flights\n    .group_by("carrier")\n    .agg(n=es.count())\n    .to("totals"))\n',
        [("board.py", 'group_by("carrier")', 'group_by("status")')],
        """\
  agg() (board.py:13)
    changed grouping of totals
    - .group_by("carrier")
    + .group_by("status")
      .agg(n=es.count())""",
    ),
    Case(
        "lambda",
        'flights.filter(lambda row: row["delay"] > 5).to("open")\n',
        [("board.py", 'row["delay"] > 5', 'row["delay"] > 6')],
        """\
  filter() (board.py:12)
    changed logic of open
    - .filter(lambda row: row["delay"] > 5)
    + .filter(lambda row: row["delay"] > 6)""",
    ),
    Case(
        "added step",
        'flights.filter(col("delay") > 1).to("open")\n',
        [("board.py", '.to("open")', '.filter(col("status") != "void").to("open")')],
        """\
  filter() (board.py:12)
    changed logic of open
    + .filter(col("status") != "void")""",
    ),
    Case(
        "constant that reaches two outputs",
        'flights.filter(checks.is_late).to("late")\nflights.apply(streaks.streak, stateful=True, schema={"streak": int}).to("streaks")\n',
        [("rules.py", "LATE_MINUTES = 15.0", "LATE_MINUTES = 30.0")],
        """\
  LATE_MINUTES 15.0 -> 30.0 (rules.py:4) <- is_late() in filter() (board.py:12);
      also <- is_late() <- streak() in apply(stateful=True) (board.py:13)
    changed logic of late and streaks""",
    ),
    Case(
        "decorator",
        'flights.filter(wrapped.is_open).to("open")\n',
        [("wrapped.py", ">= least", "> least")],
        """\
  at_least() (wrapped.py:10) <- is_open() in filter() (board.py:12)
    changed logic of open
      def inner(row):
    -     return function(row) and row["delay"] >= least
    +     return function(row) and row["delay"] > least""",
    ),
    Case(
        "argument of a decorator",
        'flights.filter(wrapped.is_open).to("open")\n',
        [("wrapped.py", "@at_least(5)", "@at_least(6)")],
        """\
  is_open() (wrapped.py:17) <- filter() (board.py:12)
    changed logic of open
    - @at_least(5)
    + @at_least(6)
      def is_open(row):""",
    ),
    Case(
        "decorator that was not there",
        'flights.filter(checks.is_late).to("late")\n',
        [
            ("checks.py", "def is_late", "@wrapped.at_least(7)\ndef is_late"),
            ("checks.py", "import rules\n", "import rules, wrapped\n"),
        ],
        """\
  is_late() (checks.py:7) <- filter() (board.py:12)
    changed logic of late
    + @wrapped.at_least(7)
      def is_late(row):""",
    ),
    Case(
        "function below a decorator",
        'flights.filter(wrapped.is_open).to("open")\n',
        [("wrapped.py", '"void"', '"lost"')],
        """\
  is_open() (wrapped.py:19) <- filter() (board.py:12)
    changed logic of open
      def is_open(row):
    -     return row["status"] != "void"
    +     return row["status"] != "lost\"""",
    ),
    Case(
        "cached function",
        'flights.map(wrapped.rounded_delay, schema={"delay": float}).to("rounded")\n',
        [("wrapped.py", "round(delay, 1)", "round(delay, 2)")],
        """\
  rounded() (wrapped.py:24) <- rounded_delay() in map() (board.py:12)
    changed logic of rounded
      def rounded(delay):
    -     return round(delay, 1)
    +     return round(delay, 2)""",
    ),
    Case(
        "argument of a partial function",
        'flights.map(wrapped.double, schema={"delay": float}).to("doubled")\n',
        [("wrapped.py", "by=2", "by=3")],
        """\
  double partial(times(), by=2) -> partial(times(), by=3) (wrapped.py:49) <-
      map() (board.py:12)
    changed logic of doubled""",
    ),
    Case(
        "argument of an object that is called",
        'flights.map(wrapped.later, schema={"delay": float}).to("later")\n',
        [("wrapped.py", "minutes=3", "minutes=4")],
        """\
  later Plus(minutes=3) -> Plus(minutes=4) (wrapped.py:50) <- map()
      (board.py:12)
    changed logic of later""",
    ),
    Case(
        "what a loop goes through",
        'LIMITS = {"small": 10, "large": 100}\nfor name, least in LIMITS.items():\n    flights.filter(col("delay") > least).to(name)\n',
        [("board.py", '"small": 10', '"small": 12')],
        """\
  LIMITS {'small': 10, 'large': 100} -> {'small': 12, 'large': 100}
      (board.py:12) <- least in filter() (board.py:14)
    changed logic of small""",
    ),
    Case(
        "column of a constant schema",
        'app.stream("others", key="carrier", schema=wrapped.COLUMNS).with_columns(n=col("delay") * 2).to("twice")\n',
        [("wrapped.py", '"delay": float}\n', '"delay": int, "gate": str | None}\n')],
        """\
  column delay float -> integer (wrapped.py:51) <- COLUMNS in
      stream(key='carrier') (board.py:12)
  column gate added: text or null (wrapped.py:51) <- COLUMNS in
      stream(key='carrier') (board.py:12)
    changed private schema of twice""",
    ),
    Case(
        "end of a long expression of two names",
        'either = is_long | (col("carrier") == "red, blue and green lines")\nflights.filter(either).to("long")\n',
        [("board.py", "green lines", "other lines")],
        """\
  either is_long | (col("carrier") == "red, blue and green lines") -> is_long |
      (col("carrier") == "red, blue and other lines") (board.py:12) <- filter()
      (board.py:13)
    changed logic of long""",
    ),
    Case(
        "member of an enumeration",
        'flights.filter(wrapped.is_red).to("red")\n',
        [("wrapped.py", 'RED = "red"', 'RED = "rot"')],
        """\
  Color.RED 'red' -> 'rot' (wrapped.py:55) <- is_red() in filter() (board.py:12)
    changed logic of red""",
    ),
    Case(
        "default of a dataclass",
        'app.stream("others", key="carrier", schema=wrapped.Flight).filter(col("delay") > 1).to("others-late")\n',
        [("wrapped.py", "delay: float = 0.0", "delay: float = 5.0")],
        """\
  column delay float = 0.0 -> float = 5.0 (wrapped.py:46) <- Flight in
      stream(key='carrier') (board.py:12)
    changed private schema of others-late""",
    ),
    Case(
        "column that a joined table gains",
        'people = app.table("people", key="carrier", schema={"carrier": str})\nflights.join(people, how="left").to("named")\n',
        [
            (
                "board.py",
                'key="carrier", schema={"carrier": str})',
                'key="carrier", schema={"carrier": str, "name": str})',
            )
        ],
        """\
  column name added: text (board.py:12)
    changed private schema of named""",
    ),
    Case(
        "history of a joined table",
        'people = app.table("people", key="carrier", schema={"carrier": str, "name": str}, history="1d")\nflights.join(people, how="left").to("named")\n',
        [("board.py", 'history="1d"', 'history="2d"')],
        """\
  table(key='carrier', history='2d') (board.py:12)
    changed logic of named
    - .table("people", key="carrier", schema={"carrier": str, "name": str}, history="1d")
    + .table("people", key="carrier", schema={"carrier": str, "name": str}, history="2d")""",
    ),
    Case(
        "order of the steps",
        'flights.filter(col("status") != "void").with_columns(n=col("delay") * 2).to("twice")\n',
        [
            (
                "board.py",
                '.filter(col("status") != "void").with_columns(n=col("delay") * 2)',
                '.with_columns(n=col("delay") * 2).filter(col("status") != "void")',
            )
        ],
        """\
  The order of the steps (board.py:12)
    changed logic of twice
      .stream("flights", key="carrier", schema={"carrier": str, "delay": float, "status": str})
    + .with_columns(n=col("delay") * 2)
      .filter(col("status") != "void")
    - .with_columns(n=col("delay") * 2)
      .to("twice")""",
    ),
    Case(
        "columns that a step keeps",
        'flights.select("delay", "status").to("short")\n',
        [("board.py", '.select("delay", "status")', '.select("delay")')],
        """\
  select() (board.py:12)
    changed private schema of short
    - .select("delay", "status")
    + .select("delay")""",
    ),
    Case(
        "key of a stream's topic",
        'flights.to("latest", key="status")\n',
        [("board.py", 'key="status"', 'key="carrier"')],
        """\
  to(key='carrier') (board.py:12)
    changed private schema, changed grouping of latest
    - .to("latest", key="status")
    + .to("latest", key="carrier")""",
    ),
]


@pytest.mark.parametrize("case", KINDS, ids=lambda case: case.name)
def test_plan_of_each_kind_of_change_reads_so(case: Case, tmp_path) -> None:
    project = Project(tmp_path, case.body, ("flights", "people"))
    project.deploy()
    assert "nothing changes" in project.plan()
    for edit in case.edits:
        project.edit(*edit)
    circumstances = "".join(f"      {line}\n" for line in case.circumstances)
    assert project.plan() == FRAME.format(causes=case.shown, circumstances=circumstances)


@pytest.mark.parametrize("case", EDITS, ids=lambda case: case.name)
def test_plan_shows_the_edited_line_and_the_way_from_there(case: Case, tmp_path) -> None:
    project = Project(tmp_path, case.body, ("flights", "people", "others"))
    project.deploy()
    for edit in case.edits:
        project.edit(*edit)
    assert project.causes() == case.shown


def test_plan_of_a_library_three_modules_away_names_both_versions(tmp_path, monkeypatch) -> None:
    project = Project(tmp_path, 'flights.map(checks.measured, schema={"delay": float}).to("measured")\n')
    project.edit(
        "rules.py", "    return delay * factor", "    import numpy\n\n    return float(numpy.multiply(delay, factor))"
    )
    project.deploy()
    known = reach.versions_of
    monkeypatch.setattr(reach, "versions_of", lambda name: [(n, "99.0" if n == "numpy" else v) for n, v in known(name)])
    version = dict(known("numpy"))["numpy"]
    assert project.causes() == (
        f"  The version of the package numpy changed: {version} -> 99.0\n    changed package of measured"
    )


def test_plan_without_notes_of_the_active_version_says_it_in_a_sentence(tmp_path) -> None:
    project = Project(tmp_path, 'flights.filter(checks.is_late).to("late")\n')
    project.deploy()
    for kept in (tmp_path / "log" / "state").rglob("sources.json"):
        kept.unlink()
    project.edit("rules.py", "LATE_MINUTES = 15.0", "LATE_MINUTES = 30.0")
    assert project.causes() == ("  The function is_late of the filter changed (checks.py:7)\n    changed logic of late")


def test_plan_with_damaged_notes_says_it_in_a_sentence(tmp_path) -> None:
    project = Project(tmp_path, 'flights.filter(checks.is_late).to("late")\n')
    project.deploy()
    for kept in (tmp_path / "log" / "state").rglob("sources.json"):
        kept.write_text("{}")
    project.edit("rules.py", "LATE_MINUTES = 15.0", "LATE_MINUTES = 30.0")
    assert "The function is_late of the filter changed" in project.causes()


def test_plan_at_140_columns_keeps_a_chain_in_one_line(tmp_path) -> None:
    body = 'flights.apply(streaks.streak, stateful=True, schema={"streak": int}).to("streaks")\n'
    project = Project(tmp_path, body)
    project.deploy()
    project.edit("rules.py", "LATE_MINUTES = 15.0", "LATE_MINUTES = 30.0")
    line = "  LATE_MINUTES 15.0 -> 30.0 (rules.py:4) <- is_late() <- streak() in apply(stateful=True) (board.py:12)\n"
    assert line in project.plan(width=140)
