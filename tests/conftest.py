"""How random tests run, and until when long ones may begin.

Random tests have no time limit for a single example, and the same examples on every machine; `pytest
--hypothesis-profile=roaming` tries others each time.

How much they go through is said in `effort.py`.

A build that has to end within an hour sets `EVERSTATE_LONG_UNTIL` (seconds since 1970): a test of the long run that
would begin later is skipped, and the summary says how many were.

The summary also says what was gone through (`figures.py`).
"""

import os
import time

import pytest
from hypothesis import HealthCheck, settings

from tests import brokers, effort, figures

settings.register_profile(
    "everstate",
    derandomize=True,
    deadline=None,
    database=None,
    print_blob=True,
    max_examples=effort.examples(100),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
settings.register_profile("roaming", settings.get_profile("everstate"), derandomize=False)
settings.load_profile("everstate")

UNTIL = "EVERSTATE_LONG_UNTIL"
broker = brokers.broker
TIME_IS_UP = "the time for long tests is up; all of them: make long"


def pytest_configure() -> None:
    brokers.prepare()


def pytest_unconfigure() -> None:
    brokers.finish()


def pytest_runtest_setup(item: pytest.Item) -> None:
    until = os.environ.get(UNTIL)
    random = effort.LEVEL == "full" and item.get_closest_marker("hypothesis")
    if until and (random or item.get_closest_marker("long")) and time.time() > float(until):
        pytest.skip(TIME_IS_UP)


def pytest_terminal_summary(terminalreporter) -> None:
    skipped = [report for report in terminalreporter.stats.get("skipped", ()) if TIME_IS_UP in str(report.longrepr)]
    if skipped:
        terminalreporter.write_line(f"{len(skipped)} long tests did not begin: {TIME_IS_UP}")
    texts = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", ())]
    for line in [*figures.lines(), *brokers.skipped_lines(texts)]:
        terminalreporter.write_line(line)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of several sends its figures to the process that reports."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["figures"] = figures.taken()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node) -> None:
    figures.add(getattr(node, "workeroutput", {}).get("figures", {}))
