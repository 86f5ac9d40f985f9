from __future__ import annotations

from typing import Any

from tests.equivalence.playing import PLAYED


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if PLAYED:
        figures = ", ".join(f"{family} {count:,}" for family, count in sorted(PLAYED.items()))
        terminalreporter.write_line(f"histories that agree with their oracle: {figures}")
