"""Settings of the process that the workers would not share are refused; inside a function they are part of it."""

from __future__ import annotations

import calendar
import copyreg
import csv
import decimal
import fractions
import json
import locale
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from everstate.engine.query.job import pickled
from everstate.errors import FingerprintError
from everstate.fingerprints import print_unit
from tests.unit.fingerprints.program import loaded

SERVICE = """
import everstate as es
{before}

{decorator}
def fn(row):
    return {result}

app = es.Service("s")
app.table("in", schema={{"a": str}}).filter(fn).to("out")
"""
DOUBLED = """class Doubled:
    def __init__(self, series):
        self.series = series
    def total(self):
        return self.series.sum() * 2"""
#: A statement at the top of a module, and a function that depends on it.
MADE = {
    "precision": ("import decimal\ndecimal.getcontext().prec = 5", "decimal.Decimal(1) / 3"),
    "precision of rows' decimals": ("import decimal\ndecimal.getcontext().prec = 5", "row['a'] / 3"),
    "rounding": ("import decimal\ndecimal.getcontext().rounding = 'ROUND_UP'", "round(row['a'], 2)"),
    "traps": ("import decimal\ndecimal.getcontext().traps[decimal.Inexact] = True", "row['a'] / 3"),
    "context": ("import decimal\ndecimal.setcontext(decimal.ExtendedContext)", "row['a'] / 3"),
    "context of threads": ("import decimal\ndecimal.DefaultContext.prec = 9", "row['a'] / 3"),
    "errors of NumPy": ("import numpy as np\nnp.seterr(divide='raise')", "np.divide(1, 0)"),
    "texts of NumPy": ("import numpy as np\nnp.set_printoptions(precision=2)", "str(np.float64(1) / np.arange(3))"),
    "option of pandas": ("import pandas as pd\npd.set_option('mode.copy_on_write', True)", "pd.DataFrame([1])"),
    "texts of pandas": ("import pandas as pd\npd.set_option('display.precision', 2)", "str(pd.DataFrame([1]))"),
    "texts of Polars": ("import polars as pl\npl.Config.set_tbl_rows(2)", "f'{pl.DataFrame([1])}'"),
    "first day of the week": ("import calendar\ncalendar.setfirstweekday(6)", "calendar.monthcalendar(2024, 1)"),
    "dialect": ("import csv\ncsv.register_dialect('m', delimiter=';')", "list(csv.reader(row['a'], 'm'))"),
    "longest field": ("import csv\ncsv.field_size_limit(10)", "list(csv.reader(row['a']))"),
    "digits of numbers": ("import sys\nsys.set_int_max_str_digits(1000)", "int(row['a'])"),
    "depth of recursion": (
        "import sys\nsys.setrecursionlimit(5000)\ndef deep(n):\n    return n and deep(n - 1)",
        "deep(row['a'])",
    ),
    "function of a library": ("import textwrap\ntextwrap.dedent = lambda text: 'x'", "textwrap.dedent(row['a'])"),
    "method of a library": (
        "import json\ndef default(self, thing):\n    return 1\njson.JSONEncoder.default = default",
        "json.JSONEncoder().encode(row)",
    ),
    "base class's method": (
        (
            "import json\ndef default(self, thing):\n    return 1\njson.JSONEncoder.default = default\n"
            "class Encoder(json.JSONEncoder):\n    pass"
        ),
        "Encoder().encode(row)",
    ),
    "property of a library": (
        "import fractions\nfractions.Fraction.doubled = property(lambda self: self * 2)",
        "fractions.Fraction(1).doubled == 2",
    ),
    "partial method of a library": (
        (
            "import fractions, functools\n"
            "fractions.Fraction.doubled = functools.partialmethod(lambda self, by: self * by, 2)"
        ),
        "fractions.Fraction(1).doubled() == 2",
    ),
    "accessor of pandas": (
        "import pandas as pd\n@pd.api.extensions.register_series_accessor('doubled')\n" + DOUBLED,
        "pd.DataFrame({'a': [1]})['a'].doubled.total() == 2",
    ),
    "namespace of Polars": (
        "import polars as pl\n@pl.api.register_series_namespace('doubled')\n" + DOUBLED,
        "pl.DataFrame({'a': [1]})['a'].doubled.total() == 2",
    ),
    "how objects are copied": (
        (
            "import copy, copyreg\nclass Pair:\n    def __init__(self, one):\n        self.one = one\n"
            "copyreg.pickle(Pair, lambda pair: (Pair, (pair.one + 1,)))"
        ),
        "copy.copy(Pair(1)).one == 2",
    ),
}
#: Two ways to say it inside the function, which are two meanings.
INSIDE = {
    "precision": (
        "import decimal\ndef part(v):\n    with decimal.localcontext() as c:\n        c.prec = {}\n        return v / 3"
    ),
    "context": "import decimal\nCONTEXT = decimal.Context(prec={})\ndef part(v):\n    return CONTEXT.divide(v, 3)",
    "errors of NumPy": (
        "import numpy as np\ndef part(v):\n    with np.errstate(divide=('ignore', 'raise')[{} - 5]):\n"
        "        return np.divide(1, v)"
    ),
    "option of pandas": (
        "import pandas as pd\ndef part(v):\n    with pd.option_context('display.precision', {}):\n"
        "        return str(pd.Series([v]))"
    ),
    "first day of the week": (
        "import calendar\ndef part(v):\n    return calendar.Calendar({}).monthdayscalendar(2024, 1)"
    ),
    "delimiter": "import csv\ndef part(v):\n    return list(csv.reader([v], delimiter=str({})))",
}


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch):
    """What the tests change is changed back."""
    monkeypatch.setattr(textwrap, "dedent", textwrap.dedent)
    monkeypatch.setattr(json.JSONEncoder, "default", json.JSONEncoder.default)
    monkeypatch.setattr(copyreg, "dispatch_table", dict(copyreg.dispatch_table))
    default, errors, shown = decimal.DefaultContext.prec, np.geterr(), np.get_printoptions()
    limit, digits, depth = csv.field_size_limit(), sys.get_int_max_str_digits(), sys.getrecursionlimit()
    with decimal.localcontext(), pd.option_context("mode.copy_on_write", False, "display.precision", 6), pl.Config():
        yield
    decimal.DefaultContext.prec = default
    np.seterr(**errors)
    np.set_printoptions(**shown)
    csv.field_size_limit(limit)
    sys.set_int_max_str_digits(digits)
    sys.setrecursionlimit(depth)
    calendar.setfirstweekday(0)
    if "m" in csv.list_dialects():
        csv.unregister_dialect("m")
    for kind in (fractions.Fraction, pd.Series, pl.Series):
        if hasattr(kind, "doubled"):
            del kind.doubled
        getattr(kind, "_accessors", set()).discard("doubled")


def service(folder: Path, before: str, result: str, decorator: str = ""):
    text = SERVICE.format(before=before, result=result, decorator=decorator)
    return loaded(folder, {"__init__": "", "service": text}).app


def printed(folder: Path, before: str, result: str, decorator: str = ""):
    return print_unit(service(folder, before, result, decorator).units()[0], policy="dead-letter", settings={})


@pytest.mark.parametrize(("before", "result"), MADE.values(), ids=MADE)
def test_setting_that_a_module_makes_is_refused_where_a_function_depends_on_it(before, result, tmp_path: Path) -> None:
    with pytest.raises(FingerprintError, match=r"in this process, but not in the workers") as caught:
        printed(tmp_path, before, result)
    assert "@es.declare(" in caught.value.hint
    assert caught.value.location is not None
    assert caught.value.location.file == str(tmp_path / "shop" / "service.py")


@pytest.mark.parametrize(("before", "result"), MADE.values(), ids=MADE)
def test_setting_that_a_module_makes_is_accepted_if_it_is_declared(before, result, tmp_path: Path) -> None:
    assert printed(tmp_path, before, result, '@es.declare(version="1")').fingerprint


@pytest.mark.parametrize(
    "name", ["errors of NumPy", "option of pandas", "first day of the week", "longest field", "accessor of pandas"]
)
def test_setting_of_a_module_that_no_function_reaches_is_accepted(name, tmp_path: Path) -> None:
    assert printed(tmp_path, MADE[name][0], "row['a']").fingerprint


def test_setting_made_in_another_module_is_refused(tmp_path: Path) -> None:
    text = SERVICE.format(before="import shop.setup", result="row['a'] / 3", decorator="")
    setup = "import decimal\ndecimal.getcontext().prec = 3\n"
    app = loaded(tmp_path, {"__init__": "", "service": text, "setup": setup}).app
    with pytest.raises(FingerprintError, match=r"decimal\.getcontext was changed"):
        print_unit(app.units()[0], policy="fail", settings={})


def test_locale_of_the_process_is_refused(tmp_path: Path) -> None:
    names = [name for name in ("de_DE.UTF-8", "en_US.UTF-8", "fr_FR.UTF-8") if _has_locale(name)]
    if not names:
        pytest.skip("this machine has no other locale")
    before = locale.setlocale(locale.LC_TIME)
    try:
        with pytest.raises(FingerprintError, match=r"locale\.setlocale was changed"):
            printed(
                tmp_path, f"import locale\nlocale.setlocale(locale.LC_TIME, {names[0]!r})", "row['a'].strftime('%A')"
            )
    finally:
        locale.setlocale(locale.LC_TIME, before)


def _has_locale(name: str) -> bool:
    before = locale.setlocale(locale.LC_TIME)
    try:
        locale.setlocale(locale.LC_TIME, name)
    except locale.Error:
        return False
    locale.setlocale(locale.LC_TIME, before)
    return True


@pytest.mark.parametrize("before", INSIDE.values(), ids=INSIDE)
def test_setting_inside_a_function_is_part_of_its_meaning(before, tmp_path: Path) -> None:
    seen = [printed(tmp_path / str(n), before.format(n), "part(row['a'])").fingerprint for n in (5, 6, 5)]
    assert seen[0] == seen[2] != seen[1]


def test_function_in_a_new_process_calculates_with_the_settings_of_a_new_process(tmp_path: Path) -> None:
    """What is refused is refused for a reason: a module's statements are not run where its functions go by value."""
    before = "import decimal\ndecimal.getcontext().prec = 3"
    unit = service(tmp_path, before, "str(decimal.Decimal(1) / 3)").units()[0]
    (tmp_path / "unit").write_bytes(pickled(unit))
    program = (
        "import sys; from pathlib import Path; from pyspark import cloudpickle\n"
        "unit = cloudpickle.loads(Path(sys.argv[1]).read_bytes())\n"
        "print(next(node.predicate.call({}) for node in unit.nodes if hasattr(node, 'predicate')))"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "unit")]
    found = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout.strip()
    here = next(node.predicate.call({}) for node in unit.nodes if hasattr(node, "predicate"))
    assert (here, found) == ("0.333", "0.3333333333333333333333333333")
