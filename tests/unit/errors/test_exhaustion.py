from __future__ import annotations

import errno

import pytest

from everstate.errors import AccessError, DiskFullError, OpenFilesError
from everstate.errors.exhaustion import chain, exhausted, exhaustion, shortage


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OSError(errno.ENOSPC, "x"), DiskFullError),
        (OSError(errno.EDQUOT, "x"), DiskFullError),
        (OSError(errno.EFBIG, "x"), DiskFullError),
        (OSError(errno.EMFILE, "x"), OpenFilesError),
        (OSError(errno.ENFILE, "x"), OpenFilesError),
        (RuntimeError("database or disk is full"), DiskFullError),
        (RuntimeError("Caused by: java.io.IOException: No space left on device\n\tat x"), DiskFullError),
        (
            RuntimeError("org.rocksdb.RocksDBException: While appending to file: 000012.sst: No space left on device"),
            DiskFullError,
        ),
        (RuntimeError("RocksDBException: While open a file for appending: /x: Too many open files"), OpenFilesError),
        (RuntimeError("IOError: [Errno 28] Error writing bytes to file: No space left on device"), DiskFullError),
        (RuntimeError("java.net.SocketException: Too many open files"), OpenFilesError),
        (RuntimeError("Disk quota exceeded"), DiskFullError),
        (OSError(errno.EACCES, "Permission denied"), AccessError),
        (OSError(errno.EROFS, "x"), AccessError),
        (RuntimeError("java.io.FileNotFoundException: /state/1.delta (Permission denied)"), AccessError),
        (RuntimeError("java.nio.file.FileSystemException: /state/x: Read-only file system"), AccessError),
        (RuntimeError("the function says: Permission denied"), None),
        (ValueError("damaged"), None),
    ],
)
def test_exhaustion_is_told_by_number_and_by_words(error, kind):
    assert exhaustion(error) is kind


def test_exhaustion_is_found_in_causes():
    outer = RuntimeError("the query failed")
    outer.__cause__ = OSError(errno.ENOSPC, "x")
    assert exhaustion(outer) is DiskFullError


def test_chain_that_loops_ends():
    one, two = RuntimeError("1"), RuntimeError("2")
    one.__context__, two.__context__ = two, one
    assert list(chain(one)) == [one, two]


@pytest.mark.parametrize("kind", [DiskFullError, OpenFilesError, AccessError])
def test_exhausted_error_says_that_nothing_is_damaged(kind):
    assert "Nothing is damaged" in str(exhausted(kind, "it failed"))


def test_shortage_of_a_disk_with_space_is_none(tmp_path):
    assert shortage(tmp_path / "manifest.db") is None
    assert list(tmp_path.iterdir()) == []
