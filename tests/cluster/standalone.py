"""A standalone Spark cluster on this machine, from PySpark's own jars: a master and workers of one core each.

Everything ends with the process that started it, also if that is killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import psutil
import pyspark

from everstate.engine.jvm.java import find_java

_HOME = Path(pyspark.__file__).parent
_UP_S = 90.0


def _with_parent():
    """The kernel ends this process when the one that started it is gone; other systems leave that to `stop`."""
    os.setsid()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Standalone:
    """One cluster.

    Attributes:
        url: The master's address.
        folder: For what its processes write.
    """

    def __init__(self, folder, workers=2):
        self.folder = folder
        self.url = f"spark://127.0.0.1:{free_port()}"
        self._processes = []
        host, port = "127.0.0.1", self.url.rpartition(":")[2]
        self._start("master", "master.Master", "--host", host, "--port", port, "--webui-port", "0")
        self._wait(lambda: _answers(int(port)))
        for number in range(workers):
            words = ("--host", host, "--cores", "1", "--memory", "1500m", "--webui-port", "0")
            self._start(f"worker{number}", "worker.Worker", *words, "-d", str(folder / f"work{number}"), self.url)
        log = folder / "master.log"
        self._wait(lambda: log.read_text(errors="replace").count("Registering worker") >= workers)

    def _start(self, name, kind, *words):
        local = self.folder / f"{name}-local"
        local.mkdir(parents=True)
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK", "EVERSTATE"))},
            "JAVA_HOME": str(find_java()),
            "SPARK_HOME": str(_HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(local),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -Dspark.worker.timeout=10",
        }
        command = [str(_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", *words]
        with (self.folder / f"{name}.log").open("wb") as said:
            self._processes.append(
                subprocess.Popen(command, env=environment, stdout=said, stderr=said, preexec_fn=_with_parent)  # noqa: PLW1509 - no threads here
            )

    def _wait(self, there):
        until = time.monotonic() + _UP_S
        while not there():
            assert time.monotonic() < until, self.said()
            assert all(process.poll() is None for process in self._processes), self.said()
            time.sleep(0.1)

    def said(self):
        """What its processes have said."""
        return "\n".join(file.read_text(errors="replace")[-2000:] for file in sorted(self.folder.glob("*.log")))

    def executors(self):
        """The Java processes of executors, those of each worker in turn."""
        found = []
        for process in self._processes[1:]:
            with contextlib.suppress(psutil.Error):
                children = psutil.Process(process.pid).children(recursive=True)
                found += [child for child in children if "CoarseGrainedExecutorBackend" in " ".join(_words(child))]
        return found

    def pythons(self):
        """The Python processes of executors."""
        pythons = []
        for java in self.executors():
            with contextlib.suppress(psutil.Error):
                pythons += [child for child in java.children(recursive=True) if "python" in " ".join(_words(child))]
        return pythons

    def partitions(self):
        """By worker, the shuffle partitions whose state its executor has at work."""
        return [
            {path.name.partition("partId=")[2].partition(",")[0] for path in local.rglob("StateStoreId*")}
            for local in sorted(self.folder.glob("worker*-local"))
        ]

    def stop(self):
        """End all of it."""
        for process in reversed(self._processes):
            found = []
            with contextlib.suppress(psutil.Error):
                found = psutil.Process(process.pid).children(recursive=True)
            for one in (*found, psutil.Process(process.pid) if process.poll() is None else None):
                with contextlib.suppress(psutil.Error, AttributeError):
                    one.kill()
            process.wait(20)


def _words(process):
    with contextlib.suppress(psutil.Error):
        return process.cmdline()
    return []


def _answers(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def bare_python(folder, *without):
    """An interpreter that has what this one has but Everstate, and some packages: as on a machine of a cluster."""
    installed = Path(sysconfig.get_path("purelib"))
    packages = folder / "lib" / installed.parent.name / "site-packages"
    packages.mkdir(parents=True)
    for entry in installed.iterdir():
        name = entry.name.lower().replace("-", "_").lstrip("_")
        if not name.startswith(("everstate", "editable", *without)):
            (packages / entry.name).symlink_to(entry)
    base = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    (folder / "pyvenv.cfg").write_text(f"home = {base.parent}\ninclude-system-site-packages = false\n")
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to(base)
    return folder / "bin" / "python"
