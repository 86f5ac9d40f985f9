"""A newcomer's first hour, from a clone and an environment of their own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="there is nothing to clone")
def test_newcomer_gets_from_a_clone_to_an_edit_and_back(tmp_path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("EVERSTATE_")}
    done = subprocess.run(
        [str(ROOT / "scripts" / "newcomer.sh"), str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=1500,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr
    assert done.stdout.endswith("A newcomer gets through.\n")
