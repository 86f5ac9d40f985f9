from __future__ import annotations

import io
import sys

import pytest
from rich.console import Console

from everstate.engine.board import BuildLine, Line, board, size_text
from everstate.engine.progress import Progress
from everstate.generations.deploy.change import Changes
from everstate.log.memory.log import MemoryLog
from everstate.log.waiting import Waiting


def drawn(*builds, lines=(), width=120):
    console = Console(width=width)
    with console.capture() as captured:
        console.print(board("shop", 134, lines, builds, width))
    return captured.get()


def words(*builds):
    return " ".join(drawn(*builds).split())


def line(name="customer-totals", **facts):
    usual = {"generation": 12, "batches": 3, "read": 1_234_567, "written": 88_123, "rate": 20_412.0, "lag": 1_048_576}
    usual |= {"state_bytes": 3_500_000, "dead": 1_203, "dropped": 4, "last_ms": 620.0, "last_at": 1e9, "position": {}}
    return Line(name, **{**usual, **facts})


def test_build_line_says_records_share_rate_and_time_left():
    line = BuildLine("totals", 2, done=250, left=750, rate=50.0)
    assert line.text() == "totals: generation 2 is being recalculated: 250 records (25%), 50/s, 15 s left"
    assert "totals recalculated 2 250 50" in words(line)


def test_build_line_of_a_migration_says_so():
    line = BuildLine("totals", 2, done=0, left=3, rate=0.0, migrates=True)
    assert line.text() == "totals: generation 2 is being migrated: 0 records (0%), 0/s, starting"
    assert "totals migrated 2 0 0" in words(line)


def test_build_line_with_nothing_to_read_divides_by_nothing():
    assert BuildLine("totals", 1, done=0, left=0, rate=0.0).share == 0


@pytest.mark.parametrize("width", [80, 140])
def test_board_fits_the_terminal_and_says_what_matters_at_any_width(width):
    build = BuildLine("customer-totals", 13, done=250_000, left=750_000, rate=50_000.0)
    shown = drawn(build, lines=[line(), line("vips", dead=0, last_at=None)], width=width)
    assert all(len(row) <= width for row in shown.splitlines())
    assert len(shown.splitlines()) == 6, "no row takes two lines"
    head, titles, totals, vips, *_ = shown.splitlines()
    assert head.startswith("shop  up 2 min 14 s")
    assert head.endswith("Ctrl-C to stop")
    for title in ("generation", "lag", "records/s", "last batch", "dead letters"):
        assert title in titles
    assert totals.split()[:4] == ["customer-totals", "12", "1,048,576", "20,412"]
    assert totals.endswith("1,203")
    assert "none yet" in vips
    assert ("3.5 MB" in totals) is (width == 140)


def test_board_before_anything_runs_says_that_it_starts():
    assert "Starting" in drawn(width=80)


def test_size_is_rounded_to_the_unit_that_fits():
    assert [size_text(size) for size in (0, 999, 1_000, 2_500_000, 7e12)] == [
        "0 B", "999 B", "1.0 kB", "2.5 MB", "7.0 TB"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("typed", "goes_on"), [("yes\n", True), (" YES \n", True), ("y\n", False), ("\n", False), ("", False)]
)
def test_progress_asks_on_a_terminal_and_only_yes_goes_on(typed, goes_on, monkeypatch):
    progress = asking(monkeypatch, typed)
    assert progress.approves("Every key would be tombstoned.") is goes_on
    assert "Every key would be tombstoned." in progress._console.file.getvalue()


@pytest.mark.parametrize("how", [{"asks": False}, {"asks": True, "show": False}])
def test_progress_that_may_not_ask_does_not(how, monkeypatch):
    assert asking(monkeypatch, "yes\n", **how).approves("Every key would be tombstoned.") is False


def test_progress_without_a_terminal_does_not_ask(monkeypatch):
    progress = asking(monkeypatch, "yes\n")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False)
    assert progress.approves("Every key would be tombstoned.") is False


def asking(monkeypatch, typed, *, asks=True, show=None):
    """A display on a terminal at which someone types."""
    keyboard = io.StringIO(typed)
    monkeypatch.setattr(keyboard, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stdin", keyboard)
    progress = Progress(Changes(), MemoryLog(), asks=asks, show=show)
    progress._console = Console(file=io.StringIO(), force_terminal=True)
    return progress


def test_board_and_line_name_the_partition_that_time_waits_for():
    held = line(waits_for=Waiting("orders", 3, 1_700_000_000_000, 90_000))
    told = "time waits for partition 3 of orders, which stands at 2023-11-14 22:13:20; the furthest is 90 s ahead"
    assert held.text().endswith(told)
    assert f"customer-totals: {told}" in " ".join(drawn(lines=[held], width=140).split())
