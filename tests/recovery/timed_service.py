"""The service of the recovery tests of time: windows that end, a join that gives up, keys that expire, timers."""

from __future__ import annotations

import everstate as es
from everstate import col

SIDES = {"fired": {"account": str, "id": int, "due": int}}

app = es.Service("survivor", shards=2)
payments = app.stream("payments", key="account", schema={"account": str, "id": int, "amount": int})
tumbling = es.tumbling("1s", grace="200ms")


def watch(row: dict, ctx: es.Context) -> None:
    ctx.timer(str(row["id"]), at=ctx.time + 700)


def ring(ctx: es.Context) -> None:
    ctx.forward({"account": ctx.key, "id": int(ctx.due), "due": ctx.time}, to="fired")


by_account = payments.group_by("account")
by_account.window(tumbling, keep="5s").agg(n=es.count(), total=col("amount").sum()).to("updated")
by_account.window(tumbling, emit="final").agg(n=es.count(), total=col("amount").sum()).to("final")
by_account.window(es.session("300ms"), emit="final").agg(ids=es.collect("id")).to("sessions")
even = payments.filter(col("amount") % 2 == 0).select("id")
odd = payments.filter(col("amount") % 2 == 1).select(other="id")
even.join(odd, within="600ms", how="left").to("joined")
app.table("payments", key="account", schema={"account": str, "id": int, "amount": int}).expire(after="3s").to("alive")
payments.process(watch, on_timer=ring, schema={"id": int}, sides=SIDES).to("watched", sides={"fired": "fired"})
