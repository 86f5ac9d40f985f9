"""Builds the wheel in dist/ and tries it as a user would: fresh environment, a service of their own, nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"

SERVICE = """\
import everstate as es
from everstate import col

app = es.Service("customers")
orders = app.table("orders", key="order_id", schema={"order_id": str, "customer": str, "amount": float})
orders.group_by("customer").agg(total=col("amount").sum()).to("totals")
"""
DRIVEN = """\
import everstate as es
from customers import app

driver = es.testing.Driver(app)
driver.send("orders", "o1", {"customer": "ada", "amount": 60.0})
assert driver.table("totals") == {"ada": {"total": 60.0}}
"""
RECORDS = '{"order_id": "o1", "customer": "ada", "amount": 60.0}\n'


def built() -> Path:
    """The wheel, built from a clean copy of what hatch is told to pack."""
    shutil.rmtree(DIST, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*command, "--wheel-dir", str(DIST), str(ROOT)], check=True)  # noqa: S603
    [wheel] = DIST.glob("everstate-*.whl")
    return wheel


def tried(wheel: Path, folder: Path) -> None:
    """Installs it and runs a service: in the driver, and on Spark."""
    environment = folder / "environment"
    venv.create(environment, with_pip=True)
    python, command = (str(environment / "bin" / name) for name in ("python", "everstate"))

    def run(*words: str) -> str:
        done = subprocess.run(words, check=False, cwd=folder, capture_output=True, text=True, env=_environment())  # noqa: S603
        if done.returncode:
            raise SystemExit(f"{' '.join(words)} failed ({done.returncode}):\n{done.stdout}{done.stderr}")
        return done.stdout

    run(python, "-m", "pip", "install", "--quiet", "--constraint", str(ROOT / "constraints.txt"), str(wheel))
    (folder / "customers.py").write_text(SERVICE, encoding="utf-8")
    (folder / "driven.py").write_text(DRIVEN, encoding="utf-8")
    (folder / "orders.jsonl").write_text(RECORDS, encoding="utf-8")
    run(python, "driven.py")
    run(command, "topic", "create", "orders", "--compact")
    run(command, "produce", "orders", "orders.jsonl", "--key-field", "order_id")
    run(command, "run", "customers.py", "--once", "--quiet")
    consumed = run(command, "consume", "totals", "--latest", "--json")
    if '"value": {"total": 60.0}' not in consumed:
        raise SystemExit(f"the service gave something else:\n{consumed}")


def _environment() -> dict[str, str]:
    """That of this process, without what would lead to the repository."""
    return {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}


def main() -> int:
    """Builds and tries."""
    wheel = built()
    with tempfile.TemporaryDirectory() as folder:
        tried(wheel, Path(folder))
    print(f"{wheel.relative_to(ROOT)}: installs in a fresh environment, and runs a service there.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
