"""Aggregations by window of time: `assign.py` says to which windows a row belongs and whether it came in time;
`windowed.py` keeps their state in slices of time, and says what comes out when one closes.

What a window aggregates, and how, is that of `aggregate/` and `fold/`: to these a window is a part of the group's key.
"""  # noqa: D205 - one sentence for each module
