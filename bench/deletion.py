"""What a table's state and checkpoint take before and after nine keys in ten were deleted."""

from __future__ import annotations

import contextlib
import json
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from bench import services
from bench.processes import fresh
from bench.report import Figure
from everstate.engine.commands.runner import Runner
from everstate.engine.jvm import session as engine_session
from everstate.engine.jvm.session import start_session, stop_session
from everstate.generations.deploy.settings import Settings
from everstate.log import TopicConfig
from everstate.log.opening import open_log

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from bench.scale import Scale

_MEMORY: Final = "4g"
_DELETED: Final = 0.9
#: What is left should be a tenth; files of a few bytes and the schema of each page do not shrink with the rest.
_MOST_LEFT: Final = 0.2
#: Spark tidies up every minute. A measurement need not wait that long.
_HURRIED: Final = {"spark.sql.streaming.stateStore.maintenanceInterval": "5s"}
_TIDY_S: Final = 12.0


def measure(scale: Scale, say: Callable[[str], None]) -> tuple[dict[str, Any], list[Figure]]:
    """Load a table, delete most of it, compare."""
    keys = scale.table_keys
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        say(f"deleting {_DELETED:.0%} of {keys:,} keys")
        found = fresh("deletion:sizes", folder=folder, keys=keys, settling=scale.settling)
    before, after = found["before"], found["after"]
    figures = [
        Figure(f"pages, {keys:,} keys", before["pages_bytes"] / 1e6, "MB"),
        Figure(f"pages left after deleting {_DELETED:.0%}", _left(found, "pages_bytes"), "x", at_most=_MOST_LEFT),
        Figure(f"checkpoint, {keys:,} keys", before["checkpoint_bytes"] / 1e6, "MB"),
        Figure(
            f"checkpoint left after deleting {_DELETED:.0%}",
            _left(found, "checkpoint_bytes"),
            "x",
            at_most=_MOST_LEFT,
            note="after Spark's maintenance of the state store",
        ),
        Figure("rows left", after["rows"], ""),
    ]
    return found, figures


def _left(found: dict[str, Any], name: str) -> float:
    return float(found["after"][name] / found["before"][name])


def sizes(folder: str, keys: int, settling: int) -> dict[str, Any]:
    """Sizes before and after."""
    engine_session.STATE.update(_HURRIED)
    session = start_session(Settings(memory=_MEMORY), "bench")
    table = Table(folder, keys, session)
    table.upsert(range(keys))
    runner = Runner(services.accounts(folder), session=session, show=False, memory=_MEMORY)
    runner.start()
    before = table.settled(settling)
    table.delete(range(round(keys * _DELETED)))
    after = table.settled(settling)
    runner.stop()
    stop_session(session)
    return {"before": before, "after": after}


class Table:
    """A table service and the topic that it reads.

    Args:
        folder: The log.
        keys: How many accounts there are.
        session: Spark.
    """

    def __init__(self, folder: str, keys: int, session: SparkSession) -> None:
        self._log = open_log(folder)
        self._log.create_topic(services.ACCOUNTS, TopicConfig(partitions=2, compact=True))
        self._folder = Path(folder)
        self._keys = keys
        self._session = session

    def upsert(self, accounts: range) -> None:
        """Give accounts an owner and a balance."""
        numbers = pl.int_range(accounts.start, accounts.stop, eager=True)
        owner, balance = numbers * 7919 % self._keys, numbers * 31 % 10_000
        parts = ('{"owner":"owner-', owner.cast(pl.String), '","balance":', balance.cast(pl.String), "}")
        text = pl.select(pl.concat_str([pl.lit(part) for part in parts])).to_series()
        self._append(numbers, text.cast(pl.Binary))

    def delete(self, accounts: range) -> None:
        """Delete accounts."""
        numbers = pl.int_range(accounts.start, accounts.stop, eager=True)
        self._append(numbers, pl.repeat(None, len(numbers), dtype=pl.Binary, eager=True))

    def settled(self, batches: int) -> dict[str, int]:
        """Wait until all is processed, let Spark tidy up behind some small batches, and measure."""
        for number in range(batches):
            self._wait()
            self.upsert(range(self._keys - 1 - number, self._keys - number))
        self._wait()
        time.sleep(_TIDY_S)
        checkpoint = self._folder / "state" / "accounts" / services.COPY / "1" / "checkpoint"
        return {"checkpoint_bytes": _bytes(checkpoint), **_state(self._session, checkpoint)}

    def _wait(self) -> None:
        """Until everything is processed."""
        ends = self._log.end_offsets([services.ACCOUNTS])
        while (last := self._log.last_commit("accounts", services.COPY)) is None or last.end != ends:
            time.sleep(0.1)

    def _append(self, numbers: pl.Series, values: pl.Series) -> None:
        keys = ("account-" + numbers.cast(pl.String)).cast(pl.Binary)
        ts = pl.Series([1_767_225_600_000], dtype=pl.Int64).new_from_index(0, len(numbers))
        self._log.append(services.ACCOUNTS, pl.DataFrame({"key": keys, "value": values, "ts": ts}))


def _bytes(folder: Path) -> int:
    sizes = []
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # Spark goes on tidying up
            sizes.append(path.stat().st_size if path.is_file() else 0)
    return sum(sizes)


def _state(session: SparkSession, checkpoint: Path) -> dict[str, int]:
    """Rows, pages and bytes as the shards' bookkeeping has them, by Spark's own reader of state."""
    reader = session.read.format("statestore").option("stateVarName", "bookkeeping")
    found = {"rows": 0, "pages": 0, "pages_bytes": 0}
    for row in reader.load(str(checkpoint)).select("value.content").collect():
        for stage in json.loads(bytes(row[0])).values():
            for store in json.loads(stage)["stores"].values():
                found["rows"] += store["rows"]
                found["pages"] += store["pages"]
                found["pages_bytes"] += store["size"]
    return found
