"""The documentation as a site, and the package as a wheel: what `make docs` and `make dist` make."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import everstate

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.docs


def made(script):
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / script)], capture_output=True, text=True, check=False, cwd=ROOT
    )


def test_site_is_built_without_a_broken_link_and_shows_every_public_name():
    done = made("site.py")
    assert done.returncode == 0, done.stdout + done.stderr
    site = ROOT / "build" / "site"
    reference = (site / "docs" / "reference" / "api.html").read_text(encoding="utf-8")
    public = {*everstate.__all__, *everstate.testing.__all__} - {"testing"}
    shown = {name.rpartition(".")[2] for name in re.findall(r'id="([\w.]+)"', reference)}
    assert public - shown == set()
    assert (site / "search" / "search_index.json").stat().st_size > 100_000


@pytest.mark.long
@pytest.mark.spark
def test_wheel_installs_in_a_fresh_environment_and_runs_a_service():
    done = made("try_wheel.py")
    assert done.returncode == 0, done.stdout + done.stderr
