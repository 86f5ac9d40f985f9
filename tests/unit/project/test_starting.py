"""A new project runs and its tests are green as it is written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from everstate.errors import ConfigurationError
from everstate.project.starting import start_project


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("EVERSTATE_")}
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def project(tmp_path):
    start_project("my-shop", tmp_path)
    return tmp_path / "my-shop"


def test_every_file_has_its_name_and_nothing_of_the_template_is_left(project):
    files = {str(path.relative_to(project)) for path in project.rglob("*") if path.is_file()}
    assert files >= {".gitignore", "everstate.toml", "src/my_shop/orders.py", "tests/test_orders.py", "Makefile"}
    assert not [name for name in files if name.endswith(".txt") or "@" in (project / name).read_text()]


@pytest.mark.slow
def test_its_tests_are_green_and_its_plan_needs_no_options(project):
    done = command(project, "make", "test")
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout
    done = command(project, "make", "records")
    assert done.returncode == 0, done.stderr
    done = command(project / "src" / "my_shop", "everstate", "plan")
    assert done.returncode == 0, done.stderr
    assert "customer-totals" in done.stdout
    assert not (project / "src" / "my_shop" / ".everstate").exists()


@pytest.mark.parametrize(
    "name", ["", "My", "1shop", "a b", "../up", "class", "shop-", "json", "everstate", "polars", "tests"]
)
def test_name_that_is_none_of_a_package_is_refused(tmp_path, name):
    with pytest.raises(ConfigurationError, match="the name"):
        start_project(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_folder_that_is_there_is_left_alone_unless_it_is_empty(tmp_path):
    (tmp_path / "shop").mkdir()
    start_project("shop", tmp_path)
    (tmp_path / "shop" / "everstate.toml").write_text("mine")
    with pytest.raises(ConfigurationError, match="already exists"):
        start_project("shop", tmp_path)
    assert (tmp_path / "shop" / "everstate.toml").read_text() == "mine"
