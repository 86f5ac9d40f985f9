"""The service of the recovery tests: a table and a stream from one topic, with a step that can end a process.

`EVERSTATE_TEST_KILL` names what is killed when the record "deadly" is seen, once: a file remembers that it was.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil

import everstate as es
from everstate import col

app = es.Service("survivor", shards=2)
payments = app.stream("payments", key="account", schema={"account": str, "id": int, "amount": int})


def kill_once(row):
    victim = os.environ.get("EVERSTATE_TEST_KILL")
    if not victim or row["id"] % 10 != 7:
        return
    marker = Path(os.environ["EVERSTATE_TEST_MARKER"])
    if marker.exists():
        return
    marker.write_text(victim)
    if victim == "worker":
        os.kill(os.getpid(), signal.SIGKILL)
    for process in psutil.Process().parents():
        if victim == "java" and process.name() == "java":
            process.kill()
            return


watched = payments.peek(kill_once)
watched.group_by("account").agg(total=col("amount").sum(), payments=es.count()).to("balances")
watched.filter(col("amount") % 2 == 0).to("even")
