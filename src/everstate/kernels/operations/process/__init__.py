"""Processors: functions with named states and timers, row by row.

`process.py` is the kernel, `calls.py` goes through the rows of a micro-batch, `context.py` is what the function is
given, `held.py` and `cells.py` are the states of one key.
"""
