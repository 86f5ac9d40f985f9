"""Vital signs: a median a minute, an average of five minutes that moves on each minute, and alarms that are final.

Monitors send readings with a time of their own; some come late, over a bad network. What comes too late for its minute
is put on a topic of its own, for whoever keeps the patient's record.
"""

from datetime import datetime

import everstate as es
from everstate import col

GRACE = "30s"
FAST = 120.0

app = es.Service("vitals")

readings = app.stream(
    "readings",
    key="reading_id",
    schema={"reading_id": str, "patient": str, "pulse": float, "at": datetime},
    time=col("at"),
)
plausible = readings.filter(col("pulse").is_between(20, 300))
by_patient = plausible.group_by("patient")

by_patient.window(es.tumbling("1m", grace=GRACE), late_to="late-readings").agg(
    median=es.median("pulse"),
    lowest=col("pulse").min(),
    highest=col("pulse").max(),
    readings=es.count(),
).to("pulse-per-minute")

by_patient.window(es.hopping("5m", "1m", grace=GRACE), keep="1d").agg(
    average=col("pulse").mean(),
    readings=es.count(),
).to("pulse-5m")

# An alarm cannot be taken back, so it waits until nothing can change its minute.
by_patient.window(es.tumbling("1m", grace=GRACE), emit="final").agg(median=es.median("pulse")).filter(
    col("median") > FAST
).to("fast-pulse")
