"""Packages that functions reach, by version."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from everstate.errors import FingerprintError
from everstate.fingerprints import print_unit
from everstate.fingerprints.outside import distributions, origins
from tests.unit.fingerprints.program import loaded

SERVICE = """
import everstate as es
{before}

@es.declare(pure=["acme"])
def fn(row):
    return {body}

app = es.Service("s")
app.table("in", schema={{"a": str}}).filter(fn).to("out")
"""


def install(site: Path, name: str, version: str, files: dict[str, str], requires: tuple[str, ...] = ()) -> None:
    """A distribution as pip would leave it."""
    for path, text in files.items():
        file = site / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    about = site / f"{name}-{version}.dist-info"
    about.mkdir(parents=True)
    needs = "".join(f"Requires-Dist: {need}\n" for need in requires)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}")
    listed = [*files, f"{about.name}/METADATA", f"{about.name}/RECORD"]
    (about / "RECORD").write_text("".join(f"{path},,\n" for path in listed))


def forget() -> None:
    """Look at what is installed anew, as a new process would."""
    for known in (distributions.owner_of, distributions.owner_of_top, distributions.versions_of):
        known.cache_clear()
    for known in (distributions._records, origins._of_file):
        known.cache_clear()
    for name in [name for name in sys.modules if name.startswith(("acme", "acmebase"))]:
        del sys.modules[name]


@pytest.fixture(autouse=True)
def without_bytecode(monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # files change within the second that bytecode is dated by


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    forget()
    yield folder
    forget()


def acme(site: Path, version: str = "1.0", base: str = "2.0") -> None:
    code = "import acmebase\nTABLE = {1: 2}\ndef rate(x):\n    return acmebase.half(x)\nclass Rater:\n    pass\n"
    install(site, "acme_rates", version, {"acme/__init__.py": code}, ("acme-base>=1", "other; extra == 'more'"))
    install(site, "acme_base", base, {"acmebase.py": "def half(x):\n    return x\n"})


def printed(folder: Path, before: str, body: str):
    text = SERVICE.format(before=before, body=body)
    app = loaded(folder, {"__init__": "", "service": text}).app
    return print_unit(app.units()[0], policy="dead-letter", settings={})


REACHED = {
    "module": ("import acme", "acme.rate(1)"),
    "function": ("from acme import rate", "rate(1)"),
    "class": ("from acme import Rater", "Rater()"),
    "instance": ("from acme import Rater\nrater = Rater()", "rater"),
    "helper": ("import acme\ndef helper():\n    return acme.rate(2)", "helper()"),
    "default": ("import acme\ndef helper(rate=acme.rate):\n    return rate(2)", "helper()"),
}


@pytest.mark.parametrize(("before", "body"), REACHED.values(), ids=REACHED)
def test_package_that_a_function_reaches_is_named_with_what_it_needs(before, body, site, tmp_path: Path) -> None:
    acme(site)
    assert printed(tmp_path, before, body).packages == {"acme-rates": "1.0", "acme-base": "2.0"}


@pytest.mark.parametrize(("before", "body"), REACHED.values(), ids=REACHED)
def test_package_that_nobody_has_looked_at_is_refused_unless_it_is_declared_pure(before, body, site, tmp_path) -> None:
    acme(site)
    text = SERVICE.format(before=before, body=body).replace('@es.declare(pure=["acme"])', "")
    app = loaded(tmp_path, {"__init__": "", "service": text}).app
    with pytest.raises(FingerprintError, match=r"acme.* is not known to depend on its arguments alone") as caught:
        print_unit(app.units()[0], policy="fail", settings={})
    assert '@es.declare(pure=["acme"])' in caught.value.hint
    assert caught.value.location is not None


def test_package_that_is_imported_inside_a_function_is_named_without_loading_it(site, tmp_path: Path) -> None:
    acme(site)
    before = "def helper():\n    from acme import rate\n    return rate(2)"
    assert printed(tmp_path, before, "helper()").packages == {"acme-rates": "1.0", "acme-base": "2.0"}
    assert "acme" not in sys.modules


@pytest.mark.parametrize("versions", [("1.1", "2.0"), ("1.0", "2.1")])
def test_package_of_another_version_changes_the_fingerprint(versions, tmp_path: Path, monkeypatch) -> None:
    seen = []
    for number, (version, base) in enumerate([("1.0", "2.0"), versions]):
        site = tmp_path / str(number) / "site-packages"
        acme(site, version, base)
        with monkeypatch.context() as here:
            here.syspath_prepend(str(site))
            forget()
            seen.append(printed(tmp_path / str(number), "import acme", "acme.rate(1)").fingerprint)
    forget()
    assert seen[0] != seen[1]


def test_package_that_is_not_reached_is_not_named(site, tmp_path: Path) -> None:
    acme(site)
    assert printed(tmp_path, "import acme", "1").packages == {}


def test_function_that_a_package_decorated_is_still_seen(site, tmp_path: Path) -> None:
    inside = "    @functools.wraps(fn)\n    def call(*a):\n        return fn(*a)\n    return call\n"
    code = f"import functools\ndef traced(fn):\n{inside}"
    install(site, "acme", "1.0", {"acme.py": code})
    before = "import acme\n@acme.traced\ndef helper(x):\n    return x > {}"
    one, other = (printed(tmp_path / str(n), before.format(n), "helper(1)") for n in (1, 2))
    assert one.packages == {"acme": "1.0"}
    assert one.fingerprint != other.fingerprint


def test_argument_of_a_wrapper_that_was_put_around_a_decorated_function_by_hand_counts(site, tmp_path: Path) -> None:
    inside = "    @functools.wraps(fn)\n    def call(*a):\n        return fn(*a) * times\n    return call\n"
    install(site, "acme", "1.0", {"acme.py": f"import functools\ndef traced(fn, times=1):\n{inside}"})
    before = "import acme\n@acme.traced\ndef one(x):\n    return x\nhelper = acme.traced(one, {})"
    one, other = (printed(tmp_path / str(n), before.format(n), "helper(1)") for n in (2, 3))
    assert one.fingerprint != other.fingerprint


def test_annotations_of_a_function_that_a_package_decorated_count(site, tmp_path: Path) -> None:
    install(site, "acme", "1.0", {"acme.py": "def checked(fn):\n    return fn\n"})
    before = "import acme\n@acme.checked\ndef helper(x: {}):\n    return x"
    one, other = (printed(tmp_path / kind, before.format(kind), "helper(1)") for kind in ("int", "str"))
    assert one.fingerprint != other.fingerprint


def test_module_among_packages_that_belongs_to_none_counts_by_content(site, tmp_path: Path) -> None:
    seen = []
    for number in (1, 2):
        (site / "acme.py").write_text(f"def rate(x):\n    return x + {number}\n")
        forget()
        seen.append(printed(tmp_path / str(number), "import acme", "acme.rate(1)"))
    assert seen[0].packages == {}
    assert seen[0].fingerprint != seen[1].fingerprint


def test_service_that_is_installed_as_a_package_counts_by_content(site, tmp_path: Path) -> None:
    acme(site)
    seen = []
    for number in (1, 2):
        before = f"import acme\nfrom shop.rules import least\nX = {number}"
        text = SERVICE.format(before=before, body="least() + acme.rate(1)")
        files = {
            "shop/__init__.py": "",
            "shop/service.py": text,
            "shop/rules.py": f"def least():\n    return {number}\n",
        }
        for about in site.glob("shop-*/*"):
            about.unlink()
        for about in site.glob("shop-*"):
            about.rmdir()
        install(site, "shop", "0.1", files)
        forget()
        app = loaded(site, {}).app
        seen.append(print_unit(app.units()[0], policy="dead-letter", settings={}))
    assert seen[0].packages == {"acme-rates": "1.0", "acme-base": "2.0"}
    assert seen[0].fingerprint != seen[1].fingerprint


def test_time_zones_that_are_reached_are_named_with_the_version_of_their_data(tmp_path: Path) -> None:
    described = printed(tmp_path, "from zoneinfo import ZoneInfo", "ZoneInfo('Europe/Berlin')")
    assert described.packages == {"tzdata": distributions.zone_data_version()}


def test_libraries_below_everstate_are_not_named(tmp_path: Path) -> None:
    assert printed(tmp_path, "import polars as pl", "pl.Series([1]).sum() + es.lit(1)").packages == {}


def test_standard_library_is_not_named(tmp_path: Path) -> None:
    assert printed(tmp_path, "import json, math", "math.floor(json.loads(row['a']))").packages == {}
