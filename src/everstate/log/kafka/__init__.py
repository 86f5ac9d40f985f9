"""Apache Kafka behind the protocol.

Read `log.py` (the `Log`), then `clients.py` (the three kinds of clients) and `settings.py` (what they are told),
`topics.py` and `reading.py` (what any Kafka client could do), `journal.py` (a compacted topic as a dictionary),
`writer.py` (transactions under a lease), `registry.py` (leases and documents), `markers.py` and `commits.py` (a
micro-batch in one transaction), `shares.py` (or in several, by several publishers), `corrections.py`, `cutovers.py`,
`staging.py` (what tasks leave for the driver) and `private.py` (tables of generations that do not publish, as files).
`failures.py` gives Kafka's errors their names.

Nothing here is imported before a log on Kafka is opened: the client is an extra, `pip install everstate[kafka]`.
"""

from everstate.log.kafka.log import KafkaLog

__all__ = ["KafkaLog"]
