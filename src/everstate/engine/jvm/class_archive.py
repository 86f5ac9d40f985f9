"""Class data archive: lets Java map Spark's classes instead of loading and checking them again at every start.

It halves the time to a session and to the first micro-batch. The archive is a file in the user's cache, made once by
`everstate prepare` from a short training run (`archive_training`). It belongs to one Java and one set of jars; all of
that is in its name, so a stale one is never picked up. It only ever saves time: whatever is wrong with it, Spark starts
without.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import signal
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Final

from everstate.engine.jvm.java import Java, select_java
from everstate.errors import EngineError

logger = logging.getLogger(__name__)

#: Archives kept in the cache, the newest first. Each virtual environment has its own, of about 150 MB.
KEPT: Final = 3

#: A training run takes half a minute; on a crowded machine some times that.
TIMEOUT_S: Final = 300

# Java says so if an archive does not fit. That does no harm, so it is not worth a line on the terminal.
_QUIET: Final = "-Xlog:disable"


def java_options(*, full_compiler: bool = False) -> str:
    """The value for `spark.driver.extraJavaOptions` that makes Java start quickly.

    Args:
        full_compiler: Use Java's optimising compiler, too. It took 15 to 20 processor seconds of the first
            minute, and made later batches about two percent cheaper.
    """
    options = [_QUIET, "-Xshare:auto"]
    try:
        archive = archive_path()
    except EngineError:
        archive = None  # whoever starts the session will meet the same error and report it
    if archive is not None and is_whole(archive):
        options.append(f'-XX:SharedArchiveFile="{archive}"')
    if not full_compiler:
        options.append("-XX:TieredStopAtLevel=1")
    return " ".join(options)


def is_prepared() -> bool:
    """Whether there is nothing to prepare: the archive is there, or there is no Java to make it with."""
    try:
        return is_whole(archive_path())
    except EngineError:
        return True


def archive_path() -> Path:
    """Where the archive for this Java and these jars is, or would be.

    Raises:
        EngineError: There is no Java, or no PySpark.
    """
    return cache_folder() / f"spark-{_identity(select_java(), jars_folder())}.jsa"


def is_whole(archive: Path) -> bool:
    """Whether the archive is there as it was written; Java ignores one that does not fit, but crashes on a cut one."""
    try:
        return archive.stat().st_size == int(_size_file(archive).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return False


def cache_folder() -> Path:
    """The folder for files that can be made again at any time."""
    if named := os.environ.get("XDG_CACHE_HOME"):
        return Path(named) / "everstate"
    usual = "Library/Caches" if sys.platform == "darwin" else ".cache"
    return Path.home() / usual / "everstate"


def jars_folder() -> Path:
    """The folder of Spark's jars, found without the half second that importing PySpark takes.

    Raises:
        EngineError: PySpark is not installed.
    """
    if home := os.environ.get("SPARK_HOME"):
        return Path(home) / "jars"
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise EngineError("PySpark is not installed", hint=f"Install it: {sys.executable} -m pip install everstate")
    return Path(spec.origin).parent / "jars"


def build_archive() -> Path | None:
    """Makes the archive unless it is there; removes the oldest ones.

    Returns:
        The archive, or None if it could not be made; the reason is logged. That is never an error.
    """
    try:
        java, archive = select_java(), archive_path()
        if is_whole(archive):
            return archive
        archive.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="training-", dir=archive.parent) as folder:
            made = Path(folder) / "spark.jsa"
            _train(java, made, Path(folder))
            size = made.stat().st_size
            made.replace(archive)
            _size_file(archive).write_text(str(size), encoding="ascii")  # last: from here on the archive counts
        _remove_oldest(archive.parent)
    except (EngineError, OSError) as error:
        logger.warning("No class data archive, Spark will start more slowly: %s", error)
        return None
    return archive


def _train(java: Java, made: Path, folder: Path) -> None:
    command = [sys.executable, "-m", "everstate.engine.jvm.archive_training", str(made), str(folder)]
    process = subprocess.Popen(  # noqa: S603 - this interpreter, our module
        command,
        env={**os.environ, "JAVA_HOME": str(java.home), "PYSPARK_PYTHON": sys.executable},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=TIMEOUT_S)
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)  # the whole group: Python, Java and the workers
        process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise EngineError(f"the training run took longer than {TIMEOUT_S} s") from error
        raise
    if process.returncode != 0 or not made.is_file():
        lines = [line for line in output.splitlines() if "Error" in line or "Exception" in line] or ["it said nothing"]
        raise EngineError(f"the training run ended with {process.returncode}: {lines[-1][:300]}")


def _identity(java: Java, jars: Path) -> str:
    # Java checks path, size and time of every jar itself; the same facts in the name find the one that will fit.
    facts = [str(java.home), java.version, str(jars)]
    for entry in sorted(os.scandir(jars), key=lambda entry: entry.name) if jars.is_dir() else []:
        about = entry.stat()
        facts.append(f"{entry.name} {about.st_size} {about.st_mtime_ns}")
    digest = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:12]
    return f"{version('pyspark')}-java-{java.version}-{digest}"


def _size_file(archive: Path) -> Path:
    return archive.with_name(f"{archive.name}.size")


def _remove_oldest(folder: Path) -> None:
    archives = sorted(folder.glob("spark-*.jsa"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in archives[KEPT:]:
        _size_file(path).unlink(missing_ok=True)
        path.unlink(missing_ok=True)
