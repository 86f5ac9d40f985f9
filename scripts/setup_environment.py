"""Makes the virtual environment in .venv with the versions of constraints.txt; returns at once if it is up to date."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".venv"
PYTHON = ENVIRONMENT / "bin" / "python"
STAMP = ENVIRONMENT / ".everstate-setup"
CONSTRAINTS = ROOT / "constraints.txt"


def wanted() -> str:
    """A digest of all that decides what is installed; the settings of tools in pyproject.toml do not."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project.pop("tool", None)
    facts = [sys.version, str(ROOT), CONSTRAINTS.read_text(encoding="utf-8"), json.dumps(project, sort_keys=True)]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()


def pip(*arguments: str) -> None:
    """Runs pip of the environment, held to the constraints."""
    command = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*command, "--constraint", str(CONSTRAINTS), *arguments], check=True, cwd=ROOT)  # noqa: S603


def main() -> int:
    """Installs what is missing."""
    digest = wanted()
    if STAMP.is_file() and STAMP.read_text(encoding="utf-8") == digest and PYTHON.exists():
        return 0
    version = ".".join(map(str, sys.version_info[:3]))
    print(f"Setting up .venv with Python {version} (a minute or two) ...", flush=True)
    if Path(sys.prefix).resolve() != ENVIRONMENT.resolve():
        # Another Python's environment, or a broken one: packages for the old interpreter would be left behind.
        venv.create(ENVIRONMENT, clear=True, with_pip=True)
    try:
        pip("pip")  # an older one does not know dependency groups
        pip("--build-constraint", str(CONSTRAINTS), "--editable", ".", "--group", "dev", "--group", "docs")
    except subprocess.CalledProcessError as error:
        print(f"pip failed (exit code {error.returncode}); its message is above. Then: make setup", file=sys.stderr)
        return 1
    STAMP.write_text(digest, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
