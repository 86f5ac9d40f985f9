"""Small services of several modules that are deployed, edited and planned, without Spark."""

from __future__ import annotations

import linecache
import sys
from pathlib import Path

from everstate.cli.service_loading import load_service
from everstate.engine.commands.preview import plan_service
from everstate.log.descriptions import TopicConfig
from everstate.log.embedded.log import EmbeddedLog
from everstate.plan.text import plain, text
from tests.unit.cli.deployments import deploy

RULES = '''"""What counts as late."""

#: By how much a flight may be late, in minutes.
LATE_MINUTES = 15.0
HALF = LATE_MINUTES / 2
WEIGHTS = {"short": 1, "long": 2}


class Grades:
    """Grades by delay."""

    worst = 3

    def grade(self, delay):
        """The grade of a delay."""
        return min(int(delay), self.worst)


def weighted(delay, factor=2):
    """A delay with its weight."""
    return delay * factor


def scaled(delay):
    return delay * WEIGHTS["long"]
'''

WRAPPED = """import enum
import functools
from dataclasses import dataclass


def at_least(least):
    def wrap(function):
        @functools.wraps(function)
        def inner(row):
            return function(row) and row["delay"] >= least

        return inner

    return wrap


@at_least(5)
def is_open(row):
    return row["status"] != "void"


@functools.lru_cache
def rounded(delay):
    return round(delay, 1)


def rounded_delay(row):
    return {"delay": rounded(row["delay"])}


def times(row, by):
    return {"delay": row["delay"] * by}


class Plus:
    def __init__(self, minutes):
        self.minutes = minutes

    def __call__(self, row):
        return {"delay": row["delay"] + self.minutes}


@dataclass
class Flight:
    carrier: str
    delay: float = 0.0


double = functools.partial(times, by=2)
later = Plus(minutes=3)
COLUMNS = {"carrier": str, "delay": float}


class Color(enum.StrEnum):
    RED = "red"


def is_red(row):
    return row["status"] == Color.RED
"""

CHECKS = '''import rules
from rules import HALF, Grades, scaled, weighted

GRADES = Grades()


def is_late(row):
    """Whether a flight is late."""
    return row["delay"] > rules.LATE_MINUTES


def is_half(row):
    return row["delay"] > HALF


def measured(row):
    return {"delay": weighted(row["delay"])}


def weighed(row):
    return {"delay": scaled(row["delay"])}


def graded(row):
    return {"delay": float(GRADES.grade(row["delay"]))}
'''

STREAKS = """from checks import is_late


def streak(row, state):
    count = state.get("count", 0) + 1 if is_late(row) else 0
    state.set("count", count)
    return {"streak": count}


def above(limit):
    return lambda row: row["delay"] > limit
"""

HEAD = """import everstate as es
from everstate import col

import checks
import streaks
import wrapped

app = es.Service("board", shards=1)
LEAST = 50
is_long = col("delay") >= LEAST
flights = app.stream("flights", key="carrier", schema={"carrier": str, "delay": float, "status": str})
"""


class Project:
    """Files of one service, and its log.

    Args:
        folder: Where they are.
        body: What the service does, after what all services here have in common.
    """

    def __init__(self, folder: Path, body: str, topics: tuple[str, ...] = ("flights",)) -> None:
        self.folder = folder
        self.file = folder / "board.py"
        self.url = str(folder / "log")
        for name, content in (("rules", RULES), ("checks", CHECKS), ("streaks", STREAKS), ("wrapped", WRAPPED)):
            (folder / f"{name}.py").write_text(content)
        self.file.write_text(HEAD + body)
        log = EmbeddedLog(self.url)
        for topic in topics:
            log.create_topic(topic, TopicConfig(partitions=1))
        log.close()

    def deploy(self, **config: object) -> None:
        """Make the version that the files hold the active one."""
        self._forget()
        deploy(self.file, self.url, **config)

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace a text that a file has once."""
        path = self.folder / name
        content = path.read_text()
        assert content.count(old) == 1, f"{name} has {content.count(old)} times: {old}"
        path.write_text(content.replace(old, new))

    def plan(self, width: int | None = 80, **config: object) -> str:
        """What the plan of the files shows."""
        self._forget()
        made = plan_service(load_service(self.file, config=config), log=self.url, file="board.py")
        return plain(text(made, root=str(self.folder), width=width))

    def causes(self, **config: object) -> str:
        """What it says was changed."""
        shown = self.plan(**config)
        return shown.partition("What changed:\n")[2].partition("\n\nWhat follows:")[0]

    def _forget(self) -> None:
        """As a new process begins."""
        for name in ("board", "streaks", "checks", "rules", "wrapped"):
            sys.modules.pop(name, None)
        sys.path[:] = [path for path in sys.path if not (Path(path) / "streaks.py").exists() and Path(path).exists()]
        linecache.checkcache()
        for cached in self.folder.glob("__pycache__/*"):
            cached.unlink()
