import json

import pytest

from bench import __main__ as bench
from bench.report import Figure


@pytest.mark.spark
@pytest.mark.long
def test_bench_quick_takes_a_measurement_and_writes_it(tmp_path, capsys):
    file = tmp_path / "bench.json"
    assert bench.main(["--quick", "--only", "startup", "--output", str(file)]) == 0
    written = json.loads(file.read_text())
    (figure,) = written["figures"]
    assert figure["unit"] == "s"
    assert figure["value"] > 0
    assert written["scale"] == "quick"
    assert "first output record" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("figure", "met"),
    [
        (Figure("a", 2.0, "x", at_least=2.0), True),
        (Figure("a", 1.9, "x", at_least=2.0), False),
        (Figure("a", 1.9, "x", at_most=2.0), True),
        (Figure("a", 2.1, "x", at_most=2.0), False),
        (Figure("a", 2.1, "s"), None),
    ],
)
def test_figure_meets_its_target(figure, met):
    assert figure.met is met
