"""A service of Quix Streams, run in an environment of its own: `sends` orders of tills, or `reads` a table."""

import json
import sys

from quixstreams import Application

servers, way, source, target, count = sys.argv[1:]
app = Application(
    servers,
    consumer_group=f"quix-{way}",
    auto_offset_reset="earliest",
    processing_guarantee="exactly-once",
    loglevel="ERROR",
)
rows = app.dataframe(app.topic(source, key_deserializer="str", value_deserializer="json"))
if way == "sends":
    rows = rows.apply(lambda sold: {"order_id": sold["id"], "customer": sold["who"], "amount": sold["cents"] / 100})
    rows.to_topic(app.topic(target, key_serializer="str", value_serializer="json"), key=lambda order: order["order_id"])
else:
    rows = rows.update(lambda value, key, *_: print(json.dumps([key, value]), flush=True), metadata=True)
app.run(count=int(count), timeout=90)
