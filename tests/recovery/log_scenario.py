"""A life of a log, as a script: it may be killed anywhere and started again, and must come to the same end.

It plays the part of a service: a checkpoint file says which batch was finished last, and the batch after it is run
again whatever the log knows of it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl

from everstate.log import Commit, Cutover, EmbeddedLog, TopicConfig, combined_digest
from everstate.log.descriptions import Copy

BATCHES = 4
#: Enough for some of their files to be merged on the way.
APPENDS = 40
DAY_MS = 86_400_000


def content(batch_id: int) -> dict[str, pl.DataFrame]:
    """What a batch publishes: a table's changes over two partitions, and an event that names the batch."""
    keys = [b"a", b"b", b"c", b"k%d" % batch_id]
    values = [b"%d" % batch_id, b"%d" % batch_id, None if batch_id % 2 else b"%d" % batch_id, b"new"]
    return {
        "table": pl.DataFrame({"key": keys, "value": values}),
        "events": pl.DataFrame({"key": [b"batch"], "value": [b"%d" % batch_id]}),
    }


def run(folder: Path) -> None:
    log = EmbeddedLog(folder / "log")
    log.create_topic("table", TopicConfig(compact=True, partitions=2), exist_ok=True)
    log.create_topic("events", exist_ok=True)
    log.create_topic("input", exist_ok=True)
    log.create_topic("scratch", exist_ok=True)
    log.create_topic("many", exist_ok=True)
    for number in range(log.describe("input").end[0], 3):
        log.append("input", pl.DataFrame({"key": [b"i"], "value": [b"%d" % number]}))
    for number in range(log.describe("many").end[0], APPENDS):
        log.append("many", pl.DataFrame({"key": [b"m"], "value": [b"%d" % number]}))
    publish_batches(log, folder / "checkpoint")
    cut_over(log)
    log.compact("table")
    log.compact("events")
    log.append("scratch", pl.DataFrame({"key": [b"s"], "value": [b"s"]}))
    log.delete_topic("scratch")
    later = EmbeddedLog(folder / "log", clock=lambda: log._store.clock() + 2 * DAY_MS)
    later.compact("table")


def publish_batches(log: EmbeddedLog, checkpoint: Path) -> None:
    lease = log.acquire("service")
    finished = int(checkpoint.read_text()) if checkpoint.exists() else -1
    for batch_id in range(finished + 1, BATCHES):
        staged = [part for topic, frame in content(batch_id).items() for part in log.stage_all(topic, frame)]
        batch = Commit(
            service="service",
            output="output",
            generation="g",
            query_id="q",
            batch_id=batch_id,
            start={"input": {0: batch_id}},
            end={"input": {0: batch_id + 1}},
            digest=combined_digest(staged),
            token=lease.token,
        )
        log.commit(batch, staged)
        temporary = checkpoint.with_suffix(".new")
        temporary.write_text(str(batch_id))
        temporary.replace(checkpoint)
    log.release(lease)


def cut_over(log: EmbeddedLog) -> None:
    """One generation takes the place of another, unless it has."""
    log.create_topic("moved", TopicConfig(compact=True), exist_ok=True)
    if log.get_meta("service", "generation") is not None:
        return
    lease = log.acquire("service")
    staged = log.stage_all("moved", pl.DataFrame({"key": [b"m"], "value": [b"2"]}))
    commit = Commit(
        service="service",
        output="moved",
        generation="2",
        query_id="q2",
        batch_id=0,
        start={"input": {0: 0}},
        end={"input": {0: 1}},
        digest=combined_digest(staged),
        token=lease.token,
        kind="cutover",
    )
    ends = log.end_offsets(["moved"])
    documents, copies = {"generation": "2"}, {"__everstate.kept": Copy("moved", log.latest("moved"))}
    log.cutover(Cutover(commit=commit, leases=(lease,), expected=ends, documents=documents, copies=copies), staged)
    log.release(lease)


if __name__ == "__main__":
    run(Path(sys.argv[1]))
