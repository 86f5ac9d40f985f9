"""`group_by().agg()`: from rows to groups to results.

Read `aggregate.py` first; `accumulators.py` says what is kept of a group for each call, `groups.py` combines rows into
groups, `contributions.py` keeps single rows where accumulators do not suffice, `results.py` evaluates what the user
wrote over them. `exact/` adds without rounding.
"""
