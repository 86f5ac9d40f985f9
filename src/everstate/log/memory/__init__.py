"""The log in memory: the whole protocol without a file, for tests, simulations and previews.

Read `store.py` first: what a log holds is one value, and a transaction puts another one in its place. Then
`partition.py` (records), `publishing.py`, `commits.py` (commits, corrections, cutovers), `reading.py` and `upkeep.py`
(compaction, retention), which are functions on that value; `log.py` puts them behind the protocol.
"""

from everstate.log.memory.log import MemoryLog

__all__ = ["MemoryLog"]
