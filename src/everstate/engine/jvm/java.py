"""Finds the Java that Spark runs on.

Spark's start script takes `JAVA_HOME`, else whatever `java` is on the PATH, and fails with a stack trace if that one is
too old. So the engine looks first, in more places, and says in one sentence what to do if there is none.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from everstate.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterator

#: PySpark 4.3 is compiled for this version.
OLDEST: Final = 17

#: Versions that Everstate is tested with, best first. Among installed ones that nobody chose, these go first.
TESTED: Final = (17, 21)

_SYSTEM_FOLDERS: Final = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
)
_VERSION = re.compile(r'^\s*(?:JAVA_VERSION|java\.version)\s*=\s*"?(?P<version>[^"\s]+)', re.MULTILINE)
_HOME = re.compile(r"^\s*java\.home\s*=\s*(?P<home>.+?)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Java:
    """One installed Java.

    Attributes:
        home: The folder that `JAVA_HOME` should name.
        version: Its full version, such as `17.0.15`.
    """

    home: Path
    version: str

    @property
    def feature(self) -> int:
        """The first number of the version; Java 8 and older called themselves 1.8 and so on.

        Example:
            >>> Java(Path("/opt/java"), "17.0.15").feature, Java(Path("/opt/java"), "1.8.0_452").feature
            (17, 8)
        """
        numbers = [int(number) for number in re.findall(r"\d+", self.version)]
        return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


def find_java() -> Path:
    """The home folder of the Java to run Spark on; set it as `JAVA_HOME` before the session starts.

    Looks at `JAVA_HOME`, the PATH, the places where the set-up puts a Java (`jdk/` in the virtual environment,
    `~/.jdk`) and the system's usual folders, and takes the first that is new enough.

    Raises:
        EngineError: There is none. The message gives the command that gets one.
    """
    return select_java().home


def select_java() -> Java:
    """As `find_java`, with the version.

    Raises:
        EngineError: There is none.
    """
    refused = []
    for home in _candidates():
        java = inspect(home)
        if java is None:
            continue
        if java.feature >= OLDEST:
            return java
        refused.append(f"{java.home} is Java {java.feature}")
    found = f"; {', '.join(refused)}" if refused else ""
    raise EngineError(f"Spark needs Java {OLDEST} or newer and none was found{found}", hint=cure())


def cure() -> str:
    """The sentence that says how to get a Java here."""
    commands = {
        "apt-get": "sudo apt-get install openjdk-17-jre-headless",
        "dnf": "sudo dnf install java-17-openjdk-headless",
        "apk": "sudo apk add openjdk17-jre-headless",
        "brew": "brew install openjdk@17",
    }
    everywhere = f"pip install install-jdk && {Path(sys.executable).name} -c \"import jdk; jdk.install('17')\""
    command = next((command for tool, command in commands.items() if shutil.which(tool)), everywhere)
    return f"Install one with `{command}`, or set JAVA_HOME to one that you have."


def inspect(home: Path) -> Java | None:
    """The Java in this folder, or None if there is none that tells its version."""
    executable = home / "bin" / "java"
    if not executable.is_file():
        return None
    try:
        # Every JDK since version 9 carries this file, and reading it is a hundred times faster than starting Java.
        description = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        description = ""
    version = _VERSION.search(description)
    return Java(home, version["version"]) if version else _ask(executable)


def _candidates() -> Iterator[Path]:
    if named := os.environ.get("JAVA_HOME"):
        yield Path(named)
    if on_path := shutil.which("java"):
        yield Path(on_path).resolve().parent.parent
    for parent in (Path(sys.prefix) / "jdk", Path.home() / ".jdk"):
        yield from _by_preference(parent.glob("*"), parent.glob("*/Contents/Home"))
    yield from _by_preference(*(Path("/").glob(pattern.lstrip("/")) for pattern in _SYSTEM_FOLDERS))


def _by_preference(*folders: Iterator[Path]) -> list[Path]:
    installed = [java for paths in folders for home in sorted(paths) if (java := inspect(home))]
    ranked = sorted(installed, key=lambda java: TESTED.index(java.feature) if java.feature in TESTED else len(TESTED))
    return [java.home for java in ranked]


def _ask(executable: Path) -> Java | None:
    # macOS and version switchers put a small program in place of Java, which lies in no Java home: only it knows.
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False).stderr  # noqa: S603 - the user's own Java
    except (OSError, subprocess.TimeoutExpired):
        return None
    home, version = _HOME.search(answer), _VERSION.search(answer)
    return Java(Path(home["home"]), version["version"]) if home and version else None
