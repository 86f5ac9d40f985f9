"""Holds the rules of CONTRIBUTING.md that no linter knows."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

import everstate
import everstate.log

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "everstate"
MODULES = sorted(PACKAGE.rglob("*.py"))
SOURCES = sorted(
    path for top in ("src", "tests", "examples", "bench", "scripts") for path in (ROOT / top).rglob("*.py")
)
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])

#: Limits for modules of the package, and for tests, which may be tables of cases.
MODULE_LINES, TEST_LINES = 400, 600
PACKAGE_MODULES = 20
FUNCTION_LINES = 60
VAGUE = {"utils", "util", "common", "helpers", "helper", "misc", "base"}

_LINK = re.compile(r"\]\((?!\w+:)(?P<target>[^)#\s]+)")
_CODE = re.compile(r"`(?P<code>[^`\n]+)`")
_PATH = re.compile(r"(?:src|tests|docs|examples|bench|scripts|\.ci)/[\w./*-]*")
_MAKE = re.compile(r"\bmake (?P<target>[a-z][a-z-]*)")


def name_of(path):
    return str(path.relative_to(ROOT))


def without_fences(page):
    return re.sub(r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def imports_at_run_time(tree):
    """The modules that a module imports anywhere, but for those that only annotations need."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            pending.extend(node.orelse)
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
        pending.extend(ast.iter_child_nodes(node))


def test_modules_are_short_enough_to_read():
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    limits = {path: MODULE_LINES if path.is_relative_to(PACKAGE) else TEST_LINES for path in SOURCES}
    assert {name_of(path): lines for path, lines in lengths.items() if lines > limits[path]} == {}


def test_packages_are_small_enough_to_know():
    sizes = Counter(name_of(path.parent) for path in MODULES if path.name != "__init__.py")
    assert {package: size for package, size in sizes.items() if size > PACKAGE_MODULES} == {}


def test_functions_fit_on_a_screen():
    long = [
        f"{path.relative_to(PACKAGE)} {node.name}"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and (node.end_lineno or 0) - node.lineno >= FUNCTION_LINES
    ]
    assert long == []


def test_count_says_what_is_there():
    told = subprocess.run(["sh", "scripts/count.sh"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    counts = {name: int(number) for name, number in re.findall(r"^(\S.*): (\d+)$", told, flags=re.MULTILINE)}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert len(counts) == 7
    assert counts["modules, those of most lines (at most 400)"] == len(MODULES)
    assert counts["functions over 60 lines"] == 0
    assert counts["import contracts"] == len(project["tool"]["importlinter"]["contracts"])


def test_modules_are_named_after_their_subject():
    assert [path for path in MODULES if VAGUE.intersection(path.relative_to(PACKAGE).with_suffix("").parts)] == []


def test_modules_import_pyspark_only_where_spark_is_driven():
    offenders = []
    for path in MODULES:
        place = path.relative_to(PACKAGE)
        drives_spark = place.parts[0] == "engine" or (place.parts[0] == "log" and place.name.startswith("spark_"))
        imported = {name.split(".")[0] for name in imports_at_run_time(ast.parse(path.read_text(encoding="utf-8")))}
        if not drives_spark and imported & {"pyspark", "py4j"}:
            offenders.append(name_of(path))
    assert offenders == []


def test_packages_have_a_place_in_the_import_order():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    placed = {name.strip(" ()") for layer in layers for name in layer.split("|")}
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert packages <= placed, f"give {packages - placed} a place in [tool.importlinter]"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_page_links_lead_somewhere(page):
    targets = [match["target"] for match in _LINK.finditer(without_fences(page))]
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_page_names_only_paths_that_exist(page):
    codes = (match["code"] for match in _CODE.finditer(without_fences(page)))
    paths = [code for code in codes if _PATH.fullmatch(code)]
    assert [path for path in paths if not list(ROOT.glob(path.rstrip("/")))] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_page_names_only_make_targets_that_exist(page):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    text = page.read_text(encoding="utf-8")
    shown = [code["code"] for code in _CODE.finditer(text)] + re.findall(r"^ *\$ (.*)$", text, flags=re.MULTILINE)
    named = {match["target"] for code in shown for match in _MAKE.finditer(code)}
    assert named <= targets


def test_make_help_lists_every_documented_command():
    listed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for command in ("setup", "demo", "quick", "test", "test-all", "bench", "lint", "format"):
        assert re.search(rf"^make {command} ", listed, flags=re.MULTILINE)


def test_processes_that_spark_starts_to_ask_about_a_query_load_no_kernels():
    modules = "everstate.engine.query.job, everstate.engine.query.processor, everstate.engine.query.source"
    program = f"import sys, {modules}; print(sorted(sys.modules.keys() & {{'numpy', 'polars', 'pyarrow'}}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_package_gives_every_name_that_it_announces():
    assert all(getattr(everstate, name) is not None for name in everstate.__all__)
    assert all(getattr(everstate.log, name) is not None for name in everstate.log.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Sevrice'"):
        _ = everstate.Sevrice


def test_no_file_has_marks_of_a_merge_that_was_not_finished():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    marks = re.compile(rb"^(?:<{7} |>{7} )", flags=re.MULTILINE)
    files = [ROOT / name for name in listed.split("\0") if name]
    assert [str(file) for file in files if file.is_file() and marks.search(file.read_bytes())] == []
