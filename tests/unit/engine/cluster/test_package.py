from __future__ import annotations

import os
import subprocess
import sys

from everstate.engine.cluster.package import KEPT, shared_package
from everstate.engine.jvm.workers import SCRIPT


def test_package_copy_is_what_python_there_imports(tmp_path):
    folder = shared_package(tmp_path)
    assert shared_package(tmp_path) == folder
    assert {path.stat().st_mode & 0o077 for path in folder.rglob("*")} == {0}
    command = [str(folder / SCRIPT.name), "-c", "import everstate; print(everstate.__file__)"]
    environment = {**os.environ, "EVERSTATE_WORKER_PYTHON": sys.executable, "PYTHONPATH": "/nowhere:/spark/pyspark.zip"}
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(folder / "everstate" / "__init__.py")


def test_package_script_without_its_python_says_so(tmp_path):
    command = [str(shared_package(tmp_path) / SCRIPT.name)]
    environment = {**os.environ, "EVERSTATE_WORKER_PYTHON": "/no/python"}
    environment.pop("EVERSTATE_DRIVER_PYTHON", None)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 127
    assert "there is no Python at /no/python" in done.stderr


def test_package_copies_of_earlier_versions_go_but_for_some(tmp_path):
    for number in range(KEPT + 2):
        old = tmp_path / "packages" / f"{number:016}"
        old.mkdir(parents=True)
        os.utime(old, (number, number))
    folder = shared_package(tmp_path)
    left = {path.name for path in folder.parent.iterdir()}
    assert left == {folder.name, *(f"{number:016}" for number in range(3, KEPT + 2))}
