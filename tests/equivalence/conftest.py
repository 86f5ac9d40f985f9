from __future__ import annotations

from typing import Any

from tests.equivalence.playing import PLAYED


def pytest_sessionfinish(session: Any) -> None:
    """A worker of several sends its figures to the process that reports."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["histories"] = dict(PLAYED)


def pytest_testnodedown(node: Any) -> None:
    PLAYED.update(getattr(node, "workeroutput", {}).get("histories", {}))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if PLAYED:
        figures = ", ".join(f"{family} {count:,}" for family, count in sorted(PLAYED.items()))
        terminalreporter.write_line(f"histories that agree with their oracle: {figures}")
