"""Gets a Java for Spark where there is none: from the system's package manager as root, else into the environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from everstate.engine.jvm.java import Java, select_java
from everstate.errors import EngineError

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT_S = 900

#: By package manager: what to run first, how to install, and the packages in order of preference.
MANAGERS: dict[str, tuple[list[str], list[str], list[str]]] = {
    "apt-get": (
        ["apt-get", "update", "-qq"],
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=60"],
        ["openjdk-17-jre-headless", "openjdk-21-jre-headless"],
    ),
    "dnf": ([], ["dnf", "install", "-y", "-q"], ["java-17-openjdk-headless", "java-21-openjdk-headless"]),
    "apk": ([], ["apk", "add", "--quiet"], ["openjdk17-jre-headless", "openjdk21-jre-headless"]),
}


def found() -> Java | None:
    """The Java that a service would use now."""
    try:
        return select_java()
    except EngineError:
        return None


def run(command: list[str]) -> bool:
    """Runs a command and says whether it worked; its output is shown only if it did not."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(  # noqa: S603 - fixed commands
            command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"  {error}", file=sys.stderr)
        return False
    if done.returncode != 0:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        print(f"  {' '.join(command)} failed: {''.join(last)}", file=sys.stderr)
    return done.returncode == 0


def from_system() -> Java | None:
    """Installs a package of the system, which needs root."""
    manager = next((name for name in MANAGERS if shutil.which(name)), None)
    if manager is None or os.geteuid() != 0:
        return None
    refresh, install, packages = MANAGERS[manager]
    print(f"Installing Java with {manager} ...", flush=True)
    if refresh:
        run(refresh)  # an index that cannot be refreshed may still be good enough
    return next((java for package in packages if run([*install, package]) and (java := found())), None)


def from_package_index() -> Java | None:
    """Puts a Java into the virtual environment, which needs no rights."""
    folder = Path(sys.prefix) / "jdk"
    print(f"Downloading Java to {folder} ...", flush=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--constraint", str(ROOT / "constraints.txt")]
    if not run([*pip, "install-jdk"]):
        return None
    folder.mkdir(exist_ok=True)
    for vendor in ("Adoptium", "Corretto"):  # each has its own servers, and a firewall may know only one
        download = f"import jdk; jdk.install('17', path={str(folder)!r}, vendor={vendor!r})"
        if run([sys.executable, "-c", download]) and (java := found()):
            return java
    return None


def main() -> int:
    """Says which Java will be used if it had to be installed; nothing if there was one."""
    if found():
        return 0
    java = from_system() or from_package_index()
    if java:
        print(f"Java {java.version} is in {java.home}")
        return 0
    try:
        select_java()
    except EngineError as error:
        print(error, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
