"""Rows that look up a table: `arrival.py` gives each the row that is there when it arrives, `history.py` the one of its
own time, from the versions that the table keeps.
"""  # noqa: D205 - one sentence for each module
