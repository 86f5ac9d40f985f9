"""A broker of Apache Kafka on this machine: one node on loopback, for development and for tests.

The jars come through Maven into `~/.cache/everstate` once. `start` leaves a broker running and prints its address,
`stop` ends it. `run` runs a command on a broker of its own, whose address is the command's last word. `serve` is what
runs beside the broker: it ends it when its owner has gone, so that a test run that is killed leaves nothing behind.
Nothing here needs a package from outside.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

VERSION: Final = "4.3.0"
CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "everstate" / "kafka"
#: Where the broker of `make kafka` keeps its records and its address.
HOME: Final = CACHE / "broker"
FETCH_S: Final = 900
START_S: Final = 120.0
STOP_S: Final = 20.0
#: What is fetched, by the folder that it goes into: the broker, and the programs that come with Kafka, for tests.
ARTIFACTS: Final = {"jars": ("kafka_2.13",), "programs": ("kafka-tools", "kafka-streams")}
_POM: Final = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>everstate</groupId><artifactId>broker</artifactId><version>1</version>
  <dependencies>
    {wanted}
    <dependency>
      <groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version>
    </dependency>
  </dependencies>
</project>
"""
_DEPENDENCY: Final = (
    f"<dependency><groupId>org.apache.kafka</groupId><artifactId>{{name}}</artifactId><version>{VERSION}</version>"
    "</dependency>"
)
#: One node that others need not agree with, quick to notice what tests wait for.
_SETTINGS: Final[dict[str, object]] = {
    "process.roles": "broker,controller",
    "node.id": 1,
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 4,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
    "group.initial.rebalance.delay.ms": 0,
    "auto.create.topics.enable": "false",
    "num.partitions": 1,
    "log.retention.check.interval.ms": 1000,
    "log.initial.task.delay.ms": 1000,
    "log.cleaner.backoff.ms": 1000,
    "file.delete.delay.ms": 1000,
    "num.network.threads": 2,
    "num.io.threads": 4,
    "background.threads": 2,
    "log.cleaner.dedupe.buffer.size": 8 << 20,
}
#: It starts in half the time with one compiler, and a small machine has other things to do with its memory.
_JAVA_OPTIONS: Final = "-Xmx512m -Xms128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
#: The environment may have others for a broker that is measured.
JAVA_OPTIONS: Final = "EVERSTATE_BROKER_JAVA_OPTIONS"


class BrokerError(Exception):
    """There can be no broker here; the message says why, and what to do."""


@dataclass(frozen=True)
class Broker:
    """A broker that runs.

    Attributes:
        address: Host and port for clients.
        pid: Of what looks after it.
        java: Of the broker itself.
        folder: Where its records and what it has said are.
    """

    address: str
    pid: int
    java: int
    folder: str


def missing() -> str | None:
    """What is missing on this machine to run a broker; None if nothing is."""
    if shutil.which("java") is None:
        return "Java is not on the PATH (make setup, or apt-get install openjdk-17-jre-headless)"
    if not _jars().is_dir() and shutil.which("mvn") is None:
        return "Maven is not on the PATH, and fetches Apache Kafka (make setup as root, or apt-get install maven)"
    return None


def _jars() -> Path:
    return CACHE / VERSION / "jars"


def fetch(what: str = "jars") -> Path:
    """The folder with the broker's jars, fetched if they are not there.

    Args:
        what: Which of `ARTIFACTS`.

    Raises:
        BrokerError: If they cannot be.
    """
    lack = missing()
    if lack is not None:
        raise BrokerError(lack)
    jars = _jars().with_name(what)
    jars.parent.mkdir(parents=True, exist_ok=True)
    with _locked(jars.parent / "fetch.lock"):
        if jars.is_dir():
            return jars
        print(f"Fetching Apache Kafka {VERSION} with Maven into {jars} ...", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(dir=jars.parent) as folder:
            named = "".join(_DEPENDENCY.format(name=name) for name in ARTIFACTS[what])
            (Path(folder) / "pom.xml").write_text(_POM.format(wanted=named), encoding="utf-8")
            wanted = ["dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=jars"]
            try:
                done = subprocess.run(  # noqa: S603 - a fixed command
                    ["mvn", "-q", "-B", *wanted],  # noqa: S607 - wherever Maven is
                    cwd=folder,
                    capture_output=True,
                    text=True,
                    timeout=FETCH_S,
                    check=False,
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                raise BrokerError(f"Maven could not fetch Apache Kafka: {error}") from error
            if done.returncode != 0:
                raise BrokerError(f"Maven could not fetch Apache Kafka:\n{(done.stdout + done.stderr).strip()[-2000:]}")
            (Path(folder) / "jars").rename(jars)
    return jars


def start(
    folder: Path, *, owner: int | None = None, settings: Mapping[str, object] | None = None, port: int = 0
) -> Broker:
    """Start a broker that keeps its records in a folder, or give the one that runs there.

    Args:
        folder: For records, settings and messages; a broker that ran there before finds its records again.
        owner: A process; the broker ends when that has. None for a broker that goes on until it is stopped.
        settings: Settings of the broker beyond the usual ones.
        port: For clients; 0 for one that is free.

    Raises:
        BrokerError: If it does not come up.
    """
    fetch()
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder / "start.lock"):
        known = running(folder)
        if known is not None:
            return known
        (folder / "broker.json").unlink(missing_ok=True)
        command = [sys.executable, __file__, "serve", str(folder), "--port", str(port)]
        command += ["--settings", json.dumps(dict(settings or {}))]
        command += ["--owner", str(owner)] if owner is not None else []
        with (folder / "serve.out").open("wb") as said:
            # A session of its own: what interrupts the terminal must not end it before its owner has.
            keeper = subprocess.Popen(  # noqa: S603 - this very file
                command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True, close_fds=True
            )
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            known = running(folder)
            if known is not None:
                return known
            if keeper.poll() is not None:
                break
            time.sleep(0.05)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(keeper.pid, signal.SIGKILL)
        raise BrokerError(f"the broker in {folder} did not come up:\n{_last_words(folder)}")


def running(folder: Path) -> Broker | None:
    """The broker that runs in a folder."""
    try:
        found = Broker(**json.loads((folder / "broker.json").read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError):
        return None
    return found if _lives(found.pid) and _lives(found.java) else None


def stop(folder: Path) -> bool:
    """End the broker of a folder; says whether there was one."""
    found = running(folder)
    if found is None:
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(found.pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_S
    while _lives(found.pid) or _lives(found.java):
        with contextlib.suppress(ChildProcessError):
            os.waitpid(found.pid, os.WNOHANG)
        if time.monotonic() > deadline:
            for pid in (found.java, found.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            deadline = time.monotonic() + STOP_S
        time.sleep(0.05)
    (folder / "broker.json").unlink(missing_ok=True)
    return True


def run_with(command: Sequence[str]) -> int:
    """Run a command on a broker that is started for it, whose address is its last word; returns its exit code."""
    with tempfile.TemporaryDirectory(prefix="everstate-kafka-") as folder:
        broker = start(Path(folder), owner=os.getpid())
        try:
            return subprocess.run([*command, f"kafka://{broker.address}"], check=False).returncode  # noqa: S603 - as asked
        finally:
            stop(Path(folder))


def _serve(folder: Path, owner: int | None, settings: Mapping[str, object], port: int) -> int:
    """Run a broker until it is told to end, or its owner has gone."""
    ended = False

    def end(*_: object) -> None:
        nonlocal ended
        ended = True

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    java, address = _launch(folder, settings, port)
    try:
        while not ended and java.poll() is None and not _answers(address):
            time.sleep(0.1)
        if java.poll() is None:
            broker = Broker(address, os.getpid(), java.pid, str(folder))
            partial = folder / ".broker.json"
            partial.write_text(json.dumps(vars(broker)), encoding="utf-8")
            partial.replace(folder / "broker.json")
        while not ended and java.poll() is None and (owner is None or _lives(owner)):
            time.sleep(0.2)
    finally:
        # Nobody needs what an orderly end of a single node would take seconds for: all is in its folder.
        java.kill()
        java.wait()
    return 0


def _launch(folder: Path, settings: Mapping[str, object], port: int) -> tuple[subprocess.Popen[bytes], str]:
    jars = fetch()
    chosen, controller = port or _free_port(), _free_port()
    address = f"127.0.0.1:{chosen}"
    listeners = f"PLAINTEXT://{address},CONTROLLER://127.0.0.1:{controller}"
    lines = {
        **_SETTINGS,
        "listeners": listeners,
        "advertised.listeners": f"PLAINTEXT://{address}",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "log.dirs": folder / "records",
        **settings,
    }
    properties = folder / "server.properties"
    properties.write_text("".join(f"{name}={value}\n" for name, value in lines.items()), encoding="utf-8")
    java = ["java", *os.environ.get(JAVA_OPTIONS, _JAVA_OPTIONS).split(), "-cp", f"{jars}/*"]
    quiet = ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    with (folder / "broker.out").open("ab") as said:
        if not (folder / "records").is_dir():
            cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
            # An id that began with a dash would be taken for an option.
            cluster = "e" + cluster[1:]
            command = [*java, *quiet, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(properties)]
            subprocess.run(command, stdout=said, stderr=said, check=True)  # noqa: S603 - fixed
        process = subprocess.Popen(  # noqa: S603 - fixed
            [*java, *quiet, "kafka.Kafka", str(properties)], stdin=subprocess.DEVNULL, stdout=said, stderr=said
        )
    return process, address


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=1):
            return True
    except OSError:
        return False


def _lives(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return not Path("/proc/self/stat").exists()
    return stat.rpartition(")")[2].split()[0] != "Z"


def _last_words(folder: Path) -> str:
    found = [path.read_text(encoding="utf-8", errors="replace")[-1500:] for path in sorted(folder.glob("*.out"))]
    return "\n".join(text.strip() for text in found if text.strip())


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def main() -> int:
    """The commands of the Makefile."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["fetch", "start", "stop", "serve", "run"])
    parser.add_argument("folder", nargs="?", type=Path, default=HOME)
    parser.add_argument("--owner", type=int)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--settings", type=json.loads, default={})
    if sys.argv[1:2] == ["run"]:
        given, words = argparse.Namespace(command="run"), sys.argv[2:]
    else:
        given, words = parser.parse_args(), []
    try:
        if given.command == "run":
            return run_with(words)
        if given.command == "serve":
            return _serve(given.folder, given.owner, given.settings, given.port)
        if given.command == "fetch":
            print(fetch())
        elif given.command == "start":
            print(f"kafka://{start(given.folder, port=given.port).address}")
        elif not stop(given.folder):
            print("No broker was running.")
    except BrokerError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
