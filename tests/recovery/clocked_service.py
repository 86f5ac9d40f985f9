"""The service of the recovery tests of the clock: timers on the wall, and keys that it deletes."""

from __future__ import annotations

import everstate as es

app = es.Service("survivor", shards=2)
payments = app.stream("payments", key="account", schema={"id": int, "amount": int})


def watch(row: dict, ctx: es.Context) -> None:
    ctx.timer(str(row["id"]), at=ctx.now + 1, clock="wall")


def ring(ctx: es.Context) -> dict:
    return {"account": ctx.key, "id": int(ctx.due), "at": ctx.now}


payments.process(watch, on_timer=ring, schema={"account": str, "id": int, "at": int}).to("rung")
payments.group_by("account").agg(n=es.count()).expire(after="1s", clock="wall").to("alive")
