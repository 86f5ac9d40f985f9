"""Functions whose results depend on more than their row are refused or declared; ordinary ones are neither."""

from __future__ import annotations

import itertools
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from everstate.errors import FingerprintError
from everstate.fingerprints import print_unit

SERVICE = """
import everstate as es
{before}

{decorator}
def fn(row):
    return {result}

app = es.Service("s")
app.table("in", schema={{"a": str}}).filter(fn).to("out")
"""
NUMBERS = itertools.count()
PROBES = Path(__file__).parent
#: By file in `impure/`, what a hint names to declare.
WORDS = {
    "clock": "clock=True",
    "random": "random=True",
    "files": "files=",
    "network": "network=",
    "environment": "environment=",
    "settings": "",
    "code": "version=",
    "unknown": "pure=",
    "several": "",
}
EVERYTHING = '@es.declare(clock=True, random=True, files=[{!r}], network="a", environment=["A"], version="1")'


def probes(group: str) -> list[str]:
    """The probes of a file: the last line of each is the result, what stands above it is at the top of the module."""
    texts = (PROBES / f"{group}.txt").read_text(encoding="utf-8").split("\n\n")
    return [text.strip() for text in texts if text.strip()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("probes")


def printed(folder: Path, probe: str, decorator: str = ""):
    """The print of a service in a file of its own, which is run without being imported: that is quicker."""
    *before, result = probe.split("\n")
    text = SERVICE.format(before="\n".join(before), result=result, decorator=decorator)
    file = folder / f"probe_{next(NUMBERS)}.py"
    file.write_text(text)
    module = ModuleType(file.stem)
    module.__file__ = str(file)
    sys.modules[file.stem] = module
    exec(compile(text, str(file), "exec"), vars(module))
    return print_unit(module.app.units()[0], policy="dead-letter", settings={})


IMPURE = [
    pytest.param(probe, word, id=f"{group}: {probe.splitlines()[-1]}")
    for group, word in WORDS.items()
    for probe in probes(f"impure/{group}")
]
PURE = [
    pytest.param(probe, id=probe.splitlines()[-1]) for probe in [*probes("pure/standard"), *probes("pure/packages")]
]


@pytest.mark.parametrize(("probe", "word"), IMPURE)
def test_function_with_an_effect_is_refused_with_its_line_and_a_way_out(probe, word, folder: Path) -> None:
    with pytest.raises(FingerprintError, match=r"^fn: ") as caught:
        printed(folder, probe)
    assert f"@es.declare({word}" in caught.value.hint
    assert caught.value.location is not None
    file = Path(caught.value.location.file)
    assert file.parent == folder
    assert re.search(r"\w", file.read_text().splitlines()[caught.value.location.line - 1])


@pytest.mark.parametrize("group", WORDS)
def test_functions_with_effects_that_are_declared_are_accepted(group, folder: Path) -> None:
    for probe in probes(f"impure/{group}"):
        assert printed(folder, probe, EVERYTHING.format(__file__)).fingerprint


@pytest.mark.parametrize("probe", PURE)
def test_ordinary_function_is_accepted(probe, folder: Path) -> None:
    assert printed(folder, probe).fingerprint
