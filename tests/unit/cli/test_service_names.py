"""Services in packages: by module, by file, from any folder; their code is the user's, wherever it lies."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from everstate.cli.service_loading import load_service
from everstate.cli.service_names import Target, package_of
from everstate.errors import DefinitionError

RULES = """
LATE = {late}

def is_late(row) -> bool:
    return row["minutes"] > LATE
"""
ORDERS = """
import everstate as es

from . import rules
from .rules import is_late

app = es.Service("orders")
trips = app.table("trips", key="id", schema={"id": str, "minutes": float})
trips.filter(is_late).filter(lambda row: rules.is_late(row)).to("late")
"""
#: Prints the fingerprint of a service's only output, and what its functions say of a row after a way through pickle.
PROGRAM = """
import pickle, sys
from everstate.cli.service_loading import load_service
from everstate.engine.query.by_value import pickled
from everstate.fingerprints.outputs import print_unit

(unit,) = load_service(sys.argv[1]).units()
payload = pickled(unit)
if len(sys.argv) > 2:
    open(sys.argv[2], "wb").write(payload)
print(print_unit(unit, policy="fail", settings={}).fingerprint)
"""
LOADING = """
import pickle, sys
unit = pickle.load(open(sys.argv[1], "rb"))
calls = [node.predicate.call for node in unit.nodes if hasattr(node, "predicate")]
print([call({"minutes": 20.0}) for call in calls], "shop" in sys.modules)
"""


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    """Modules of one test are not those of the next."""
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with its package under `src`; the working directory is the project's."""
    folder = tmp_path / "project"
    package(folder / "src" / "shop")
    monkeypatch.chdir(folder)
    return folder


def package(folder: Path, late: float = 15.0, *, regular: bool = True) -> Path:
    folder.mkdir(parents=True)
    if regular:
        (folder / "__init__.py").touch()
    (folder / "rules.py").write_text(RULES.format(late=late))
    (folder / "orders.py").write_text(ORDERS)
    return folder


def python(program: str, *arguments: object, cwd: Path) -> str:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize(
    ("text", "place", "attribute"),
    [
        ("shop.orders", "shop.orders", None),
        ("shop.orders:app", "shop.orders", "app"),
        ("shop:web.app", "shop", "web.app"),
        ("orders.py:my-service", "orders.py", "my-service"),
        ("src/shop/orders.py", "src/shop/orders.py", None),
        ("a:b.py", "a", "b.py"),
    ],
)
def test_target_is_a_file_or_a_module_with_or_without_a_name(text, place, attribute):
    found = Target.of(text)
    assert (found.place, found.attribute) == (place, attribute)
    assert (found.file is None) == (not place.endswith(".py"))


@pytest.mark.parametrize("text", ["", "shop..orders", "1shop", "shop orders", "shop.orders:", ":app"])
def test_target_that_is_neither_is_refused(text):
    with pytest.raises(DefinitionError, match="neither a file nor a module"):
        Target.of(text)


@pytest.mark.parametrize("target", ["shop.orders", "shop.orders:app", "shop.orders:orders", "src/shop/orders.py"])
def test_service_in_a_package_is_loaded_by_its_dotted_name(project, target):
    assert load_service(target).name == "orders"
    assert sys.modules["shop.orders"].__file__ == str(project / "src" / "shop" / "orders.py")
    assert "orders" not in sys.modules


@pytest.mark.parametrize("target", ["shop.orders", "src/shop/orders.py", "orders.py"])
def test_service_is_loaded_as_its_file_is_now(project, target, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (project / "orders.py").write_text("import everstate as es\n\napp = es.Service('orders')\n")
    file = project / ("orders.py" if target == "orders.py" else "src/shop/orders.py")
    assert load_service(target).name == "orders"
    before = file.stat()
    # As long, and of the same second: all that Python goes by where it has compiled a module before.
    file.write_text(re.sub(r"Service\(.orders.\)", "Service('edited')", file.read_text()))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert load_service(target).name == "edited"


def test_neighbours_of_a_service_are_as_their_files_are_now(project, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (project / "limit.py").write_text("LEAST = 1\n")
    (project / "orders.py").write_text("import everstate as es\nimport limit\n\napp = es.Service(f's{limit.LEAST}')\n")
    assert load_service("orders.py").name == "s1"
    before = (project / "limit.py").stat()
    (project / "limit.py").write_text("LEAST = 7\n")
    os.utime(project / "limit.py", ns=(before.st_atime_ns, before.st_mtime_ns))
    del sys.modules["limit"]
    assert load_service("orders.py").name == "s7"


def test_package_of_the_same_name_elsewhere_takes_the_place_of_the_first(project, tmp_path):
    load_service("src/shop/orders.py")
    other = package(tmp_path / "other" / "shop", late=30.0)
    load_service(other / "orders.py")
    assert sys.modules["shop.rules"].LATE == 30.0


def test_package_in_a_package_begins_at_the_topmost(tmp_path):
    inner = package(tmp_path / "acme" / "shop")
    (tmp_path / "acme" / "__init__.py").touch()
    assert package_of(inner / "orders.py") == (tmp_path, "acme.shop.orders")
    assert package_of(inner / "__init__.py") == (tmp_path, "acme.shop")


@pytest.mark.parametrize("marker", ["src", "pyproject.toml", "everstate.toml"])
def test_namespace_package_begins_where_the_project_does(tmp_path, marker):
    root = tmp_path / ("src" if marker == "src" else "project")
    inner = package(root / "acme" / "shop", regular=False)
    if marker != "src":
        (root / marker).touch()
    assert package_of(inner / "orders.py") == (root, "acme.shop.orders")
    assert load_service(inner / "orders.py").name == "orders"


def test_relative_import_outside_of_any_package_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    folder = package(tmp_path / "no-package" / "deep-er", regular=False)
    with pytest.raises(DefinitionError, match="relative import") as caught:
        load_service(folder / "orders.py")
    assert "__init__.py" in str(caught.value.hint)


def test_file_in_a_package_without_relative_imports_still_finds_its_neighbours(tmp_path):
    folder = package(tmp_path / "shop")
    (folder / "orders.py").write_text(ORDERS.replace("from . import", "import").replace("from .rules", "from rules"))
    assert load_service(folder / "orders.py").name == "orders"


def test_package_named_like_one_of_pythons_does_not_replace_it(tmp_path):
    folder = package(tmp_path / "json")
    (folder / "orders.py").write_text('import everstate as es\napp = es.Service("one")\n')
    assert load_service(folder / "orders.py").name == "one"
    assert sys.modules["json"] is json


def test_module_that_is_not_there_names_the_nearest(project):
    with pytest.raises(DefinitionError, match=r"no module shop\.order\b") as caught:
        load_service("shop.order")
    assert caught.value.hint == "Did you mean shop.orders?"
    with pytest.raises(DefinitionError, match="no module elsewhere") as caught:
        load_service("elsewhere.orders")
    assert str(project / "src") in str(caught.value.hint)


def test_module_whose_own_import_is_missing_is_not_called_missing(project):
    (project / "src/shop/orders.py").write_text("import not_there_at_all\n")
    with pytest.raises(DefinitionError, match=r"shop\.orders cannot be loaded: ModuleNotFoundError") as caught:
        load_service("shop.orders")
    assert caught.value.location.line == 1


def test_error_in_a_neighbour_points_at_its_line(project):
    (project / "src/shop/rules.py").write_text("\n\n1 / 0\n")
    with pytest.raises(DefinitionError, match="ZeroDivisionError") as caught:
        load_service("src/shop/orders.py")
    assert str(caught.value.location) == f"{project}/src/shop/rules.py:3"


def test_several_services_are_listed_as_they_are_typed(project):
    (project / "src/shop/orders.py").write_text(ORDERS + 'other = es.Service("two")\n')
    with pytest.raises(DefinitionError, match="several services: orders, two") as caught:
        load_service("shop.orders")
    assert "shop.orders:app (service orders), shop.orders:other (service two)" in str(caught.value.hint)
    assert load_service("shop.orders:other").name == "two"
    with pytest.raises(DefinitionError, match="nothing called 'third'"):
        load_service("shop.orders:third")
    with pytest.raises(DefinitionError, match="something other than a service called 'trips'"):
        load_service("shop.orders:trips")


@pytest.mark.slow
def test_fingerprint_is_the_same_by_module_by_file_and_from_any_folder(project, tmp_path):
    src, shop = project / "src", project / "src" / "shop"
    ways = [
        ("shop.orders:app", project),
        ("shop.orders", src),
        ("src/shop/orders.py", project),
        ("orders.py", shop),
        (shop / "orders.py", tmp_path),
    ]
    found = {python(PROGRAM, target, cwd=folder) for target, folder in ways}
    assert len(found) == 1
    package(tmp_path / "elsewhere" / "shop")
    assert {python(PROGRAM, "shop.orders", cwd=tmp_path / "elsewhere")} == found
    (shop / "rules.py").write_text(RULES.format(late=30.0))
    assert {python(PROGRAM, "shop.orders", cwd=project)}.isdisjoint(found)


@pytest.mark.slow
def test_code_of_a_package_is_archived_by_value(project, tmp_path):
    python(PROGRAM, "shop.orders", tmp_path / "code", cwd=project)
    (project / "src" / "shop").rename(tmp_path / "gone")
    assert python(LOADING, tmp_path / "code", cwd=tmp_path) == "[True, True] False"


@pytest.mark.slow
def test_code_of_an_installed_package_is_archived_by_value(tmp_path):
    """A new version may be installed while this one is still needed, for a rollback or as the active one."""
    site = tmp_path / "lib" / "site-packages"
    package(site / "shop")
    info = site / "shop-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shop\nVersion: 1.0\n")
    names = ["shop/__init__.py", "shop/orders.py", "shop/rules.py"]
    (info / "RECORD").write_text("".join(f"{name},,\n" for name in names))
    prefix = f"import sys; sys.path.insert(0, {str(site)!r}); sys.prefix = {str(tmp_path)!r}\n"
    python(prefix + PROGRAM, "shop.orders", tmp_path / "code", cwd=tmp_path)
    (site / "shop").rename(tmp_path / "gone")
    assert python(prefix + LOADING, tmp_path / "code", cwd=tmp_path) == "[True, True] False"
