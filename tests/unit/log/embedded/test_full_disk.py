"""A log on a disk that is full, and in a process that may open no more files: named, and whole afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="limits of processes are those of POSIX")

COMMON = """
import os, resource, sys
import polars as pl
from everstate.log.opening import open_log
from everstate.log.descriptions import TopicConfig
from everstate.errors import DiskFullError, EverstateError, OpenFilesError

SCHEMA = {"key": pl.Binary, "value": pl.Binary, "ts": pl.Int64}

def send(log, number, size=20_000):
    frame = pl.DataFrame({"key": [b"%d" % number], "value": [os.urandom(size)], "ts": [number]}, schema=SCHEMA)
    log.append("t", frame)

def numbers(log):
    return [int(key) for key in log.read("t", 0, 0)["key"]]

folder = sys.argv[1]
log = open_log(folder)
log.create_topic("t", TopicConfig(partitions=1))
"""


def in_process(folder, code):
    program = COMMON + textwrap.dedent(code)
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_log_with_files_that_may_not_grow_names_it_and_goes_on_afterwards(tmp_path):
    in_process(
        tmp_path / "log",
        """
        send(log, 0)
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        for limit in (0, 4_096, 15_000, 70_000, 100_000):
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
            try:
                send(log, 1)
            except DiskFullError as error:
                assert "Nothing is damaged" in str(error)
                assert numbers(log) == [0], numbers(log)
            else:
                break
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        if numbers(log) == [0]:
            send(log, 1)
        assert numbers(log) == [0, 1], numbers(log)
        log.close()
        assert numbers(open_log(folder)) == [0, 1]
        """,
    )


def test_log_that_has_no_space_to_compact_names_it_and_goes_on_afterwards(tmp_path):
    in_process(
        tmp_path / "log",
        """
        for number in range(3):
            send(log, number, size=400_000)
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (800_000, hard))
        try:
            log.compact("t")
        except DiskFullError as error:
            assert "Nothing is damaged" in str(error)
        else:
            raise AssertionError("there was space for it")
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        log.compact("t")
        assert numbers(log) == [0, 1, 2], numbers(log)
        """,
    )


def test_log_in_a_process_without_further_files_names_it_and_goes_on_afterwards(tmp_path):
    in_process(
        tmp_path / "log",
        """
        send(log, 0)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        named = 0
        for spare in range(8):
            log.close()
            used = max(int(name) for name in os.listdir("/dev/fd")) + 1
            fillers = [os.dup(0)]
            while fillers[-1] < used:  # a number below that is free would be a spare one, too
                fillers.append(os.dup(0))
            os.close(fillers.pop())
            resource.setrlimit(resource.RLIMIT_NOFILE, (used + spare, hard))
            try:
                send(log, spare + 1)
            except OpenFilesError as error:
                assert "ulimit" in str(error)
                named += 1
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            for filler in fillers:
                os.close(filler)
        assert named, "it was never short of files"
        kept = numbers(open_log(folder))
        assert kept == [0, *range(named + 1, 9)], (named, kept)
        """,
    )


def test_log_on_a_full_disk_names_it_and_goes_on_when_there_is_space(tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["unshare", "-rm", "sh", "-c", f'mount -t tmpfs -o size=2m tmpfs "{place}" && exec "$@"', "sh"]
    if subprocess.run([*mount, "true"], capture_output=True, check=False).returncode:
        pytest.skip("file systems cannot be mounted here")
    program = COMMON + textwrap.dedent(
        """
        from pathlib import Path
        ballast = Path(folder).parent / "ballast"
        ballast.write_bytes(b"x" * 1_000_000)
        sent = 0
        try:
            while True:
                send(log, sent)
                sent += 1
                assert sent < 500, "the disk is never full"
        except DiskFullError as error:
            assert "Nothing is damaged" in str(error)
        assert sent > 3
        assert numbers(log) == list(range(sent))
        for _ in range(3):
            try:
                send(log, sent)
            except DiskFullError:
                continue
        ballast.unlink()
        send(log, sent)
        assert sorted(set(numbers(log))) == list(range(sent + 1))
        log.close()
        assert sorted(set(numbers(open_log(folder)))) == list(range(sent + 1))
        """
    )
    done = subprocess.run(
        [*mount, sys.executable, "-c", program, str(place / "log")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
