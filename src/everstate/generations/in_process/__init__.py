"""An `Executor` without Spark: micro-batches in the caller's own process and thread.

`executor.py` is the way in; `execution.py` runs the micro-batches of one generation; `kept.py` holds what outlives an
execution, as a checkpoint does on disk; `recording.py` takes the first ones down. For previews of a short past, for the
test driver, and for simulations of a deployment: it goes through the same moments as a query on Spark (a batch is
planned, run, committed, noted as done), so that it can be interrupted between any two of them.
"""
