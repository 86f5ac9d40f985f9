"""Number and sum of payments by the records' key with Quix Streams; run by the Python that has it.

Prints when a part of the records, and when all had been processed.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from quixstreams import Application  # type: ignore[import-not-found]


def main(servers: str, source: str, output: str, folder: str, guarantee: str, warm: int, records: int) -> None:
    """Process so many records, then end."""
    app = Application(
        broker_address=servers,
        consumer_group=output,
        auto_offset_reset="earliest",
        state_dir=folder,
        processing_guarantee=guarantee,
        producer_extra_config={"compression.type": "lz4"},
        loglevel="ERROR",
    )
    seen, began = 0, 0.0

    def add(payment: dict[str, Any], state: Any) -> dict[str, int]:
        nonlocal seen, began
        n, total = state.get("sums", (0, 0))
        n, total = n + 1, total + payment["amount"]
        state.set("sums", (n, total))
        seen += 1
        if seen == warm:
            began = time.time()
        return {"n": n, "total": total}

    rows = app.dataframe(app.topic(source, value_deserializer="json"))
    rows.apply(add, stateful=True).to_topic(app.topic(output, value_serializer="json"))
    app.run(count=records)
    print(json.dumps({"began": began * 1_000, "ended": time.time() * 1_000, "records": records - warm}))


if __name__ == "__main__":
    main(*sys.argv[1:6], *map(int, sys.argv[6:]))  # type: ignore[call-arg, arg-type]
