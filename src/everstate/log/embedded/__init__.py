"""The embedded log: a folder of immutable segment files and one SQLite manifest that says which of them count.

`log.py` is the protocol, each operation in a few lines. Read on with `publishing.py` (from records to segments),
`segments.py` (the files), `commits.py`, `corrections.py` and `cutovers.py` (one transaction each), `reading.py`,
`order_log.py` and `arrival.py`. `manifest/` is the database, `upkeep/` what keeps the log small.
"""

from everstate.log.embedded.log import EmbeddedLog

__all__ = ["EmbeddedLog"]
