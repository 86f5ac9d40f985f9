from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.expectations import settled
from tests.conformance.services import missing
from tests.spark_session import log, run, spark

__all__ = ["log", "run", "spark"]

HERE = Path(__file__).parent / "cases"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cases", default=str(HERE), help="folder of conformance cases (JSON files)")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrise `case` with every case, and `built_case` with those whose operator there is."""
    cases = _cases(Path(metafunc.config.getoption("--cases")))
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", list(cases.values()), ids=list(cases))
    if "built_case" in metafunc.fixturenames:
        built = {name: case for name, case in cases.items() if missing(case) is None}
        metafunc.parametrize("built_case", list(built.values()), ids=list(built))


@pytest.fixture
def built_cases(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    """All cases whose operator there is."""
    cases = _cases(Path(request.config.getoption("--cases")))
    return [case for case in cases.values() if missing(case) is None]


def _cases(folder: Path) -> dict[str, dict[str, Any]]:
    return {
        f"{path.stem}-{case['name']}": settled(case)
        for path in sorted(folder.glob("*.json"))
        for case in json.loads(path.read_text())
    }
