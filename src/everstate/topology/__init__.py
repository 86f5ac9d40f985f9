"""What a service is, as plain frozen values. Nothing here runs, and nothing knows Spark.

Begin with `traits.py` (what an operation is), then `nodes/` (one class for each operation) and `unit.py` (an output and
its stages). `names.py` says what steps are called, `describe.py` and the drawings show them; `aggregates.py`,
`functions.py` and `expressions/` are what nodes are made of.
"""
