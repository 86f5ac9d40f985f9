from __future__ import annotations

import io

from everstate.engine.relay import Relay


def test_relay_passes_users_lines_and_leaves_out_what_spark_says_at_every_start():
    said = (
        "WARNING: Using incubator modules: jdk.incubator.vector\n"
        "Starting Streaming TransformWithStateInPandas Python worker.\n"
        "\n"
        "hello from a function\n"
        "\n"
        "Streaming TransformWithStateInPandas Python worker received parameters.\n"
        "12:00:00 spark ERROR X: something\n"
    )
    target = io.StringIO()
    relay = Relay(io.StringIO(said), target)
    relay.start()
    relay.join(5)
    assert target.getvalue() == "hello from a function\n\n12:00:00 spark ERROR X: something\n"
