"""What keeps an embedded log small: who does what when (`tending.py`), one at a time (`claims.py`).

`merging.py` joins small segments, `compaction.py` and `retention.py` drop records, and `garbage.py` deletes files that
nothing names any more.
"""
