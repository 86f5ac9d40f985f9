"""A shop's clicks: each event once, visits as sessions, and payments joined with the click that led to them.

Browsers send an event again when they are not sure, so the stream is deduplicated first. It goes on through a topic of
its own, which keeps the time of its rows: the visits downstream are those of the users, not of the service's restarts.
"""

from datetime import datetime

import everstate as es
from everstate import col

app = es.Service("clicks")

clicks = app.stream(
    "clicks",
    key="user",
    schema={"user": str, "event_id": str, "page": str, "country": str, "at": datetime},
    time=col("at"),
)
payments = app.stream("payments", key="user", schema={"user": str, "amount": float, "at": datetime}, time=col("at"))
countries = app.global_table("countries", key="code", schema={"code": str, "name": str})

visits = clicks.dedup("event_id", within="1h").to("page-visits")

# A visit lasts until a user has been quiet for half an hour.
sessions = (
    visits.group_by("user")
    .window(es.session("30m"))
    .agg(pages=es.count(), entry=col("page").first(), exit=col("page").last(), country=col("country").last())
)
sessions.to("sessions")
sessions.join(countries, on="country", how="left").group_by("name").agg(
    visits=es.count(), longest=col("pages").max()
).to("visits-per-country")

# The payments within ten minutes of the click on "pay"; a click that nobody has paid after comes out alone.
visits.filter(col("page") == "/pay").join(
    payments.rename({"at": "paid_at"}), within=("0s", "10m"), grace="1m", how="left"
).select("amount", "paid_at", clicked_at="at").to("checkouts")
