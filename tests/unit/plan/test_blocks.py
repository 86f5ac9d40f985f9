from __future__ import annotations

import pytest

from everstate.plan.edits import diff_lines
from everstate.plan.shown.blocks import Paragraph, Span, Style, plain, sentence, wrapped
from everstate.plan.shown.preview_text import shares

WORDS = "one two three four five six seven eight nine ten"


@pytest.mark.parametrize("width", [12, 20, 80, None])
def test_wrapping_keeps_every_word_and_no_line_is_too_wide(width) -> None:
    lines = plain(wrapped([sentence(WORDS, indent=2)], width)).splitlines()
    assert " ".join(lines).split() == WORDS.split()
    assert all(len(line) <= (width or 999) for line in lines)
    assert all(line.startswith("    ") for line in lines[1:])


def test_wrapping_never_tears_a_command_or_code_apart() -> None:
    command = Span("everstate run shop.py --approve", whole=True)
    assert plain(wrapped([sentence("Apply it: ", command)], 30)) == "Apply it:\n  everstate run shop.py --approve"
    code = Paragraph((Span("- " + "x " * 30),), 4, code=True)
    assert plain(wrapped([code], 30)) == ("    - " + "x " * 30).rstrip()


def test_wrapping_keeps_what_touches_together() -> None:
    place = (Span("changed ("), Span("a/long/file.py:12", Style.PLACE), Span(")"))
    assert plain(wrapped([Paragraph(place)], 20)) == "changed\n    (a/long/file.py:12)"


def test_diff_of_much_says_how_much_is_left_out() -> None:
    lines = diff_lines("\n".join(f"a{n}" for n in range(20)), "\n".join(f"b{n}" for n in range(20)))
    assert (len(lines), lines[-1]) == (13, "... 28 more lines")


def test_diff_skips_what_is_the_same_between_two_edits() -> None:
    old = ["def f():", "    a = 1", *["    pass"] * 9, "    b = 1"]
    new = [line.replace("= 1", "= 2") for line in old]
    assert diff_lines("\n".join(old), "\n".join(new)) == (
        " def f():",
        "-    a = 1",
        "+    a = 2",
        "     pass",
        "...",
        "     pass",
        "-    b = 1",
        "+    b = 2",
    )


def test_shares_of_a_bar_fill_it_and_show_what_is_small() -> None:
    assert shares((1, 1, 0, 100_000), 40) == (1, 1, 0, 38)
    assert sum(shares((3, 3, 3, 1), 40)) == 40
    assert shares((0, 0), 40) == (0, 0)
