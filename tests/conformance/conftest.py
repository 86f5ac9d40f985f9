from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conformance.reading import missing, read
from tests.spark_session import log, run, spark

__all__ = ["log", "run", "spark"]

HERE = Path(__file__).parent / "cases"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cases", default=str(HERE), help="folder of conformance cases (JSON files)")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrise `case` with every case, and `built_case` with those that can be played."""
    if "case" in metafunc.fixturenames:
        cases = _cases(metafunc.config)
        metafunc.parametrize("case", list(cases.values()), ids=list(cases))
    if "built_case" in metafunc.fixturenames:
        built = {name: case for name, case in _cases(metafunc.config).items() if missing(case) is None}
        metafunc.parametrize("built_case", list(built.values()), ids=list(built))


@pytest.fixture
def built_cases(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    """All cases that can be played."""
    return [case for case in _cases(request.config).values() if missing(case) is None]


def _cases(config: pytest.Config) -> dict[str, dict[str, Any]]:
    try:
        return read(Path(config.getoption("--cases")))
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None
