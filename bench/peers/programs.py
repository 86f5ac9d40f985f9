"""How the other programs are got and started.

What they need comes through pip and Maven once, into the folder for caches: nothing of it is Everstate's. What cannot
be had is said and not measured.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from scripts import kafka_broker

HERE: Final = Path(__file__).parent
QUIX: Final = "quixstreams==3.28.1"
#: The last one whose connector is there for anybody to fetch.
PYSPARK: Final = "pyspark==4.2.0"
_CACHE: Final = kafka_broker.CACHE.parent / "bench"
_JAVA: Final = ("java", "-Xmx2g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error")
#: The connector names a part of its own version that the registry lacks; the one before works.
_CONNECTOR: Final = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.2"),
    ("org.apache.commons", "commons-pool2", "2.12.0"),
)


class MissingError(Exception):
    """A program cannot be had here; the message says why."""


def streams(*words: object, program: str = "StreamsTotals") -> list[str]:
    """The command that runs a program of ours with Kafka Streams.

    Raises:
        MissingError: If its jars cannot be fetched.
    """
    return tool(str(HERE / f"{program}.java"), *words)


def tool(name: str, *words: object) -> list[str]:
    """The command that runs one of the programs that come with Kafka.

    Raises:
        MissingError: If its jars cannot be fetched.
    """
    try:
        jars = kafka_broker.fetch("programs")
    except kafka_broker.BrokerError as error:
        raise MissingError(str(error)) from error
    return [*_JAVA, "-cp", f"{jars}/*", name, *map(str, words)]


def quix(*words: object) -> list[str]:
    """The command that runs our program with Quix Streams."""
    return [str(_python(QUIX)), str(HERE / "quix_totals.py"), *map(str, words)]


def spark(servers: str, source: str, output: str, folder: Path, batch: int) -> list[str]:
    """The command that runs our program with Spark and its Kafka connector."""
    jars = ",".join(str(path) for path in sorted(_connector().glob("*.jar")))
    words = (servers, source, output, str(folder), jars, str(batch))
    return [str(_python(PYSPARK)), str(HERE / "spark_totals.py"), *words]


def _python(requirement: str) -> Path:
    """The Python of an environment that has a package, made if it is not there."""
    place = _CACHE / requirement.replace("==", "-")
    if not (place / "ready").exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        _run([sys.executable, "-m", "venv", "--clear", str(place)], requirement)
        _run([str(place / "bin" / "pip"), "install", "-q", requirement, "setuptools"], requirement)
        (place / "ready").touch()
    return place / "bin" / "python"


def _connector() -> Path:
    jars = _CACHE / "connector-{2}".format(*_CONNECTOR[0])
    if not jars.is_dir():
        alone = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
        named = "".join(
            f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>"
            f"{alone}</dependency>"
            for group, name, version in _CONNECTOR
        )
        jars.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=jars.parent) as folder:
            pom = Path(folder) / "pom.xml"
            pom.write_text(
                '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
                "<groupId>everstate</groupId><artifactId>bench</artifactId><version>1</version>"
                f"<dependencies>{named}</dependencies></project>",
                encoding="utf-8",
            )
            command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
            _run([*command, "-DincludeScope=runtime", f"-DoutputDirectory={folder}/jars"], "Spark's Kafka connector")
            (Path(folder) / "jars").rename(jars)
    return jars


def _run(command: list[str], what: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)  # noqa: S603 - fixed
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingError(f"{what} cannot be had: {error}") from error
    if done.returncode != 0:
        raise MissingError(f"{what} cannot be had: {(done.stdout + done.stderr).strip()[-500:]}")
