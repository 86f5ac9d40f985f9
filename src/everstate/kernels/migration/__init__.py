"""State of an earlier version as state of this one: `convert.py` does it, `proof.py` recalculates a sample to check it.

`tables.py` says which table a step's state amounts to, for steps downstream that begin without state.
"""
