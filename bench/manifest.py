"""What the manifest of an old log costs: the time of a commit, of the order log and of opening it, and its size."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from everstate.log import Commit, EmbeddedLog, TopicConfig, combined_digest
from everstate.log.embedded import order_log
from everstate.log.stops import Stops

if TYPE_CHECKING:
    from everstate.log.descriptions import Lease

#: At one commit a second: half an hour, a day, a month.
AGES: Final = (2_000, 86_400, 2_600_000)
_PARTITIONS: Final = 4
_MEASURED: Final = 300


def commits(folder: Path, age: int) -> dict[str, float]:
    """A log with so many commits behind it.

    Args:
        folder: Where to make it.
        age: How many commits; their vectors are put into the order log as folding leaves them.
    """
    log = EmbeddedLog(folder)
    log.create_topic("table", TopicConfig(compact=True))
    lease = log.acquire("bench")
    rng = np.random.default_rng(1)
    ends = np.cumsum(rng.integers(0, 200, (age, _PARTITIONS)), axis=0)
    times = 1_700_000_000_000 + np.arange(age) * 1000 + rng.integers(0, 50, age)
    places = tuple(("source", partition) for partition in range(_PARTITIONS))
    stops = Stops(("source",), places, ends, times)
    with log._store.manifest.writing() as database:  # noqa: SLF001 - a month of commits would take hours
        first = 0
        for level, size in ((2, order_log.FOLD**2), (1, order_log.FOLD)):
            while age - first >= size:
                part = stops[first : first + size].to_bytes()
                order_log._insert(database, ("bench", "table", ""), level, part)  # noqa: SLF001
                first += size
    for vector in stops[first:]:
        _commit(log, lease, vector)
    took = [_commit(log, lease, {"source": dict.fromkeys(range(_PARTITIONS), 10**9 + n)}) for n in range(_MEASURED)]
    began = time.process_time()
    read = log.order("bench", "table", ["source"])
    ordered = time.process_time() - began
    log.close()
    began = time.perf_counter()
    EmbeddedLog(folder)
    return {
        "commits": age,
        "commit_ms": round(statistics.median(took) * 1000, 2),
        "commit_max_ms": round(max(took) * 1000, 1),
        "order_s": round(ordered, 2),
        "vectors": len(read),
        "open_ms": round((time.perf_counter() - began) * 1000, 1),
        "manifest_bytes": (folder / "manifest.db").stat().st_size,
    }


def _commit(log: EmbeddedLog, lease: Lease, end: dict[str, dict[int, int]]) -> float:
    last = log.last_commit("bench", "table")
    batch = Commit(
        service="bench",
        output="table",
        generation="1",
        query_id="q",
        batch_id=last.batch_id + 1 if last else 0,
        start=last.end if last else {},
        end=end,
        digest=combined_digest([]),
        token=lease.token,
    )
    began = time.perf_counter()
    log.commit(batch, [])
    return time.perf_counter() - began


def appends(folder: Path, count: int) -> dict[str, float]:
    """A topic to which one record at a time is appended, by nobody who owns it."""
    log = EmbeddedLog(folder)
    log.create_topic("events")
    record = pl.DataFrame({"key": [b"key"], "value": [b"x" * 56]})
    took: list[float] = []
    for _ in range(count):
        began = time.perf_counter()
        log.append("events", record)
        took.append(time.perf_counter() - began)
    log.close()
    tail = took[-min(count, 2000) :]
    with log._store.manifest.reading() as database:  # noqa: SLF001 - what nobody else needs to know
        segments = database.execute("SELECT count(*) FROM segments").fetchone()[0]
        retired = database.execute("SELECT count(*) FROM retired_files").fetchone()[0]
    return {
        "appends": count,
        "first_ms": round(statistics.median(took[:2000]) * 1000, 2),
        "last_ms": round(statistics.median(tail) * 1000, 2),
        "mean_ms": round(statistics.fmean(took) * 1000, 2),
        "max_ms": round(max(took) * 1000, 1),
        "segments": segments,
        "retired_files": retired,
        "files": sum(1 for _ in folder.rglob("*.arrows")),
        "manifest_bytes": (folder / "manifest.db").stat().st_size,
    }


def main() -> None:
    """Print the figures."""
    for age in AGES:
        with tempfile.TemporaryDirectory() as folder:
            print(commits(Path(folder) / "log", age), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        print(appends(Path(folder) / "log", 100_000), flush=True)


if __name__ == "__main__":
    main()
