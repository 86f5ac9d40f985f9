"""Joins, from what the user wrote to a checked node.

`both_sides.py` is for two tables or two streams, `lookups.py` for a stream with a table, `global_table.py` for a table
that is everywhere.
"""
