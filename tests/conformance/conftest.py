from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.conformance.services import missing

if TYPE_CHECKING:
    import pytest

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


def _cases(folder: Path) -> dict[str, dict[str, Any]]:
    return {
        f"{path.stem}-{case['name']}": case
        for path in sorted(folder.glob("*.json"))
        for case in json.loads(path.read_text())
    }
